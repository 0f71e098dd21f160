// Bundles doors the way SST does, so that sizes are known and a bundle can be tried without a deploy. Writes to the folder it is given.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { doors } from '../topology.ts'

export const root = join(import.meta.dirname, '../..')

/** What SST 4 puts in front of every ESM bundle: CommonJS packages look for these names. */
const banner = [
  "import { createRequire as topLevelCreateRequire } from 'module';",
  'const require = topLevelCreateRequire(import.meta.url);',
  "import { fileURLToPath as topLevelFileUrlToPath, URL as topLevelURL } from 'url';",
  'const __filename = topLevelFileUrlToPath(import.meta.url);',
  "const __dirname = topLevelFileUrlToPath(new topLevelURL('.', import.meta.url));",
].join('\n')

/**
 * Bundles one handler.
 * @param handler as in the topology: file without extension, dot, export
 * @returns the bundle's path and its bytes
 */
export async function bundle(handler: string, folder: string): Promise<{ file: string; bytes: number }> {
  const outfile = join(folder, 'bundle.mjs')
  await build({
    absWorkingDir: root,
    entryPoints: [join(root, handler.replace(/\.\w+$/, '.ts'))],
    outfile,
    bundle: true,
    minify: true,
    keepNames: true,
    platform: 'node',
    target: 'es2024',
    format: 'esm',
    mainFields: ['module', 'main'],
    external: ['sharp', 'pg-native'],
    banner: { js: banner },
    sourcemap: 'linked',
    logLevel: 'error',
  })
  return { file: outfile, bytes: statSync(outfile).size }
}

if (import.meta.main)
  for (const [name, { handler }] of Object.entries(doors)) {
    const { bytes } = await bundle(handler, join(root, 'dist', name))
    console.log(`${name.padEnd(8)} ${(bytes / 1000).toFixed(0).padStart(6)} kB`)
  }
