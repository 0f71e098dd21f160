// Speaks to an agent as a client app does: by the SDK's own client, in whatever version and binding the card offers.
import { randomUUID } from 'node:crypto'
import { SendMessageRequest, TaskPushNotificationConfig } from '@a2a-js/sdk'
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client'

export type Caller = {
  /** The SDK's client, for everything else. */
  client: Client
  /**
   * Sends a message without waiting for the task to end.
   * @param more the task it belongs to, or the push config (in the shape of 1.0) to set with a new one
   * @returns the task's id
   */
  send: (text: string, more?: { taskId?: string; config?: unknown }) => Promise<string>
}

/** @param bearer token that every call carries; the task belongs to its principal */
export async function callAgent(cardUrl: string, bearer?: string): Promise<Caller> {
  const legacyCompat = { enabled: true }
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    if (bearer !== undefined) headers.set('Authorization', `Bearer ${bearer}`)
    return fetch(input, { ...init, headers })
  }
  const factory = new ClientFactory({
    transports: [
      new JsonRpcTransportFactory({ legacyCompat, fetchImpl }),
      new RestTransportFactory({ legacyCompat, fetchImpl }),
    ],
    cardResolver: new DefaultAgentCardResolver({ legacyCompat, fetchImpl }),
  })
  const { origin, pathname } = new URL(cardUrl)
  const client = await factory.createFromUrl(origin, pathname)
  return {
    client,
    send: async (text, { taskId, config } = {}) => {
      const request = SendMessageRequest.fromJSON({
        message: {
          messageId: randomUUID(),
          role: 'ROLE_USER',
          parts: [{ text }],
          ...(taskId !== undefined && { taskId }),
        },
        configuration: { returnImmediately: true },
      })
      if (config !== undefined && request.configuration !== undefined)
        request.configuration.taskPushNotificationConfig = TaskPushNotificationConfig.fromJSON(config)
      const result = await client.sendMessage(request)
      return 'messageId' in result ? result.taskId : result.id
    },
  }
}
