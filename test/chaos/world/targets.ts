// Targets of all kinds on one port of 127.0.0.1: each keeps every webhook that really reached it, with how it answered.
import { createServer, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { close, isRecord, listen } from '../../../infra/local/wire.ts'
import type { TargetKind } from './kinds.ts'
import type { Random } from './random.ts'

/** A webhook that arrived. */
export type Told = {
  /** `webhook-id`. */
  id: string
  at: number
  /** Status it was answered with; 0 for none. */
  answered: number
  type: string
  taskId: string
  state: string
  rev: number
  /** Number of the inbox entry that it hints at; 0 for none. */
  seq: number
}

export type Target = {
  name: string
  tenant: string
  kind: TargetKind
  url: string
  told: Told[]
  byTask: Map<string, Told[]>
  /** Until when one that fails answers 500. */
  downUntil: number
}

export type Targets = {
  make: (tenant: string, kind: TargetKind, name: string) => Target
  stop: () => Promise<void>
}

const goneAfter = 3

/** @param onTold called when a webhook arrived, before it is answered */
export async function startTargets(now: () => number, random: Random, onTold: () => void): Promise<Targets> {
  const targets = new Map<string, Target>()
  const server = createServer(async (request, response) => {
    response.on('error', () => {})
    try {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk)
      const target = targets.get(request.url ?? '')
      if (target === undefined) return void response.writeHead(404).end()
      onTold()
      const told = readTold(String(request.headers['webhook-id']), Buffer.concat(chunks).toString(), now())
      target.told.push(told)
      target.byTask.set(told.taskId, [...(target.byTask.get(told.taskId) ?? []), told])
      await answer(target, told, response)
    } catch {
      request.socket.destroy()
    }
  })
  const answer = async (target: Target, told: Told, response: ServerResponse): Promise<void> => {
    const say = (status: number): void => {
      told.answered = status
      response.writeHead(status).end()
    }
    if (target.kind === 'slow') await sleep(random.int(0, 200))
    if (target.kind === 'failing' && told.at < target.downUntil) return say(500)
    if (target.kind === 'resetting' && random.chance(0.4)) return void response.socket?.resetAndDestroy()
    // The caller hangs up in the end.
    if (target.kind === 'late' && random.chance(0.2)) return
    say(target.kind === 'gone' && target.told.length >= goneAfter ? 410 : 200)
  }
  const port = await listen(server, 0)
  return {
    make: (tenant, kind, name) => {
      const path = `/t/${name}`
      const url = `http://127.0.0.1:${port}${path}`
      const target: Target = { name, tenant, kind, url, told: [], byTask: new Map(), downUntil: 0 }
      targets.set(path, target)
      return target
    },
    stop: () => close(server),
  }
}

function readTold(id: string, body: string, at: number): Told {
  const parsed: unknown = JSON.parse(body)
  const { type, data } = isRecord(parsed) ? parsed : {}
  const { taskId = '', state = '', rev = 0, seq = 0 } = isRecord(data) ? data : {}
  const numbered = { at, answered: 0, rev: Number(rev), seq: Number(seq) }
  return { ...numbered, id, type: String(type), taskId: String(taskId), state: String(state) }
}
