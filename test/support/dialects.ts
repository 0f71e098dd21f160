// One HTTP request in every event shape that Lambda may hand over, as the AWS documentation of each front door shows it. Pure.

/** A request as it left the sender. */
export type Sent = {
  method: string
  path: string
  /** Without its question mark. */
  query: string
  /** Lines in order; a name may come twice. */
  headers: [name: string, value: string][]
  body: Uint8Array
  /** Address of the sender. */
  source: string
}

/** Makes the event of a request. */
export type Dialect = (sent: Sent) => Record<string, unknown>

/** Everything that a front door may put between sender and function. */
export const dialects = {
  'Function URL': sent => payload2(sent, 'lambda-url.us-east-1.on.aws'),
  'HTTP API': sent => ({
    ...payload2(sent, 'execute-api.us-east-1.amazonaws.com'),
    routeKey: 'ANY /{proxy+}',
  }),
  'REST API': restApi,
  'REST API that also tells a raw path': sent => ({ ...restApi(sent), rawPath: sent.path }),
  'load balancer': sent => ({
    ...balancer(sent),
    headers: joined(forwarded(sent), ','),
    queryStringParameters: Object.fromEntries(new URLSearchParams(sent.query)),
  }),
  'load balancer with lists of headers': sent => ({
    ...balancer(sent),
    multiValueHeaders: listed(forwarded(sent)),
    multiValueQueryStringParameters: listed([...new URLSearchParams(sent.query)]),
  }),
  'VPC Lattice': lattice,
} as const satisfies Record<string, Dialect>

/** Payload format 2.0: header names in lower case, repeated ones joined by commas. */
function payload2({ method, path, query, headers, body, source }: Sent, domain: string) {
  const names = headers.map(([name, value]): [string, string] => [name.toLowerCase(), value])
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    headers: joined(names, ','),
    ...(query !== '' && { queryStringParameters: joined([...new URLSearchParams(query)], ',') }),
    requestContext: {
      accountId: 'anonymous',
      apiId: 'a1b2c3',
      domainName: `a1b2c3.${domain}`,
      http: { method, path, protocol: 'HTTP/1.1', sourceIp: source, userAgent: 'test' },
      requestId: 'r-1',
      stage: '$default',
      timeEpoch: 0,
    },
    ...bodyOf(body, body.length > 0),
  }
}

/** Payload format 1.0: headers as they were sent, both as the last value and as lists; no body is null. */
function restApi({ method, path, query, headers, body, source }: Sent) {
  const parameters = [...new URLSearchParams(query)]
  return {
    resource: '/{proxy+}',
    path,
    httpMethod: method,
    headers: Object.fromEntries(headers),
    multiValueHeaders: listed(headers),
    queryStringParameters: query === '' ? null : Object.fromEntries(parameters),
    multiValueQueryStringParameters: query === '' ? null : listed(parameters),
    pathParameters: { proxy: path.slice(1) },
    stageVariables: null,
    requestContext: {
      accountId: '123456789012',
      httpMethod: method,
      identity: { sourceIp: source, userAgent: 'test' },
      path: `/prod${path}`,
      stage: 'prod',
    },
    ...(body.length === 0 ? { body: null, isBase64Encoded: false } : bodyOf(body, false)),
  }
}

/** A target group's event names its caller in the header that the load balancer itself wrote. */
const balancer = ({ method, path, body }: Sent) => ({
  requestContext: {
    elb: { targetGroupArn: 'arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/rouse/6d0ecf83' },
  },
  httpMethod: method,
  path,
  ...bodyOf(body, false),
})

/** Version 2.0 of VPC Lattice: every header is a list. */
function lattice(sent: Sent) {
  const { method, path, query, body } = sent
  return {
    version: '2.0',
    path: query === '' ? path : `${path}?${query}`,
    method,
    headers: listed(forwarded(sent)),
    queryStringParameters: listed([...new URLSearchParams(query)]),
    requestContext: {
      serviceArn: 'arn:aws:vpc-lattice:us-east-1:123456789012:service/svc-1',
      identity: { sourceVpcArn: 'arn:aws:ec2:us-east-1:123456789012:vpc/vpc-1' },
      region: 'us-east-1',
      timeEpoch: '0',
    },
    ...bodyOf(body, false),
  }
}

/** Balancers write header names in lower case and append the address of the caller to what it says itself. */
function forwarded({ headers, source }: Sent): [string, string][] {
  const lower = headers.map(([name, value]): [string, string] => [name.toLowerCase(), value])
  const told = lower.filter(([name]) => name === 'x-forwarded-for').map(([, value]) => value)
  return [
    ...lower.filter(([name]) => name !== 'x-forwarded-for'),
    ['x-forwarded-for', [...told, source].join(', ')],
  ]
}

/** Text as it is unless the front door makes base64 of everything; what is no text is always base64. */
function bodyOf(body: Uint8Array, always: boolean) {
  const bytes = Buffer.from(body)
  const text = bytes.toString()
  const encoded = always || !Buffer.from(text).equals(bytes)
  return { body: encoded ? bytes.toString('base64') : text, isBase64Encoded: encoded }
}

function listed(lines: [string, string][]): Record<string, string[]> {
  const lists = new Map<string, string[]>()
  for (const [name, value] of lines) lists.set(name, [...(lists.get(name) ?? []), value])
  return Object.fromEntries(lists)
}

const joined = (lines: [string, string][], by: string): Record<string, string> =>
  Object.fromEntries(Object.entries(listed(lines)).map(([name, values]) => [name, values.join(by)]))
