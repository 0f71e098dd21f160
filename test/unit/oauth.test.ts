// What is asked of a token endpoint, and what its answers come to, over a real connection.
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import type { OAuth } from '../../shared/model.ts'
import { askForToken } from '../../shared/oauth.ts'
import { loopbackNet } from '../support/net.ts'
import { type Answer, startReceiver } from '../support/receiver.ts'

const host = await startReceiver()
afterAll(host.stop)
beforeEach(() => {
  host.requests.length = 0
})

const now = Date.UTC(2026, 2, 9)
const client = { type: 'oauth2', tokenUrl: `${host.origin}/token`, clientId: 'a b', auth: 'basic' } as const
const byClient: OAuth = { ...client, grant: 'client_credentials', clientSecret: 's:é+1' }
const byToken: OAuth = { ...client, auth: 'post', grant: 'refresh_token', refreshToken: 'r-1' }

async function asked(oauth: OAuth, refreshToken?: string) {
  host.answer({ body: JSON.stringify({ access_token: 't', token_type: 'Bearer' }) })
  await askForToken(loopbackNet, oauth, refreshToken, now)
  const [{ method = '', url = '', headers = {}, body = '' } = {}] = host.requests
  return {
    method,
    url,
    authorization: headers.authorization,
    form: Object.fromEntries(new URLSearchParams(body)),
  }
}

test('client credentials go in a Basic header, both halves form-encoded', async () => {
  const { authorization, ...rest } = await asked({
    ...byClient,
    scope: 'a b',
    audience: 'x',
    resource: 'https://y',
  })
  expect(rest).toEqual({
    method: 'POST',
    url: '/token',
    form: { grant_type: 'client_credentials', scope: 'a b', audience: 'x', resource: 'https://y' },
  })
  expect(Buffer.from(authorization?.slice(6) ?? '', 'base64').toString()).toBe('a+b:s%3A%C3%A9%2B1')
})

test('or in the body, where the server wants them there', async () => {
  expect(await asked({ ...byClient, auth: 'post' })).toMatchObject({
    authorization: undefined,
    form: { client_id: 'a b', client_secret: 's:é+1' },
  })
})

test('the latest refresh token is sent, and a public client only names itself', async () => {
  expect(await asked(byToken, 'r-2')).toMatchObject({
    authorization: undefined,
    form: { grant_type: 'refresh_token', refresh_token: 'r-2', client_id: 'a b' },
  })
})

describe('an answer', () => {
  const come = (answer: Answer) => {
    host.answer(answer)
    return askForToken(loopbackNet, byClient, undefined, now)
  }
  const json = (value: unknown, status = 200): Answer => ({ status, body: JSON.stringify(value) })
  const token = { access_token: 't-1', token_type: 'bearer' }

  test.each([
    ['its life in seconds', { expires_in: 60 }, { lifeMs: 60_000 }],
    ['its life as text', { expires_in: '60' }, { lifeMs: 60_000 }],
    ['no life', {}, { lifeMs: 300_000 }],
    ['an absurd life', { expires_in: 1e12 }, { lifeMs: 86_400_000 }],
    ['a life that is none', { expires_in: -1 }, { lifeMs: 300_000 }],
    ['a rotated refresh token', { refresh_token: 'r-9' }, { refreshToken: 'r-9' }],
    ['an empty refresh token', { refresh_token: '' }, {}],
  ])('with %s is a grant', async (_name, more, read) => {
    expect(await come(json({ ...token, ...more }))).toMatchObject({ ok: true, accessToken: 't-1', ...read })
  })

  test.each<[name: string, answer: Answer, spent: boolean]>([
    ['invalid_grant', json({ error: 'invalid_grant' }, 400), true],
    ['invalid_client', json({ error: 'invalid_client' }, 401), true],
    ['unauthorized_client', json({ error: 'unauthorized_client' }, 400), true],
    ['a 200 that says invalid_grant', json({ error: 'invalid_grant' }), true],
    ['temporarily_unavailable', json({ error: 'temporarily_unavailable' }, 400), false],
    ['a 500 that calls the grant invalid', json({ error: 'invalid_grant' }, 500), false],
    ['a redirect', { status: 307, headers: { location: `${host.origin}/else` } }, false],
    ['a page', { body: '<html>' }, false],
    ['a token of another type', json({ ...token, token_type: 'mac' }), false],
    ['a token that no header can carry', json({ ...token, access_token: 'a\nb' }), false],
    ['a body without end', { body: 'x'.repeat(70_000) }, false],
    ['a reset', { fault: 'reset' }, false],
  ])('%s is a refusal; whether for good: %s', async (_name, answer, spent) => {
    expect(await come(answer)).toMatchObject({ ok: false, spent })
    expect(host.requests).toHaveLength(1)
  })

  test('that repeats the secret is freed of it', async () => {
    const refusal = await come(json({ error: 'invalid_client', error_description: 'Not s:é+1' }, 401))
    expect(refusal).toMatchObject({ detail: 'invalid_client Not …' })
  })

  test('says how long to wait', async () => {
    const refusal = await come({ status: 429, headers: { 'retry-after': '9' } })
    expect(refusal).toMatchObject({ spent: false, retryAfterMs: 9000 })
    const day = await come({ status: 503, headers: { 'retry-after': '86400' } })
    expect(day).toMatchObject({ spent: false, retryAfterMs: 15 * 60_000 })
  })
})
