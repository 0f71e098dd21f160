// A folder of its own for a test, gone afterwards.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Makes an empty folder that lives as long as the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rouse-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
