// Makes what may arrive at the door: honest pushes, nearly honest ones, forged ones and rubbish, by every front door.
import fc from 'fast-check'
import { sha256Hex } from '../../shared/hash.ts'
import { dialects, type Sent } from '../support/dialects.ts'
import { makeKey, type SigningKey, signText } from '../support/keys.ts'
import { begin, type Hook, issuer, type Scene } from './scene.ts'

type Fields = Record<string, unknown>

/** A JWT that the agent's own key signed. */
export type Signed = { claims: Fields; body: Uint8Array; text: string }

export type Input = {
  hook: Hook
  /** Nothing about it is wrong. */
  honest: boolean
  signed: Signed | undefined
  event: unknown
}

const attacker = makeKey('ES256', 'k1')
const token = 'x-a2a-notification-token'

/** How the proof is made out of the right one. */
type Proof = (of: { scene: Scene; hook: Hook; body: Uint8Array; taskId: string }) => {
  headers: Record<string, string>
  signed?: Signed
  honest?: boolean
}

const text = fc.oneof(fc.string(), fc.string({ unit: 'binary', maxLength: 60 }))

/** A text with one place changed. */
const changed = fc
  .tuple(
    fc.nat(),
    fc.oneof(fc.string({ maxLength: 2 }), fc.constantFrom('A', '-', '.', ' ', '\t', ',', '=')),
    fc.nat(2),
  )
  .map(([at, more, cut]) => (whole: string): string => {
    const place = at % (whole.length + 1)
    return whole.slice(0, place) + more + whole.slice(place + cut)
  })

const right: Proof = ({ scene, hook, body, taskId }) => {
  if (!hook.signed) return { headers: secretsOf(hook), honest: true }
  const { headers, signed } = sign(
    scene.key,
    '{"alg":"ES256","kid":"k1"}',
    claimsOf(hook, body, taskId),
    body,
  )
  return { headers, signed, honest: true }
}

const secretsOf = (hook: Hook): Record<string, string> => ({
  ...(hook.token !== undefined && { [token]: hook.token }),
  ...(hook.authorization !== undefined && { authorization: hook.authorization }),
})

const claimsOf = (hook: Hook, body: Uint8Array, taskId: string): Fields => ({
  ...{ iss: issuer, aud: hook.url, iat: begin / 1000, exp: begin / 1000 + 3600, jti: sha256Hex(body) },
  ...{ taskId, request_body_sha256: sha256Hex(body) },
})

function sign(key: SigningKey, header: string, claims: Fields, body: Uint8Array) {
  const jwt = signText(key, header, JSON.stringify(claims))
  return { headers: { authorization: `Bearer ${jwt}` }, signed: { claims, body, text: jwt } }
}

const members = fc.dictionary(
  fc.constantFrom('iss', 'aud', 'iat', 'exp', 'nbf', 'jti', 'taskId', 'request_body_sha256', '__proto__'),
  fc.oneof(
    fc.constantFrom(null, '', 0, -1, 1e300, begin, begin / 1000, begin / 1000 + 301, [], issuer),
    fc.jsonValue({ maxDepth: 2 }),
  ),
  { maxKeys: 2 },
)
const heads = fc
  .dictionary(
    fc.constantFrom('alg', 'kid', 'typ', 'crit', 'b64', 'jwk', 'jku', 'zip'),
    fc.oneof(
      fc.constantFrom('none', 'HS256', 'RS256', 'EdDSA', 'k1', 'k2', null, 1, ['b64']),
      fc.jsonValue({ maxDepth: 1 }),
    ),
    { maxKeys: 2 },
  )
  .map(more => JSON.stringify({ alg: 'ES256', kid: 'k1', ...more }))

/** By the agent's own key over whatever claims, or by another key. */
const odd = fc.tuple(heads, members, fc.boolean()).map(
  ([head, claims, own]): Proof =>
    ({ scene, hook, body, taskId }) => {
      const all = { ...claimsOf(hook, body, taskId), ...claims }
      if (own) return sign(scene.key, head, all, body)
      return { headers: sign(attacker, head, all, body).headers }
    },
)

const nearly = fc.tuple(changed, fc.constantFrom(token, 'authorization')).map(
  ([change, name]): Proof =>
    of => {
      const { headers, signed } = right(of)
      const value = headers[name]
      return {
        headers: value === undefined ? headers : { ...headers, [name]: change(value) },
        ...(signed && { signed }),
      }
    },
)

const borrowed = fc.nat().map(
  (n): Proof =>
    of => {
      const other = of.scene.hooks[n % of.scene.hooks.length] ?? of.hook
      const { headers, signed } = right({ ...of, hook: other })
      return { headers, ...(signed && { signed }) }
    },
)

const madeUp = fc
  .dictionary(
    fc.constantFrom(token, 'a2a-notification-token', 'authorization'),
    fc.oneof(
      text,
      text.map(one => `Bearer ${one}`),
    ),
  )
  .map(
    (headers): Proof =>
      () => ({ headers }),
  )

