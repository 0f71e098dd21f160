// Our signer writes the very headers that the SDK's own does, whatever the request, and leaves to it what is none of our plain calls.
import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { signQuickly } from '../../shared/signer.ts'

const region = 'eu-north-1'
const keys = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' }
const withToken = { ...keys, sessionToken: 'FwoGZXIvYXdzE//example==' }
type Credentials = typeof keys & { sessionToken?: string }

/** The SDK's own signer, ours in front of it, and how often ours asked it. */
function signersFor(credentials: Credentials) {
  const { config } = new DynamoDBClient({ region, credentials })
  const sdk = config.signer
  let asked = 0
  const quick = {
    signer: (scheme?: Parameters<typeof sdk>[0]) => {
      asked++
      return sdk(scheme)
    },
    credentials: config.credentials,
    region: config.region,
    defaultSigningName: 'dynamodb',
  }
  signQuickly(quick)
  return { sdk, quick, asked: () => asked }
}

type Headers = Record<string, string>
type Request = ReturnType<typeof requestOf>

const requestOf = (headers: Headers, more: Record<string, unknown> = {}) => ({
  protocol: 'https:',
  hostname: 'dynamodb.eu-north-1.amazonaws.com',
  method: 'POST',
  path: '/',
  query: {},
  headers: { ...headers },
  body: '{}',
  ...more,
})

const usual: Headers = {
  host: 'dynamodb.eu-north-1.amazonaws.com',
  'content-type': 'application/x-amz-json-1.0',
  'content-length': '2',
  'x-amz-target': 'DynamoDB_20120810.PutItem',
  'user-agent': 'aws-sdk-js/3',
  'amz-sdk-request': 'attempt=1; max=2',
}
const signingDate = new Date('2026-03-04T05:06:07.890Z')

/** What either signer makes of a request. */
async function both(
  request: Request,
  options: object = { signingDate },
  credentials: Credentials = withToken,
) {
  const { sdk, quick, asked } = signersFor(credentials)
  const theirs = await (await sdk()).sign({ ...request, headers: { ...request.headers } }, options)
  const ours = await (await quick.signer()).sign({ ...request, headers: { ...request.headers } }, options)
  return { theirs: theirs.headers, ours: ours.headers, asked: asked() }
}

