// What Rouse takes for granted of SQS and of Lambda's event source, shown on the local ones with a clock that is moved.
import {
  GetQueueAttributesCommand,
  ListQueuesCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
} from '@aws-sdk/client-sqs'
import type { SQSEvent } from 'aws-lambda'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { deployQueues } from '../../infra/local/deploy.ts'
import { queues } from '../../infra/topology.ts'
import { makeFolder } from '../support/folder.ts'
import { startQueue, type TestQueue } from '../support/queue.ts'

let here: TestQueue

beforeAll(async () => {
  here = await startQueue()
})

afterEach(async () => {
  await here.empty()
})

afterAll(async () => {
  await here.stop()
})

const { visibilitySeconds, maxReceives } = queues.look
const bodies = (event: SQSEvent) => event.Records.map(({ body }) => body)

describe('the queue', () => {
  test('hides a received message until its visibility time-out, then counts one more receive', async () => {
    await here.send('a')
    expect(await here.receive()).toMatchObject([{ Body: 'a', Attributes: { ApproximateReceiveCount: '1' } }])
    here.clock.advance(visibilitySeconds * 500)
    expect(await here.receive()).toEqual([])
    here.clock.advance(visibilitySeconds * 500)
    expect(await here.receive()).toMatchObject([{ Body: 'a', Attributes: { ApproximateReceiveCount: '2' } }])
  })

  test('gives a deleted message to nobody', async () => {
    await here.send('a')
    await here.remove(await here.receive())
    here.clock.advance(visibilitySeconds * 1000)
    expect(await here.receive()).toEqual([])
  })

  test('keeps a message back for up to 15 minutes, not longer', async () => {
    await here.send('late', 900)
    here.clock.advance(600_000)
    expect(await here.receive()).toEqual([])
    here.clock.advance(300_000)
    expect(await here.receive()).toMatchObject([{ Body: 'late' }])
    await expect(here.send('later', 901)).rejects.toThrow('DelaySeconds')
  })

  test('refuses by name what Rouse does not use', async () => {
    await expect(here.client.send(new ListQueuesCommand({}))).rejects.toThrow('ListQueues')
    const fifo = new SendMessageCommand({
      QueueUrl: here.sqs.url('look'),
      MessageBody: 'a',
      MessageDeduplicationId: 'b',
    })
    await expect(here.client.send(fifo)).rejects.toThrow('MessageDeduplicationId')
  })

  test('takes a message twice when the answer to the first try was lost', async () => {
    here.plan('SendMessage', 'fail_after')
    await here.send('a')
    expect(await here.receive()).toMatchObject([{ Body: 'a' }, { Body: 'a' }])
  })

  test('takes nothing from a caller that it throttles', async () => {
    here.plan('SendMessage', 'throttle', 'throttle')
    await expect(here.send('a')).rejects.toMatchObject({ name: 'RequestThrottled' })
    expect(await here.receive()).toEqual([])
  })

  test('keeps waiting, delayed and hidden messages over a restart', async () => {
    const dir = makeFolder()
    const first = await startQueue({ dir })
    await first.send('hidden')
    await first.receive()
    await first.send('waiting')
    await first.send('delayed', 60)
    await first.stop()
    const second = await startQueue({ dir, clock: first.clock })
    const next = async () => {
      const messages = await second.receive()
      await second.remove(messages)
      return messages.map(({ Body }) => Body)
    }
    expect(await next()).toEqual(['waiting'])
    second.clock.advance(60_000)
    expect(await next()).toEqual(['delayed'])
    second.clock.advance(visibilitySeconds * 1000)
    expect(await next()).toEqual(['hidden'])
    await second.stop()
  })

  test('has the settings of the topology, even when it was made with others', async () => {
    const QueueUrl = here.sqs.url('look')
    const other = { VisibilityTimeout: '5' }
    await here.client.send(new SetQueueAttributesCommand({ QueueUrl, Attributes: other }))
    await deployQueues(here.client, here.sqs.url)
    const { Attributes } = await here.client.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }),
    )
    expect(Attributes).toMatchObject({
      VisibilityTimeout: String(visibilitySeconds),
      MessageRetentionPeriod: String(queues.look.retentionSeconds),
    })
    expect(JSON.parse(Attributes?.RedrivePolicy ?? '')).toEqual({
      deadLetterTargetArn: 'arn:aws:sqs:us-east-1:000000000000:look-dead',
      maxReceiveCount: maxReceives,
    })
  })

  test('listens on the loopback address only', () => {
    const { libuv, workers } = process.report.getReport() as Report
    const handles = [libuv, ...workers.map(worker => worker.libuv)].flat()
    const hosts = handles
      .filter(({ type, remoteEndpoint }) => type === 'tcp' && !remoteEndpoint)
      .map(({ localEndpoint }) => localEndpoint?.ip4)
    expect(hosts.length).toBeGreaterThanOrEqual(2)
    expect(new Set(hosts)).toEqual(new Set(['127.0.0.1']))
  })
})

type Handle = { type: string; localEndpoint?: { ip4?: string }; remoteEndpoint?: unknown }
type Report = { libuv: Handle[]; workers: { libuv: Handle[] }[] }

