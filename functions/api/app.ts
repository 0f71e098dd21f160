// The door of the API: mounts its nouns in one Hono app behind one key check and one error answer.
import { Hono } from 'hono'
import { handle, type LambdaEvent } from 'hono/aws-lambda'
import { RouseError } from '../../shared/errors.ts'
import type { Relay } from '../../shared/relay.ts'
import { type HttpHandler, onLambda } from '../lambda.ts'
import { agents } from './agents.ts'
import { authenticate, type Env } from './auth.ts'
import { pages } from './pages.ts'
import { answerProblem } from './problem.ts'
import { subscriptions } from './subscriptions.ts'
import { targets } from './targets.ts'
import { tasks } from './tasks.ts'
import { tenants } from './tenants.ts'

/** The API as a Hono app: for Lambda, for the local ground, for tests. */
export function createApi(relay: Relay): Hono<Env> {
  const app = new Hono<Env>()
  const v1 = new Hono<Env>().use(authenticate(relay))
  for (const noun of [tenants, agents, subscriptions, targets, tasks]) v1.route('/', noun(relay))
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
  const serve = handle(createApi(relay))
  // Two libraries' types of the same event, which differ in what they call optional.
  return event => serve(event as unknown as LambdaEvent)
}

export const handler = onLambda('api', door)

/** The methods that some route takes at a path. */
function methodsAt(app: Hono<Env>, path: string): string[] {
  const matches = (pattern: string): boolean =>
    new RegExp(`^${pattern.replace(/:[A-Za-z]+/g, '[^/]+')}$`).test(path)
  const routes = app.routes.filter(({ method, path }) => method !== 'ALL' && matches(path))
  return [...new Set(routes.map(({ method }) => method))]
}