const name = fc.oneof(
  fc.constantFrom(...Object.keys(usual), 'x-amz-date', 'x-amz-date-2', 'x-amz-security-token', 'date'),
  fc.constantFrom('authorization', 'Authorization', 'X-Amzn-Trace-Id', 'connection', 'Expect', 'Host'),
  fc.constantFrom('proxy-x', 'sec-x', 'x-amz-content-sha256', 'X-Amz-Content-Sha256', 'x_y', 'a', 'a-b'),
  fc.stringMatching(/^[a-z][a-z\d-]{0,12}$/),
  fc.stringMatching(/^[A-Za-z][A-Za-z\d!#$%&'*+.^_`|~-]{0,6}$/),
)
const value = fc.oneof(
  fc.stringMatching(/^[!-~]([ -~]{0,20}[!-~])?$/),
  fc.string({ maxLength: 12 }),
  fc.constantFrom('', ' ', ' a', 'a ', 'a  b', 'a\tb', 'a\r\nb', 'é', '\u0000'),
)
const headers = fc.dictionary(name, value, { maxKeys: 10 }).map(some => ({ ...usual, ...some }))
const body = fc.oneof(fc.string({ unit: 'binary' }), fc.uint8Array(), fc.constant(undefined))
const date = fc.date({ min: new Date(0), max: new Date('2099-12-31'), noInvalidDate: true })
const credentials = fc.record(
  {
    accessKeyId: fc.string({ minLength: 1 }),
    secretAccessKey: fc.string({ minLength: 1 }),
    sessionToken: value,
  },
  { requiredKeys: ['accessKeyId', 'secretAccessKey'] },
)
const place = fc.record(
  { signingRegion: fc.constantFrom('us-east-1', 'cn-north-1'), signingService: fc.constantFrom('sqs', 'x') },
  { requiredKeys: [] },
)

test('whatever the request, date, place and credentials, the headers are those of the SDK', async () => {
  await fc.assert(
    fc.asyncProperty(
      headers,
      body,
      date,
      place,
      credentials,
      async (headers, body, signingDate, place, own) => {
        const { theirs, ours } = await both(requestOf(headers, { body }), { signingDate, ...place }, own)
        expect(ours).toEqual(theirs)
      },
    ),
    { numRuns: 500 },
  )
})

test('methods, paths and queries that we never use are signed by the SDK', async () => {
  // One at a time, so that none of them hides behind another.
  const odd = fc.oneof(
    fc.record({ method: fc.constantFrom('GET', 'PUT', 'post') }),
    fc.record({ path: fc.constantFrom('', '/a', '/a b', '//', '/%20') }),
    fc.record({
      query: fc.dictionary(fc.string({ minLength: 1 }), fc.string(), { minKeys: 1, maxKeys: 3 }),
    }),
    fc.record({ body: fc.constantFrom(undefined, null) }),
  )
  await fc.assert(
    fc.asyncProperty(odd, async more => {
      const { theirs, ours, asked } = await both(requestOf(usual, more))
      expect(ours).toEqual(theirs)
      expect(asked).toBe(1)
    }),
    { numRuns: 100 },
  )
})

test('a plain call is signed without the SDK, with a session token and without', async () => {
  for (const own of [keys, withToken]) {
    const { theirs, ours, asked } = await both(requestOf(usual), { signingDate }, own)
    expect(ours).toEqual(theirs)
    expect(asked).toBe(0)
    expect(ours['x-amz-security-token']).toBe('sessionToken' in own ? withToken.sessionToken : undefined)
  }
})

test('the date is the one that the SDK gives, its correction of the clock included', async () => {
  const { ours } = await both(requestOf(usual), { signingDate: new Date('2031-12-31T23:59:59.999Z') })
  expect(ours['x-amz-date']).toBe('20311231T235959Z')
  expect(ours.authorization).toContain('/20311231/eu-north-1/dynamodb/aws4_request')
})

test('a second attempt, another day and renewed credentials are signed as if they came first', async () => {
  let present: Credentials = keys
  const { quick } = signersFor(keys)
  const renewing = { ...quick, credentials: async () => present }
  signQuickly(renewing)
  const signer = await renewing.signer()
  const request = requestOf(usual)
  const steps: [Credentials, string][] = [
    [keys, '2026-03-04T05:06:07Z'],
    [keys, '2026-03-04T05:06:08Z'],
    [keys, '2026-03-05T00:00:00Z'],
    [withToken, '2026-03-05T00:00:01Z'],
    [{ ...withToken, secretAccessKey: 'another' }, '2026-03-05T00:00:02Z'],
  ]
  for (const [own, at] of steps) {
    present = own
    const signingDate = new Date(at)
    const { theirs } = await both(requestOf(usual), { signingDate }, own)
    const { headers } = await signer.sign(request, { signingDate })
    expect(headers).toEqual(theirs)
  }
})

/** A connection that keeps what it is to carry and carries nothing. */
function keeper() {
  const sent: Request[] = []
  const handle = async (request: Request): Promise<never> => {
    sent.push(request)
    throw new Error('Not carried')
  }
  return { sent, options: { region, credentials: withToken, maxAttempts: 1, requestHandler: { handle } } }
}

test('what the clients really send is signed by us, as the SDK would sign it', async () => {
  const { sent, options } = keeper()
  const dynamodb = new DynamoDBClient(options)
  const sqs = new SQSClient(options)
  const theirs = [await dynamodb.config.signer(), await sqs.config.signer()]
  for (const { config } of [dynamodb, sqs])
    config.signer = () => Promise.reject(new Error('The SDK was asked'))
  signQuickly(dynamodb.config)
  signQuickly(sqs.config)
  const put = new PutItemCommand({ TableName: 'rouse', Item: { pk: { S: 'ä' } } })
  const send = new SendMessageCommand({
    QueueUrl: 'https://sqs.eu-north-1.amazonaws.com/1/q',
    MessageBody: 'ä',
  })
  await expect(dynamodb.send(put)).rejects.toThrow('Not carried')
  await expect(sqs.send(send)).rejects.toThrow('Not carried')
  for (const [at, { headers, ...request }] of sent.entries()) {
    const { authorization, ...unsigned } = headers
    const [, year, month, day, hour, minute, second] =
      /^(....)(..)(..)T(..)(..)(..)Z$/.exec(headers['x-amz-date'] ?? '') ?? []
    const signingDate = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
    const again = await theirs[at]?.sign({ ...request, headers: unsigned }, { signingDate })
    expect(again?.headers.authorization).toBe(authorization)
  }
  expect(sent).toHaveLength(2)
})
