// Many pushes for a subscription that nothing bound yet, to an agent that does not show the task: they cost little, and its news come once it does.
import { expect, test } from 'vitest'
import { refused } from '../support/bearers.ts'
import { status } from '../support/scripted.ts'
import { push, statusPush } from '../support/trip.ts'
import { minute, trip, typesTold, waitsOfFile, world } from '../support/waits.ts'

waitsOfFile()

test('many pushes that nothing comes of keep each other waiting longer each time, and the first look that sees the task ends it', async () => {
  const { agent, id } = await world.agentOf()
  const { client, hook } = await trip.subscribe(id)
  const taskId = `task-of-${id}`
  agent.put(taskId, status('working'))
  agent.instead(refused)
  const pushes = 40
  for (let n = 0; n < pushes; n++) await push(hook, { ...statusPush(taskId, 'working'), n })
  const queued = () => trip.calls.filter(({ operation }) => operation === 'SendMessage').length
  const before = queued()
  await trip.pass(2 * minute, 120)
  expect(queued() - before).toBeLessThan(pushes * 24)
  agent.put(taskId, status('input-required', { message: { messageId: 'q', parts: [] } }))
  agent.instead(undefined)
  await push(hook, statusPush(taskId, 'input-required'))
  await trip.pass(minute, 60)
  expect(typesTold(client)).toEqual(['task.input_required'])
  const after = queued()
  await trip.pass(10 * minute, 60)
  expect(queued() - after).toBeLessThan(2 * pushes)
})
