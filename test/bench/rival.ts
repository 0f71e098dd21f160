// Finds what others offer, which lies in a package of its own that the bench installs when it is missing; the first install does not need it.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

/** One of the modules beside that package. */
export const rival = (name: string) => import(`./rivals/${name}.mjs`)

/** Installs their packages, if they are not there. */
export function installRivals(): void {
  const folder = join(import.meta.dirname, 'rivals')
  // npm writes this last, so that an install which was interrupted counts for nothing.
  if (existsSync(join(folder, 'node_modules/.package-lock.json'))) return
  console.log('Installing what the bench compares with; this happens once ...')
  const options = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const { status } = spawnSync('npm', options, { cwd: folder, stdio: 'inherit' })
  if (status !== 0) throw new Error('The install did not finish')
}
