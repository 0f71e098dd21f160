// The little of express that the demo agent touches, declared here because express ships no types. Declares; runs nothing.
declare module 'express' {
  import type { IncomingMessage, ServerResponse } from 'node:http'
  export type Request = IncomingMessage & { body?: unknown; path: string; method: string }
  export type Response = ServerResponse & {
    status: (code: number) => Response
    json: (body: unknown) => void
  }
  export type RequestHandler = (request: Request, response: Response, next: () => void) => unknown
  export type Application = {
    (request: IncomingMessage, response: ServerResponse): void
    use: (...handlers: (string | RequestHandler)[]) => void
    get: (path: string, handler: RequestHandler) => void
  }
  const express: {
    (): Application
    json: (options: { type: string[]; strict: boolean; limit: string }) => RequestHandler
  }
  export default express
}
