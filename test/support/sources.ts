// Reads the project's own source files as text: path, code without comments and strings, imports. Runs none of them.
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

export type Import = {
  /** A path from the root for our own files; the name of a package (without what lies inside it) for the others. */
  from: string
  ours: boolean
  /** Gone at run time: `import type`, or only names marked `type`. */
  typeOnly: boolean
  /** Imported names, those of types without the word `type`. */
  names: string[]
}

export type Source = {
  /** From the root, with slashes. */
  path: string
  text: string
  /** The text with comments and quoted strings emptied; templates stay, for code may hide in them. */
  code: string
  lines: number
  imports: Import[]
}

const root = join(import.meta.dirname, '../..')

/** All TypeScript and JavaScript files below some folders of the project; declarations of other people's code are none. */
export function readSources(...folders: string[]): Source[] {
  return folders
    .flatMap(folder =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile() && /\.m?[jt]sx?$/.test(entry.name))
        .map(entry =>
          join(entry.parentPath, entry.name)
            .slice(root.length + 1)
            .replaceAll('\\', '/'),
        ),
    )
    .filter(path => !path.includes('node_modules') && !path.endsWith('.d.ts'))
    .sort()
    .map(path => sourceOf(path, readFileSync(join(root, path), 'utf8')))
}

/** Reads one text as if it stood at that path. */
export function sourceOf(path: string, text: string): Source {
  return {
    path,
    text,
    code: codeOf(text),
    lines: text.trimEnd().split('\n').length,
    imports: importsOf(path, text),
  }
}

const codeOf = (text: string): string =>
  text.replace(
    /\/\*[\s\S]*?\*\/|(?<!:)\/\/.*|`(?:\\.|[^`\\])*`|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g,
    found => (found.startsWith('`') ? found : found.startsWith('/') ? '' : "''"),
  )

const statement = /^(?:import|export)\s+(type\s)?([^'"`;=(]*?)\s*from\s+'([^']+)'/gm
const sideEffect = /^import\s+'([^']+)'/gm
const dynamic = /\bimport\(\s*'([^']+)'\s*\)/g

function importsOf(path: string, text: string): Import[] {
  const found: Import[] = []
  for (const [, type, clause = '', target = ''] of text.matchAll(statement)) {
    const parts = clause
      .replace(/[{}]/g, '')
      .split(',')
      .map(part => part.trim())
      .filter(Boolean)
    found.push({
      ...placeOf(path, target),
      typeOnly: type !== undefined || (parts.length > 0 && parts.every(part => part.startsWith('type '))),
      names: parts.map(part => part.replace(/^type /, '').replace(/ as .*$/, '')),
    })
  }
  for (const [, target = ''] of [...text.matchAll(sideEffect), ...text.matchAll(dynamic)])
    found.push({ ...placeOf(path, target), typeOnly: false, names: [] })
  return found
}

function placeOf(path: string, target: string): { from: string; ours: boolean } {
  if (target.startsWith('.')) return { from: posix.join(posix.dirname(path), target), ours: true }
  return {
    from: target
      .split('/')
      .slice(0, target.startsWith('@') ? 2 : 1)
      .join('/'),
    ours: false,
  }
}

/** Everything that a file pulls in at run time, itself included: paths of our files and names of packages. */
export function reach(sources: readonly Source[], start: string): Set<string> {
  const byPath = new Map(sources.map(source => [source.path, source]))
  const seen = new Set<string>()
  const visit = (name: string): void => {
    if (seen.has(name)) return
    seen.add(name)
    for (const { from, typeOnly } of byPath.get(name)?.imports ?? []) if (!typeOnly) visit(from)
  }
  visit(start)
  return seen
}
