// The receive door in a process of its own, to be killed: takes its settings and the time as arguments and says at which port it listens.
import { door } from '../../../functions/receive.ts'
import { openUrl } from '../../../infra/local/http.ts'
import { createRelay } from '../../../shared/relay.ts'

const [env = '{}', time = '0'] = process.argv.slice(2)
const now = () => Number(time)

const { port } = await openUrl({
  limit: { name: 'receive', timeoutSeconds: 5 },
  port: 0,
  handler: door(createRelay('receive', JSON.parse(env), { now, write: () => {} })),
  now,
  onFailure: () => {},
})
process.send?.(port)
