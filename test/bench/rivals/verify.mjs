// Other libraries that verify a JWT, each as its README shows: issuer, audience and time checked, the key set fetched once and kept. Plain JavaScript: its packages are not there at the first install.
import { createPublicKey } from 'node:crypto'
import { JwtVerifier } from 'aws-jwt-verify'
import { createVerifier } from 'fast-jwt'
import jsonwebtoken from 'jsonwebtoken'
import jwksRsa from 'jwks-rsa'

/** Each makes a function that takes a JWT and its audience, and throws unless it is right. */
export const verifiers = {
  'jsonwebtoken + jwks-rsa': ({ jwks, issuer, jwksUrl }) => {
    const client = jwksRsa({ jwksUri: jwksUrl, fetcher: async () => jwks, rateLimit: true })
    const find = (header, done) =>
      client.getSigningKey(header.kid).then(
        key => done(null, key.getPublicKey()),
        error => done(error),
      )
    return (jwt, audience) =>
      new Promise((resolve, reject) => {
        jsonwebtoken.verify(jwt, find, { issuer, audience, algorithms: ['RS256'] }, (error, claims) =>
          error ? reject(error) : resolve(claims),
        )
      })
  },
  'aws-jwt-verify': ({ jwks, issuer, jwksUrl }) => {
    const verifier = JwtVerifier.create({ issuer, jwksUri: jwksUrl, audience: null })
    // It takes Cognito's and other RSA sets; a key of another kind would not be found.
    verifier.cacheJwks({ keys: jwks.keys.filter(({ kty }) => kty === 'RSA') })
    return (jwt, audience) => verifier.verify(jwt, { audience })
  },
  'fast-jwt, key given': ({ jwks, issuer }) => {
    const key = pemOf(jwks, 'key-RS256')
    return (jwt, audience) => createVerifierFor(issuer, audience, key)(jwt)
  },
  'fast-jwt, key asked for': ({ jwks, issuer }) => {
    const pems = new Map(jwks.keys.map(({ kid }) => [kid, pemOf(jwks, kid)]))
    const key = async ({ header }) => pems.get(header.kid)
    return (jwt, audience) => createVerifierFor(issuer, audience, key)(jwt)
  },
}

const pemOf = ({ keys }, kid) =>
  createPublicKey({ key: keys.find(key => key.kid === kid), format: 'jwk' }).export({
    type: 'spki',
    format: 'pem',
  })

const made = new Map()

/** A verifier holds one audience; ours differs by hook, so that each hook has one. */
function createVerifierFor(allowedIss, allowedAud, key) {
  const known = made.get(allowedAud) ?? createVerifier({ key, allowedIss, allowedAud, algorithms: ['RS256'] })
  made.set(allowedAud, known)
  return known
}
