// What outlives a restart, a changed bearer and a new root key; and two principals who see one task each with its own eyes.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type DemoAgent, startAgent } from '../../infra/local/agent.ts'
import { callAgent } from '../../infra/local/agent/caller.ts'
import { makeFolder } from '../support/folder.ts'
import { freePorts } from '../support/ports.ts'
import type { SeenTask } from '../support/routes.ts'
import { push, startTrip, statusPush, type Trip } from '../support/trip.ts'

/** A relay that keeps its data and its ports; and an agent beside it, which is not restarted. */
async function keptRelay(): Promise<{ agent: DemoAgent; dir: string; start: (env?: Record<string, string>) => Promise<Trip> }> {
  const dir = makeFolder()
  const ports = await freePorts()
  const agent = await startAgent()
  onTestFinished(() => agent.stop())
  return { agent, dir, start: (env = {}) => startTrip({ dir, ports, env }) }
}
