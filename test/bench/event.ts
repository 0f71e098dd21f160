// Makes a Lambda Function URL event of a push: the body in base64, the gateway's headers beside the sender's. Pure.
import type { LambdaFunctionURLEvent } from 'aws-lambda'

const userAgent = 'python-httpx/0.28.1'
const sourceIp = '203.0.113.7'

/** A push as Lambda hands it over. */
export function eventOf(hook: string, body: string, headers: Record<string, string>): LambdaFunctionURLEvent {
  const path = `/hooks/${hook}`
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: '',
    headers: {
      'content-length': String(Buffer.byteLength(body)),
      'x-amzn-tls-version': 'TLSv1.3',
      'x-amzn-tls-cipher-suite': 'TLS_AES_128_GCM_SHA256',
      'x-amzn-trace-id': 'Root=1-6759e988-bd862e3fe1be46a994272793',
      'x-forwarded-proto': 'https',
      'x-forwarded-port': '443',
      'x-forwarded-for': sourceIp,
      host: 'hooks.rouse.example',
      'content-type': 'application/json',
      'user-agent': userAgent,
      accept: '*/*',
      'accept-encoding': 'gzip, deflate',
      ...headers,
    },
    requestContext: {
      accountId: 'anonymous',
      apiId: 'bench',
      domainName: 'hooks.rouse.example',
      domainPrefix: 'bench',
      http: { method: 'POST', path, protocol: 'HTTP/1.1', sourceIp, userAgent },
      requestId: 'e1506fd5-9e7b-434f-bd42-4f8fa224b599',
      routeKey: '$default',
      stage: '$default',
      time: '01/Jan/2026:00:00:00 +0000',
      timeEpoch: 1_767_225_600_000,
    },
    body: Buffer.from(body).toString('base64'),
    isBase64Encoded: true,
  }
}
