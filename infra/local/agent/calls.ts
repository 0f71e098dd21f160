// Names the A2A operation of a request in any version and binding, by its 1.0 name. Pure.

const legacy: Readonly<Record<string, string>> = {
  'message/send': 'SendMessage',
  'message/stream': 'SendStreamingMessage',
  'tasks/get': 'GetTask',
  'tasks/cancel': 'CancelTask',
  'tasks/resubscribe': 'SubscribeToTask',
  'tasks/pushNotificationConfig/set': 'CreateTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/get': 'GetTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/list': 'ListTaskPushNotificationConfigs',
  'tasks/pushNotificationConfig/delete': 'DeleteTaskPushNotificationConfig',
}

/** Paths below the endpoint, `/v1` left away, that mean the same as a JSON-RPC method (A2A 1.0 section 5.3). */
const paths: readonly (readonly [verb: string, path: RegExp, name: string])[] = [
  ['POST', /^\/message:send$/, 'SendMessage'],
  ['POST', /^\/message:stream$/, 'SendStreamingMessage'],
  ['GET', /^\/tasks$/, 'ListTasks'],
  ['POST', /^\/tasks\/[^/]+:cancel$/, 'CancelTask'],
  ['GET', /^\/tasks\/[^/]+$/, 'GetTask'],
  ['POST', /^\/tasks\/[^/]+\/pushNotificationConfigs$/, 'CreateTaskPushNotificationConfig'],
  ['GET', /^\/tasks\/[^/]+\/pushNotificationConfigs$/, 'ListTaskPushNotificationConfigs'],
  ['GET', /^\/tasks\/[^/]+\/pushNotificationConfigs\/[^/]+$/, 'GetTaskPushNotificationConfig'],
  ['DELETE', /^\/tasks\/[^/]+\/pushNotificationConfigs\/[^/]+$/, 'DeleteTaskPushNotificationConfig'],
]

/**
 * @param path below the endpoint
 * @param body the parsed body, if there is one
 */
export function nameCall(verb: string, path: string, body: unknown): string {
  if (typeof body === 'object' && body !== null && 'jsonrpc' in body && 'method' in body)
    return legacy[String(body.method)] ?? String(body.method)
  const below = path.replace(/^\/v1(?=\/)/, '')
  return paths.find(([of, pattern]) => of === verb && pattern.test(below))?.[2] ?? 'other'
}
