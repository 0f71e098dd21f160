// How `npm test` runs: every guarantee under test/ but the tools', with a report for machines beside the one for people.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/tools/**'],
    reporters: ['default', 'json'],
    outputFile: { json: 'coverage/tests.json' },
    // Of two cores vitest would use one.
    maxWorkers: 2,
    // A worker for each file would load the same modules eighty times; tests make their own worlds and share no state.
    isolate: false,
    setupFiles: ['test/support/hearing.ts'],
    // Only a hang should end here: nothing is timed.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
