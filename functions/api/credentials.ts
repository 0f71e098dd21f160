// The schema of the credentials that agents are called with, and where their tokens may be asked for. They are sealed at once and never returned.
import * as z from 'zod'
import { invalidField } from '../../shared/errors.ts'
import type { Credentials } from '../../shared/model.ts'
import type { Relay } from '../../shared/relay.ts'
import { allowedUrl } from './targets.ts'

/** What a header can carry unchanged: blanks at the ends would be trimmed on the way. */
const secretText = z
  .string()
  .min(1)
  .max(8192)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, 'Expected visible ASCII')

/** What both grants of OAuth2 have. `scope` is words with one blank between (RFC 6749 section 3.3). */
const oauth = {
  type: z.literal('oauth2'),
  tokenUrl: z.string().max(2048),
  clientId: secretText.max(1024),
  auth: z.enum(['basic', 'post']).default('basic'),
  scope: secretText.max(2048).optional(),
}

/** Headers that are the transport's (RFC 9110 section 7.6.1) or our own: a key in one of them would never arrive, or break the call. */
const takenHeaders =
  /^(?:host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|content-.*|accept|accept-encoding|a2a-version|traceparent|tracestate|__proto__)$/i

/** How to call an agent; sealed before the table sees it, never returned. */
export const CredentialsRequest = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('bearer'),
    // One word (RFC 6750 section 2.1).
    token: secretText.regex(/^\S+$/, 'Expected no blanks'),
  }),
  z.strictObject({
    type: z.literal('basic'),
    // RFC 7617 section 2: the first colon ends the name.
    username: secretText.regex(/^[^:]+$/, 'Expected no colon'),
    password: secretText,
  }),
  z
    .strictObject({
      type: z.literal('apiKey'),
      in: z.enum(['header', 'query']),
      name: z.string().regex(/^[\w!#$%&'*+.^`|~-]{1,64}$/, 'Expected a header or parameter name'),
      value: secretText,
    })
    .refine(({ in: place, name }) => place !== 'header' || !takenHeaders.test(name), {
      path: ['name'],
      error: 'Not taken: the call itself needs it',
    }),
  z.discriminatedUnion('grant', [
    z.strictObject({
      ...oauth,
      grant: z.literal('client_credentials'),
      clientSecret: secretText,
      audience: secretText.max(2048).optional(),
      resource: secretText.max(2048).optional(),
    }),
    z.strictObject({
      ...oauth,
      grant: z.literal('refresh_token'),
      clientSecret: secretText.optional(),
      refreshToken: secretText,
    }),
  ]),
])

/**
 * Judges where a token is asked for, as every address that is called.
 * @param pointer of the credentials in the request
 * @returns the credentials with that address in its normal form, and its origin if there is one
 */
export function judged(
  relay: Relay,
  credentials: Credentials,
  pointer: string,
): { credentials: Credentials; tokenOrigin?: string } {
  if (credentials.type !== 'oauth2') return { credentials }
  // RFC 6749 section 3.2; an empty one counts, too.
  if (credentials.tokenUrl.includes('#')) throw invalidField(`${pointer}/tokenUrl`, 'Expected no fragment')
  const tokenUrl = allowedUrl(relay, credentials.tokenUrl, `${pointer}/tokenUrl`)
  return { credentials: { ...credentials, tokenUrl }, tokenOrigin: new URL(tokenUrl).origin }
}
