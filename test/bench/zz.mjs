import { DynamoDBClient, PutItemCommand } from '@aws-sdk/client-dynamodb'
import { SQSClient, SendMessageCommand } from '@aws-sdk/client-sqs'
import { readFileSync } from 'node:fs'
import { createAws } from './aws.ts'
const scene = JSON.parse(readFileSync('/tmp/scene.json','utf8')); Object.assign(process.env, scene.env)
const mode = process.argv[2]
const aws = createAws(scene)
const credentials = { accessKeyId: scene.env.AWS_ACCESS_KEY_ID, secretAccessKey: scene.env.AWS_SECRET_ACCESS_KEY, sessionToken: scene.env.AWS_SESSION_TOKEN }
const tuned = { region: 'us-east-1', credentials, cacheMiddleware: true, maxAttempts: 2, requestHandler: aws }
const cfg = mode === 'default' ? { requestHandler: aws } : { ...tuned, ...(mode.includes('endpoint') && { endpoint: 'https://dynamodb.us-east-1.amazonaws.com' }), ...(mode.includes('nosign') && { signer: { sign: async r => r } }), ...(mode.includes('nocache') && {cacheMiddleware: false}) }
const db = new DynamoDBClient(cfg)
const sqs = new SQSClient({...cfg, ...(mode.includes('endpoint') && {endpoint:'https://sqs.us-east-1.amazonaws.com'}), ...(mode !== 'default' && { md5: false })})
if (mode.includes('noua')) { db.middlewareStack.remove('getUserAgentMiddleware'); sqs.middlewareStack.remove('getUserAgentMiddleware') }
const opts = () => mode.includes('abort') ? [{ abortSignal: AbortSignal.timeout(3000) }] : mode.includes('static') ? [{}] : []
let n = 0
const call = async () => {
  n++
  const at = Date.now()
  await db.send(new PutItemCommand({ TableName: 'rouse', Item: { pk: { S: 'N#' + n }, sk: { S: '.' }, taskId: { S: 'task' + n }, state: { S: 'completed' }, at: { N: String(at) }, ttl: { N: '1867225600' } }, ConditionExpression: 'attribute_not_exists(pk)' }), ...opts())
  await sqs.send(new SendMessageCommand({ QueueUrl: scene.env.LOOK_QUEUE_URL, MessageBody: JSON.stringify({ key: 'N#' + n, taskId: 'task', state: 'completed', at }) }), ...opts())
}
for (let i = 0; i < 1500; i++) await call()
const costs = []
for (let b = 0; b < 10; b++) { const x = process.cpuUsage(); for (let i = 0; i < 150; i++) await call(); const c = process.cpuUsage(x); costs.push((c.user + c.system) / 150) }
costs.sort((a, b) => a - b)
process.stderr.write(`${mode.padEnd(30)} median ${costs[5].toFixed(0)} min ${costs[0].toFixed(0)}\n`)
