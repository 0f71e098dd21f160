// The door of the API: mounts its nouns in one Hono app behind one key check and one error answer.
import { Hono } from 'hono'
import { RouseError } from '../../shared/errors.ts'
import type { Relay } from '../../shared/relay.ts'
import { type HttpHandler, type HttpResult, onLambda } from '../lambda.ts'
import { type HttpRequest, readRequest } from '../request.ts'
import { agents } from './agents.ts'
import { authenticate, type Env } from './auth.ts'
import { cancel } from './cancel.ts'
import { health } from './health.ts'
import { mending } from './mending.ts'
import { operations } from './operations.ts'
import { pages } from './pages.ts'
import { answerProblem } from './problem.ts'
import { redrive } from './redrive.ts'
import { replay } from './replay.ts'
import { subscriptions } from './subscriptions.ts'
import { targets } from './targets.ts'
import { tasks } from './tasks.ts'
import { tenants } from './tenants.ts'
import { trees } from './trees.ts'

/** The API as a Hono app: for Lambda, for the local ground, for tests. */
export function createApi(relay: Relay): Hono<Env> {
  const app = new Hono<Env>()
  const v1 = new Hono<Env>().use(authenticate(relay))
  for (const noun of [
    tenants,
    agents,
    health,
    subscriptions,
    targets,
    mending,
    operations,
    tasks,
    cancel,
    trees,
    redrive,
    replay,
  ])
    v1.route('/', noun(relay))
  app.route('/', pages)
  app.route('/v1', v1)
  app.onError((error, c) => answerProblem(relay, error, c))
  app.notFound(c => {
    const allowed = methodsAt(app, c.req.path)
    if (allowed.length === 0) return answerProblem(relay, new RouseError('not_found'), c)
    c.header('Allow', allowed.join(', '))
    return answerProblem(relay, new RouseError('method_not_allowed'), c)
  })
  return app
}

export const door = (relay: Relay): HttpHandler => {
  const app = createApi(relay)
  return async event => {
    const request = readRequest(event)
    // What is no HTTP request has no path either.
    return toResult(
      await app.fetch(request ? toRequest(relay, request) : new Request(relay.config.publicOrigin)),
    )
  }
}

export const handler = onLambda('api', door)

/** The methods that some route takes at a path. */
function methodsAt(app: Hono<Env>, path: string): string[] {
  const matches = (pattern: string): boolean =>
    new RegExp(`^${pattern.replace(/:[A-Za-z]+/g, '[^/]+')}$`).test(path)
  const routes = app.routes.filter(({ method, path }) => method !== 'ALL' && matches(path))
  return [...new Set(routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : method)))]
}

/** Methods that a `Request` refuses to carry (Fetch standard, "forbidden method"). */
const forbidden = /^(?:CONNECT|TRACE|TRACK)$/

/** The request as Hono takes it. Whatever was sent becomes one, so that what is wrong with it is told in one way. */
function toRequest(relay: Relay, { method, path, query, headers, body }: HttpRequest): Request {
  // Never from `Host`. What is no path, such as `*`, becomes one that leads nowhere.
  const url = new URL(relay.config.publicOrigin)
  url.pathname = path
  url.search = query.toString()
  const carried = new Headers()
  for (const [name, value] of Object.entries(headers))
    if (value) carried.set(name, value.replace(/[^\t\x20-\x7e]/g, '?'))
  // No route takes OPTIONS either, so the answer is the same.
  const init = { method: forbidden.test(method) ? 'OPTIONS' : method, headers: carried }
  // A body of GET and HEAD means nothing (RFC 9110 section 9.3.1).
  return new Request(
    url,
    method === 'GET' || method === 'HEAD' ? init : { ...init, body: new Uint8Array(body) },
  )
}

const toResult = async (response: Response): Promise<HttpResult> => ({
  statusCode: response.status,
  headers: Object.fromEntries(response.headers),
  body: await response.text(),
})
