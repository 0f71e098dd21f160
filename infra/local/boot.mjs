// Installs what the lock file names before `npm start`, `npm test` and the other scripts, when it is not there yet. Plain JavaScript for Node >= 20; imports nothing of ours.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Packages by folder, from a lock file; none when it cannot be read. */
function packagesOf(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages
  } catch {
    return {}
  }
}

/**
 * True when npm's own note of what it installed names the same packages as the lock file. npm writes that note last,
 * so an install that failed or was interrupted has none. Optional packages may be missing: they suit other machines.
 */
function isInstalled() {
  const wanted = packagesOf('package-lock.json')
  const found = packagesOf('node_modules/.package-lock.json')
  if (Object.keys(found).some(folder => !(folder in wanted))) return false
  return Object.entries(wanted).every(([folder, { version, integrity, optional, devOptional }]) => {
    const there = found[folder]
    if (folder === '' || (there === undefined && (optional || devOptional))) return true
    return there?.version === version && there?.integrity === integrity
  })
}

function install() {
  console.log('Installing the packages of package-lock.json; this happens once ...')
  // Under npm, run the very npm and node that started us: the node in node_modules is about to be removed.
  const { npm_execpath: npm, npm_node_execpath: node } = process.env
  const options = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const [command, given] = npm && node ? [node, [npm, ...options]] : ['npm', options]
  // In a process group of its own: npm would meet Ctrl-C by undoing the install, which takes as long again, and the
  // next install begins by deleting what is left anyway.
  const child = spawn(command, given, { stdio: ['ignore', 'ignore', 'inherit'], detached: true })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => end(child))
  child.on('error', error => console.error(error.message))
  child.on('close', code => {
    if (code !== 0) console.error('The install did not finish; the next run starts it again.')
    process.exitCode = code || Number(code === null)
  })
}

/** Ends a process and those that it started, at once. */
function end(child) {
  try {
    process.kill(-child.pid, 'SIGKILL')
  } catch {
    // Windows knows no process groups.
    child.kill('SIGKILL')
  }
}

if (!isInstalled()) install()