const proofs = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Proof>(right) },
  { weight: 3, arbitrary: nearly },
  { weight: 3, arbitrary: odd },
  { weight: 1, arbitrary: borrowed },
  { weight: 2, arbitrary: madeUp },
)

const ids = fc.oneof(
  { weight: 3, arbitrary: fc.constant('task-1') },
  fc.string({ minLength: 1, maxLength: 20 }),
  fc.jsonValue({ maxDepth: 1 }),
)
const states = fc.oneof(
  fc.constantFrom('TASK_STATE_COMPLETED', 'working', 'input-required', 3),
  fc.jsonValue({ maxDepth: 1 }),
)
const event = fc.record(
  {
    id: ids,
    taskId: ids,
    task_id: ids,
    kind: fc.constantFrom('task', 'status-update', 'message'),
    status: fc.record({ state: states }),
    metadata: fc.jsonValue({ maxDepth: 3 }),
  },
  { requiredKeys: [] },
)
const frames = fc.dictionary(
  fc.constantFrom('task', 'statusUpdate', 'artifactUpdate', 'message', 'jsonrpc', 'result', '__proto__'),
  event,
  { maxKeys: 2 },
)
const deep = fc
  .tuple(fc.nat(20_000), fc.constantFrom('[', '{"a":', '[{"a":'))
  .map(([depth, open]) => open.repeat(depth))
const bodies = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.oneof(event, frames, fc.jsonValue()).map(value => Buffer.from(JSON.stringify(value))),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 100 }).map(bytes => Buffer.from(bytes)) },
  { weight: 1, arbitrary: fc.json().map(json => Buffer.from(json)) },
  { weight: 1, arbitrary: deep.map(part => Buffer.from(part)) },
)

/** A body as senders write it, and one that is changed in one place. */
const honestBody = (taskId: string, n: number): string =>
  JSON.stringify({ statusUpdate: { taskId, contextId: `c-${n}`, status: { state: 'TASK_STATE_WORKING' } } })

const moreHeaders = fc.dictionary(
  fc.constantFrom(
    'content-type',
    'content-encoding',
    'host',
    'x-forwarded-for',
    '__proto__',
    'Authorization',
  ),
  fc.oneof(text, fc.constantFrom('application/json', 'text/plain', 'gzip', 'identity')),
  { maxKeys: 2 },
)

/** What else is wrong with a request: its method, path, query, headers or body. */
const faults = fc.oneof(
  fc.constantFrom('GET', 'PUT', 'HEAD', 'OPTIONS', 'post', '').map(
    method =>
      (sent: Sent): Sent => ({ ...sent, method }),
  ),
  changed.map(
    change =>
      (sent: Sent): Sent => ({ ...sent, path: change(sent.path) }),
  ),
  text.map(
    query =>
      (sent: Sent): Sent => ({ ...sent, query }),
  ),
  moreHeaders.map(
    more =>
      (sent: Sent): Sent => ({ ...sent, headers: [...sent.headers, ...Object.entries(more)] }),
  ),
  changed.map(
    change =>
      (sent: Sent): Sent => ({ ...sent, body: Buffer.from(change(Buffer.from(sent.body).toString())) }),
  ),
)

/** A field of the event that is something else. */
const broken = fc.tuple(
  fc.constantFrom(
    'body',
    'headers',
    'rawPath',
    'path',
    'requestContext',
    'isBase64Encoded',
    'multiValueHeaders',
    'rawQueryString',
    'httpMethod',
  ),
  fc.jsonValue({ maxDepth: 2 }),
)

/** One time in so many and one more; undefined otherwise. */
const seldom = <T>(times: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: times, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

/** Whatever may come for the hooks of a scene. */
export const inputsFor = (scene: Scene): fc.Arbitrary<Input> =>
  fc
    .record({
      hook: fc.constantFrom(...scene.hooks),
      proof: proofs,
      body: fc.oneof({ weight: 3, arbitrary: fc.nat() }, { weight: 2, arbitrary: bodies }),
      fault: seldom(2, faults),
      breach: seldom(12, broken),
      dialect: fc.constantFrom(...Object.values(dialects)),
      source: fc.nat(),
      rubbish: seldom(40, fc.jsonValue()),
    })
    .map(({ hook, proof, body: asked, fault, breach, dialect, source, rubbish }): Input => {
      const taskId = hook.taskId ?? (typeof asked === 'number' ? `task-${asked % 1000}` : 'task-1')
      const body = typeof asked === 'number' ? Buffer.from(honestBody(taskId, asked)) : asked
      const { headers, signed, honest = false } = proof({ scene, hook, body, taskId })
      const plain: Sent = {
        ...{ method: 'POST', path: new URL(hook.url).pathname, query: '', body, source: `source ${source}` },
        headers: [['content-type', 'application/json'], ...Object.entries(headers)],
      }
      const sent = fault?.(plain) ?? plain
      const event = { ...dialect(sent), ...(breach && { [breach[0]]: breach[1] }) }
      const right = honest && typeof asked === 'number' && !fault && !breach && rubbish === undefined
      return { hook, honest: right && hook.live, signed, event: rubbish ?? event }
    })
