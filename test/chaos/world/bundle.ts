// Bundles the doors' process into one file, as the deploy bundles functions: a process that replaces a killed one then starts in no time.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin } from 'esbuild'

export type Program = { file: string; remove: () => void }

/** @param plugins bend what is bundled, to break a rule */
export async function bundleHost(plugins: Plugin[] = []): Promise<Program> {
  const folder = mkdtempSync(join(tmpdir(), 'rouse-chaos-'))
  const file = join(folder, 'host.mjs')
  await build({
    entryPoints: [fileURLToPath(new URL('./host.ts', import.meta.url))],
    outfile: file,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    logLevel: 'silent',
    // Parts of the SDK still ask for `require`.
    banner: { js: "import{createRequire}from'node:module';const require=createRequire(import.meta.url);" },
    plugins,
  })
  return { file, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
