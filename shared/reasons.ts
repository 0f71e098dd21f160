// The one table of reasons why a push is refused, in words for the agent's owner. What is wrong with a proof is never shown to the sender: that would help a guesser.

const table = {
  no_proof: 'The push carried neither the token nor the Authorization that was handed out with the hook.',
  wrong_token: 'The notification token is not the one handed out with the hook.',
  wrong_credentials: 'The Authorization credentials are not the ones handed out with the hook.',
  scheme_unsupported: 'The Authorization scheme is not the one that this agent was registered with.',
  authorization_malformed: 'The Authorization header is not "<scheme> <credentials>" with a blank between.',
  several_authorizations: 'There was more than one Authorization value.',
  jwt_missing: 'The agent is registered with signed pushes, but this one carried no Bearer token.',
  jwt_malformed: 'The Bearer token is no signed JWT: three base64url parts, JSON header and JSON claims.',
  jwt_too_long: 'The Bearer token is longer than 8192 characters.',
  alg_not_allowed: 'The JWT is signed by an algorithm that is not on the registered list, or by none.',
  crit_not_supported: 'The JWT header asks for an extension (crit, b64) that is not supported.',
  issuer_wrong: 'The claim iss is not the registered issuer, letter for letter.',
  audience_wrong: 'The claim aud does not hold the hook URL (or the registered audience), letter for letter.',
  time_malformed: 'One of the claims iat, exp, nbf is no number of seconds since 1970.',
  time_in_milliseconds:
    'One of the claims iat, exp, nbf seems to be in milliseconds; JWT times are in seconds.',
  expired: 'The claim exp is over, skew included.',
  too_old: 'The claim iat is further back than the window and the skew; check the clocks.',
  from_the_future: 'The claim iat or nbf is further ahead than the skew; check the clocks.',
  lifetime_too_long: 'The JWT has no iat, and by its exp it would live for more than an hour.',
  no_freshness: 'The JWT has neither iat nor exp, so that nothing tells a replay from a new push.',
  not_a_push:
    'The JWT names neither a task (taskId) nor a body (request_body_sha256): it may be a token of another kind.',
  unknown_key: 'The agent publishes no key that fits the JWT: kid, algorithm and permitted use.',
  signature_wrong: 'The signature does not fit the keys that the agent publishes.',
  digest_missing: 'The rule requires the claim request_body_sha256, and the JWT has none.',
  digest_wrong: 'The claim request_body_sha256 (hex) is not the SHA-256 of the body.',
  task_claim_differs: 'The claim taskId names another task than the body, or is no text.',
  keys_unavailable:
    "The agent's keys could not be fetched and none are remembered; the sender was told to try again.",
  body_unreadable:
    'The push was genuine, but its body is no single A2A event as JSON in UTF-8; the sender was told what is wrong.',
  body_too_large:
    'The push was genuine, but its body is larger than 4.4 MB; its task was looked at if the hook or the JWT names it.',
} as const

/** Stable codes: they are counted, logged and shown to the agent's owner. */
export type Reason = keyof typeof table

/** What a reason means, for the agent's owner; undefined for a code that is none. */
export const explain = (reason: string): string | undefined => (isReason(reason) ? table[reason] : undefined)

const isReason = (reason: string): reason is Reason => Object.hasOwn(table, reason)
