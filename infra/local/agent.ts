// The demo agent: a real A2A server on the official SDK, v1.0 and v0.3, JSON-RPC and HTTP+JSON, on one port of the loopback.
import { createServer, type Server } from 'node:http'
import { createLegacyAwarePushNotificationSender } from '@a2a-js/sdk/compat/v0_3/server'
import {
  DefaultExecutionEventBusManager,
  DefaultRequestHandler,
  InMemoryPushNotificationStore,
  type User,
} from '@a2a-js/sdk/server'
import { agentCardHandler, jsonRpcHandler, restHandler } from '@a2a-js/sdk/server/express'
import express, { type Application, type Request, type RequestHandler } from 'express'
import { nameCall } from './agent/calls.ts'
import { cardPath, endpointPath, hybridCard, type Variant, variantCard, variants } from './agent/cards.ts'
import { hush } from './agent/hush.ts'
import { type Lie, lyingStore, tell, unmarked } from './agent/lies.ts'
import { type Pushes, trackPushes } from './agent/pushes.ts'
import { type Algorithm, createSigner, type Signer } from './agent/signer.ts'
import { createStage, type Stage } from './agent/stage.ts'

export type AgentOptions = {
  /** A free port unless given. */
  port?: number
  /** Milliseconds since 1970; tells task timestamps and the times in JWTs. */
  now?: () => number
  /** Signs pushes by JWT; without it the SDK's own sender is used. */
  sign?: Algorithm
  /** Where the signing key is kept over restarts; without it every start makes a new one. */
  keyFile?: string
  /** How long work takes by itself; without it, work waits for `release`. */
  workMs?: number
  /** The bearer token that every call must carry. */
  bearer?: string
}

export type DemoAgent = Pick<Stage, 'setState' | 'addArtifact' | 'release'> &
  Pick<Pushes, 'mute'> & {
    origin: string
    /** The hybrid card at the well-known path, or that of one variant (1.0, JSONRPC and pushes unless said otherwise). */
    cardUrl: (variant?: Partial<Variant>) => string
    /** What a variant's card says to call. */
    endpointUrl: (variant?: Partial<Variant>) => string
    jwksUrl: string
    /** Signs with a fresh key from now on. */
    rotateKey: () => Promise<void>
    /** Answers GetTask wrongly until told otherwise. */
    lie: (lie: Lie | undefined) => void
    /** Sets the bearer token that every call must carry. The part before its first dot is the principal that sees tasks. */
    require: (bearer: string | undefined) => void
    /** How often an operation was called, by its 1.0 name; `jwks` and `card` are counted too. */
    calls: (name: string) => number
    /** How many events were pushed. */
    pushes: () => number
    stop: () => Promise<void>
  }

/**
 * Starts the agent. The first word of a message is its script: `work` and `silent` complete when released, `silent`
 * without a push; `slow` tells its progress first; `ask` asks back and completes when answered; `fail` fails; anything
 * else completes at once.
 * @throws Error if the port is taken
 */
export async function startAgent(options: AgentOptions = {}): Promise<DemoAgent> {
  const now = options.now ?? Date.now
  const desk: Desk = { lie: undefined, bearer: options.bearer, counts: new Map() }
  const store = lyingStore()
  const configs = new InMemoryPushNotificationStore()
  let origin = ''
  const signer = options.sign && (await createSigner(options.sign, () => origin, now, options.keyFile))
  const pushes = trackPushes(signer?.sender(configs) ?? createLegacyAwarePushNotificationSender(configs))
  const stage = createStage({ store, pushes, now, workMs: options.workMs })

  const app = express()
  const server = createServer(app)
  origin = await listen(server, options.port ?? 0)
  const buses = new DefaultExecutionEventBusManager()
  const handler = (pushing: boolean): DefaultRequestHandler => {
    const card = hybridCard(origin, pushing)
    return new DefaultRequestHandler(card, store, stage.executor, buses, configs, pushes.sender)
  }
  const handlers = { pushing: handler(true), silent: handler(false) }
  serveCards(app, origin, handlers.pushing, desk, signer)
  serveCalls(app, handlers, desk)

  const unhush = hush()
  return {
    ...stage,
    mute: pushes.mute,
    origin,
    cardUrl: variant =>
      origin + (variant ? cardPath({ ...usual, ...variant }) : '/.well-known/agent-card.json'),
    endpointUrl: variant => origin + endpointPath({ ...usual, ...variant }),
    jwksUrl: `${origin}/.well-known/jwks.json`,
    rotateKey: async () => signer?.rotate(),
    lie: lie => {
      desk.lie = lie
    },
    require: bearer => {
      desk.bearer = bearer
    },
    calls: name => desk.counts.get(name) ?? 0,
    pushes: pushes.count,
    stop: async () => {
      stage.close()
      await pushes.settled()
      unhush()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** What a test has set, and what it may count. */
type Desk = { lie: Lie | undefined; bearer: string | undefined; counts: Map<string, number> }

type Handlers = { pushing: DefaultRequestHandler; silent: DefaultRequestHandler }

const usual: Variant = { version: '1.0', binding: 'JSONRPC', pushes: true }

const legacyCompat = { enabled: true } as const

function serveCards(
  app: Application,
  origin: string,
  provider: DefaultRequestHandler,
  desk: Desk,
  signer: Signer | undefined,
): void {
  for (const variant of variants)
    app.get(cardPath(variant), (_request, response) => {
      count(desk, 'card')
      response.json(variantCard(origin, variant))
    })
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: provider, legacyCompat }))
  app.get('/.well-known/jwks.json', (_request, response) => {
    count(desk, 'jwks')
    response.json(signer?.jwks() ?? { keys: [] })
  })
}

function serveCalls(app: Application, handlers: Handlers, desk: Desk): void {
  const json = express.json({
    type: ['application/json', 'application/a2a+json'],
    strict: false,
    limit: '5mb',
  })
  for (const pushes of [true, false]) {
    const options = {
      requestHandler: pushes ? handlers.pushing : handlers.silent,
      userBuilder: userOf,
      legacyCompat,
    }
    const rpc: Omit<Variant, 'version'> = { binding: 'JSONRPC', pushes }
    app.use(endpointPath(rpc), json, unmarked, guard(desk), jsonRpcHandler(options))
    const rest: Omit<Variant, 'version'> = { binding: 'HTTP+JSON', pushes }
    app.use(endpointPath(rest), json, unmarked, guard(desk), restHandler(options))
  }
}

/** Counts every call, asks for the bearer token, and lies about tasks when it is told to. */
const guard =
  (desk: Desk): RequestHandler =>
  (request, response, next) => {
    const name = nameCall(request.method, request.path, request.body)
    count(desk, name)
    if (desk.bearer !== undefined && request.headers.authorization !== `Bearer ${desk.bearer}`)
      tell('unauthorized', request, response, next)
    else if (name === 'GetTask' && desk.lie !== undefined) tell(desk.lie, request, response, next)
    else next()
  }

const count = ({ counts }: Desk, name: string): void => {
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

/** The SDK shows tasks only to the user who made them, so another principal's GetTask finds nothing. */
async function userOf({ headers }: Request): Promise<User> {
  const [, token] = /^Bearer (.+)$/.exec(headers.authorization ?? '') ?? []
  return { isAuthenticated: token !== undefined, userName: token?.split('.', 1)[0] ?? '' }
}

function listen(server: Server, port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      const taken = typeof address === 'object' && address !== null ? address.port : port
      resolve(`http://127.0.0.1:${taken}`)
    })
  })
}