describe('the event source', () => {
  test('hands over events of the shape that Lambda documents', async () => {
    const events: SQSEvent[] = []
    const pump = here.pump(async event => void events.push(event))
    const sentAt = here.clock.now()
    await here.send('a')
    await pump.settle()
    const [record] = events[0]?.Records ?? []
    expect(record).toMatchObject({
      body: 'a',
      eventSource: 'aws:sqs',
      eventSourceARN: 'arn:aws:sqs:us-east-1:000000000000:look',
      attributes: { ApproximateReceiveCount: '1' },
    })
    expect(Number(record?.attributes.SentTimestamp)).toBeGreaterThanOrEqual(sentAt)
  })

  test('deletes what was done and brings again only what was reported', async () => {
    const seen: string[] = []
    const pump = here.pump(async event => {
      seen.push(...bodies(event))
      const failed = event.Records.filter(({ body }) => body === 'bad')
      return { batchItemFailures: failed.map(({ messageId }) => ({ itemIdentifier: messageId })) }
    })
    await Promise.all(['a', 'bad', 'b'].map(body => here.send(body)))
    await pump.settle()
    expect(seen.sort()).toEqual(['a', 'b', 'bad'])
    here.clock.advance(visibilitySeconds * 1000)
    await pump.settle()
    expect(seen.sort()).toEqual(['a', 'b', 'bad', 'bad'])
    expect(pump.failures).toEqual([])
  })

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['an empty object', {}],
    ['a null list', { batchItemFailures: null }],
    ['an empty list', { batchItemFailures: [] }],
  ])('takes %s as success', async (_, answer) => {
    const pump = here.pump(async () => answer)
    await here.send('a')
    await pump.settle()
    expect(await here.sqs.look('look')).toEqual([])
  })

  const first = (event: SQSEvent) => event.Records[0]?.messageId
  test.each<[string, (event: SQSEvent) => unknown]>([
    ['a throw', () => Promise.reject(new Error('broken'))],
    ['an unknown message', () => ({ batchItemFailures: [{ itemIdentifier: 'none of these' }] })],
    ['an empty id', () => ({ batchItemFailures: [{ itemIdentifier: '' }] })],
    ['no id', event => ({ batchItemFailures: [{ itemIdentifier: first(event) }, {}] })],
    ['a wrong name', event => ({ batchItemFailures: [{ messageId: first(event) }] })],
    ['no list', event => ({ batchItemFailures: first(event) })],
    ['no object', () => 'ok'],
  ])('fails the whole batch on %s', async (_, answer) => {
    const batches: string[][] = []
    const pump = here.pump(async event => {
      batches.push(bodies(event))
      return answer(event)
    })
    await here.send('a')
    await here.send('b')
    await pump.settle()
    expect(batches.flat().sort()).toEqual(['a', 'b'])
    expect(pump.failures).toHaveLength(batches.length)
    here.clock.advance(visibilitySeconds * 1000)
    await pump.settle()
    expect(batches.flat().sort()).toEqual(['a', 'a', 'b', 'b'])
  })

  test('gives a batch up when its function runs out of time', async () => {
    const pump = here.pump(() => new Promise(() => {}), { timeoutSeconds: 0.05 })
    await here.send('a')
    await pump.settle()
    expect(pump.failures).toMatchObject([{ message: 'look timed out after 0.05 s' }])
    expect(await here.sqs.look('look')).toMatchObject([{ body: 'a', place: 'inflight' }])
  })

  test('moves a message that always fails to the dead-letter queue, after the stated number of tries', async () => {
    let tries = 0
    const pump = here.pump(async () => {
      tries += 1
      throw new Error('broken')
    })
    await here.send('poison')
    for (let receive = 0; receive < maxReceives + 2; receive += 1) {
      await pump.settle()
      here.clock.advance(visibilitySeconds * 1000)
    }
    expect(tries).toBe(maxReceives)
    expect(await here.sqs.look('look')).toEqual([])
    expect(await here.sqs.look('look-dead')).toMatchObject([{ body: 'poison' }])
  })

  test('runs as many batches at once as allowed, never more, each of at most ten', async () => {
    await Promise.all(Array.from({ length: 60 }, (_, at) => here.send(`m${at}`)))
    const sizes: number[] = []
    let running = 0
    const twoIn = Promise.withResolvers<void>()
    const open = Promise.withResolvers<void>()
    const pump = here.pump(
      async event => {
        sizes.push(event.Records.length)
        running += 1
        if (running >= 2) twoIn.resolve()
        await open.promise
      },
      { maxConcurrency: 2 },
    )
    await twoIn.promise
    // Round trips to the same server, in which a third batch would have come.
    for (let trip = 0; trip < 5; trip += 1) {
      pump.poke()
      await here.sqs.look('look')
    }
    expect(running).toBe(2)
    open.resolve()
    await pump.settle()
    expect(await here.sqs.look('look')).toEqual([])
    expect(Math.max(...sizes)).toBe(10)
  })

  test('settles only when all that was sent before has been carried, and all that follows from it', async () => {
    const seen: string[] = []
    const pump = here.pump(async event => {
      for (const body of bodies(event)) {
        seen.push(body)
        if (body.length < 5) await here.send(`${body}>`)
      }
    })
    await here.send('m')
    await pump.settle()
    expect(seen).toEqual(['m', 'm>', 'm>>', 'm>>>', 'm>>>>'])
  })

  test('stops after the batch under way, and loses nothing', async () => {
    const entered = Promise.withResolvers<void>()
    const open = Promise.withResolvers<void>()
    const pump = here.pump(async () => {
      entered.resolve()
      await open.promise
    })
    await here.send('a')
    await entered.promise
    const stopped = pump.stop()
    await here.send('b')
    expect(pump.busy()).toBe(true)
    open.resolve()
    await stopped
    expect(await here.sqs.look('look')).toMatchObject([{ body: 'b', place: 'ready' }])
  })
})
