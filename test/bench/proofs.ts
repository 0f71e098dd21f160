// Proofs of a push, side by side: the floor's, ours, and those of other libraries, each asked for the same signed JWTs.
import { createRemoteJWKSet, customFetch, jwtVerify } from 'jose'
import { readRequest } from '../../functions/request.ts'
import { refOf } from '../../shared/hooks.ts'
import { createKeySets } from '../../shared/keysets.ts'
import { createMemory } from '../../shared/memory.ts'
import { prove } from '../../shared/proving.ts'
import { createRelay } from '../../shared/relay.ts'
import { keyStore } from '../../shared/store/keysets.ts'
import { createAws } from './aws.ts'
import { rival } from './rival.ts'
import type { Scene } from './scene.ts'
import type { Call, Variant } from './variants.ts'

/** Checks a JWT for its audience; fails unless it is right. */
type Verify = (jwt: string, audience: string) => unknown
type Token = { jwt: string; audience: string }

async function verifying({ pushes, env }: Scene, verify: Verify): Promise<Call> {
  const tokensOf = (kind: 'RS256' | 'bad_signature'): Token[] =>
    pushes[kind].map(({ headers, rawPath }) => ({
      jwt: headers.authorization?.slice('Bearer '.length) ?? '',
      audience: `${env.HOOK_ORIGIN}${rawPath}`,
    }))
  const tokens = tokensOf('RS256')
  // Whoever takes everything is fast.
  await mustRefuse(verify, tokensOf('bad_signature')[0])
  await mustRefuse(verify, tokens[0] && { ...tokens[0], audience: tokens[1]?.audience ?? '' })
  return async n => {
    const token = tokens[n % tokens.length]
    if (token === undefined) throw new Error('There are no tokens')
    await verify(token.jwt, token.audience)
  }
}

async function mustRefuse(verify: Verify, token: Token | undefined): Promise<void> {
  const taken = async () => token !== undefined && (await verify(token.jwt, token.audience))
  const refused = await taken().then(
    () => false,
    () => true,
  )
  if (!refused) throw new Error('A JWT that is wrong was taken')
}

/** The floor's. */
export const byJose: Variant = scene => {
  const fetch = async () => new Response(JSON.stringify(scene.jwks))
  const jwks = createRemoteJWKSet(new URL(scene.env.JWKS_URL ?? ''), { [customFetch]: fetch })
  const issuer = scene.env.ISSUER ?? ''
  return verifying(scene, (jwt, audience) => jwtVerify(jwt, jwks, { issuer, audience }))
}

/** Another library's. */
export const byOther =
  (name: string): Variant =>
  async scene => {
    const { verifiers } = await rival('verify')
    const { ISSUER: issuer, JWKS_URL: jwksUrl } = scene.env
    return verifying(scene, verifiers[name]({ jwks: scene.jwks, issuer, jwksUrl }))
  }

/** Ours, of which the JWT is one part: token, claims, keys, signature, body digest, name for its copies. */
export const byUs: Variant = async scene => {
  const relay = createRelay('receive', scene.env, { now: () => scene.at })
  createAws(scene).serve(relay.table.client, relay.queues.client)
  const { net, table, log, now } = relay
  const court = {
    relay,
    memory: createMemory(now),
    keySets: createKeySets({ net, store: keyStore(table), now, log }),
    now: scene.at,
  }
  const cases = await Promise.all(
    scene.pushes.RS256.map(async push => {
      const request = readRequest(push)
      const known = await court.memory.find(table, refOf(push.rawPath.slice('/hooks/'.length)))
      if (request === undefined || known === undefined) throw new Error('The scene is incomplete')
      return { request, known }
    }),
  )
  return async n => {
    const one = cases[n % cases.length]
    if (one === undefined || !(await prove(court, one.request, one.known)).ok)
      throw new Error('A push that is right was refused')
  }
}
