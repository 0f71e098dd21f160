// Stands up the whole relay for a trip: real doors on the local ground with a bent clock, real A2A agents, clients with webhooks.
import { type Caller, callAgent } from '../../infra/local/agent/caller.ts'
import type { Variant } from '../../infra/local/agent/cards.ts'
import { type AgentOptions, type DemoAgent, startAgent } from '../../infra/local/agent.ts'
import { type Local, type LocalOptions, startLocal } from '../../infra/local/run.ts'
import type { Call } from '../../infra/local/wire.ts'
import type { Step } from '../../shared/log.ts'
import { type Api, apiOf, type Made } from './api.ts'
import { type Client, startClients } from './clients.ts'

/** An agent that is registered, and a client app that speaks to it. */
export type Scene = { id: string; agent: DemoAgent; caller: Caller }
