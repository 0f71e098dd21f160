// A relay in a process of its own, to be killed: says its API key and its steps, and ends without a farewell as soon as it logs the step it was told.
import { startLocal } from '../../infra/local/run.ts'

const [dir = '', step = '', hook = '', api = ''] = process.argv.slice(2)

const local = await startLocal({
  dir,
  tick: 'manual',
  ports: { hook: Number(hook), api: Number(api) },
  onStep: (_door, logged) => {
    if (logged.step === step) process.kill(process.pid, 'SIGKILL')
    process.send?.({ step: logged.step })
  },
})
// Whoever would kill it is gone.
process.once('disconnect', () => process.exit())
process.send?.({ key: local.keys.demo })
