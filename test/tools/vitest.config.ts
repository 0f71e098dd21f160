// How `npm run infra` runs: the AWS ground, evaluated without an account.
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  root: import.meta.dirname,
  test: {
    reporters: ['default', 'json'],
    outputFile: { json: join(import.meta.dirname, '../../coverage/infra.json') },
    // Only a hang should end here: nothing is timed.
    testTimeout: 120_000,
    hookTimeout: 240_000,
  },
})
