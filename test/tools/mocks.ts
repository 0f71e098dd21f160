// Answers Pulumi and SST's components as AWS would, just far enough that every resource gets a name, an ARN and an address.
import type { runtime } from '@pulumi/pulumi'

const region = 'eu-west-1'
const account = '123456789012'

/** One thing that a deploy would make: Pulumi type, logical name, and what was asked for. */
export type Resource = { type: string; name: string; inputs: Record<string, unknown> }

/** @param made takes every resource that is registered */
export const mocks = (made: Resource[]): runtime.Mocks => ({
  newResource: ({ type, name, inputs }) => {
    made.push({ type, name, inputs })
    const physical = String(inputs.name ?? name)
    const state = { ...inputs, name: physical, arn: arnOf(type, physical), ...more(type, physical, inputs) }
    return { id: 'url' in state ? String(state.url) : physical, state }
  },
  call: ({ token, inputs }) => answers[token]?.(inputs) ?? inputs,
})

function arnOf(type: string, name: string): string {
  const kind = type.split('/')[0]
  if (kind === 'aws:sqs') return `arn:aws:sqs:${region}:${account}:${name}`
  if (kind === 'aws:dynamodb') return `arn:aws:dynamodb:${region}:${account}:table/${name}`
  if (kind === 'aws:iam') return `arn:aws:iam::${account}:role/${name}`
  if (kind === 'aws:lambda') return `arn:aws:lambda:${region}:${account}:function:${name}`
  return `arn:aws:other:${region}:${account}:${name}`
}

function more(type: string, name: string, inputs: Record<string, unknown>): Record<string, unknown> {
  if (type === 'aws:sqs/queue:Queue') return { url: `https://sqs.${region}.amazonaws.com/${account}/${name}` }
  if (type === 'aws:lambda/functionUrl:FunctionUrl')
    return { functionUrl: `https://${name.toLowerCase()}.lambda-url.${region}.on.aws/` }
  if (type === 'random:index/randomBytes:RandomBytes')
    return { base64: Buffer.alloc(Number(inputs.length)).toString('base64') }
  return {}
}

type Statement = { effect?: string; actions?: string[]; resources?: string[]; principals?: unknown }

const answers: Record<string, (inputs: Record<string, unknown>) => Record<string, unknown>> = {
  'aws:index/getPartition:getPartition': () => ({ partition: 'aws', dnsSuffix: 'amazonaws.com' }),
  'aws:index/getRegion:getRegion': () => ({ region, name: region, id: region }),
  'aws:index/getCallerIdentity:getCallerIdentity': () => ({ accountId: account }),
  // Components leave a role without policy when no statements come back.
  'aws:iam/getPolicyDocument:getPolicyDocument': ({ statements }) => ({
    statements,
    json: JSON.stringify({ Statement: (Array.isArray(statements) ? statements : []).map(statement) }),
  }),
}

const statement = ({ effect = 'Allow', actions, resources, principals }: Statement) => ({
  Effect: effect,
  Action: actions,
  Resource: resources,
  Principal: principals,
})
