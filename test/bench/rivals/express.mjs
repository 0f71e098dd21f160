// The floor's work behind Express, as an app and as a Lambda handler. Plain JavaScript: its packages are not there at the first install.
import express from 'express'
import serverless from 'serverless-http'

/** @param work takes path, Authorization and body, and gives the status */
export function createApp(work) {
  const app = express()
  app.post('/hooks/:hook', express.text({ type: 'application/json' }), async (request, response) => {
    const status = await work(request.path, request.get('authorization'), request.body)
    response.status(status).json({ status: 'done' })
  })
  return app
}

export const createHandler = work => serverless(createApp(work), { provider: 'aws' })
