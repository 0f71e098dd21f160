// The schema of the credentials that agents are called with. They are sealed at once and never returned.
import * as z from 'zod'

/** What a header can carry unchanged: blanks at the ends would be trimmed on the way. */
const secretText = z
  .string()
  .min(1)
  .max(8192)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, 'Expected visible ASCII')

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
  z.strictObject({
    type: z.literal('apiKey'),
    in: z.enum(['header', 'query']),
    name: z.string().regex(/^[\w!#$%&'*+.^`|~-]{1,64}$/, 'Expected a header or parameter name'),
    value: secretText,
  }),
])
