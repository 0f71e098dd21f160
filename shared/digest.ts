// Compares the claim request_body_sha256 with a body, as received or as the 2025 A2A samples would have written it. Pure.
import { timingSafeEqual } from 'node:crypto'
import { parseBody } from './a2a/read.ts'
import { sha256 } from './hash.ts'

/** Over which bytes the digest was right. */
export type DigestMatch = 'raw' | 'compact'

/**
 * Tells which form of the body a digest covers, if any.
 * @param claimed the claim; hex in either case, nothing else
 */
export function matchDigest(claimed: unknown, body: Uint8Array): DigestMatch | undefined {
  if (typeof claimed !== 'string' || !/^[\da-f]{64}$/i.test(claimed)) return undefined
  const wanted = Buffer.from(claimed, 'hex')
  if (timingSafeEqual(wanted, sha256(body))) return 'raw'
  const compact = compactJson(body)
  return compact !== undefined && timingSafeEqual(wanted, sha256(compact)) ? 'compact' : undefined
}

/**
 * The body without blanks between tokens and without needless escapes. The samples hash Python's
 * `json.dumps(…, ensure_ascii=False, separators=(',', ':'))` and older httpx sends another spelling of it. The text is
 * rewritten token by token, so that numbers such as 1.0 and the order of members stay as they were sent.
 */
function compactJson(body: Uint8Array): string | undefined {
  // Only JSON that is read afterwards is rewritten: in it every string ends, which keeps the replacement linear.
  if (!parseBody(body).ok) return undefined
  const text = new TextDecoder().decode(body)
  return text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|[\t\n\r ]+/g, token => {
    if (!token.startsWith('"')) return ''
    return token.includes('\\') ? JSON.stringify(JSON.parse(token)) : token
  })
}
