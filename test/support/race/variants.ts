// Loads the doors once more with one of their rules broken: a module under a variant's name is read with its text changed. For a process of its own.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type Break, breaks, changed, type Rule, scale } from './rules.ts'

const root = new URL('../../../', import.meta.url).href
const rooms = ['functions/', 'shared/'].map(room => root + room)
/** Shared by all variants: errors that cross from outside are known by their class. */
const single = [`${root}shared/net.ts`]

const variantIn = (url: string | undefined): string | null =>
  url === undefined || !URL.canParse(url) ? null : new URL(url).searchParams.get('without')

const isVaried = (url: string): boolean => rooms.some(room => url.startsWith(room)) && !single.includes(url)

registerHooks({
  resolve: (specifier, context, next) => {
    const found = next(specifier, context)
    const variant = variantIn(context.parentURL)
    return variant !== null && isVaried(found.url)
      ? { ...found, url: `${found.url}?without=${variant}` }
      : found
  },
  load: (url, context, next) => {
    const variant = variantIn(url)
    if (variant === null) return next(url, context)
    const [plain = ''] = url.split('?')
    const text = readFileSync(fileURLToPath(plain), 'utf8')
    const file = plain.slice(root.length)
    const source = changed(
      text,
      [...scale, ...breaksOf(variant)].filter(one => one.file === file),
    )
    return { format: 'module-typescript', source, shortCircuit: true }
  },
})

const isRule = (name: string): name is Rule => name in breaks

const breaksOf = (variant: string): readonly Break[] =>
  variant
    .split('.')
    .filter(Boolean)
    .flatMap(name => {
      if (!isRule(name)) throw new Error(`There is no rule ${name}`)
      return breaks[name]
    })

/** The doors, and what the API does, as one variant has them. */
export type Code = {
  receive: typeof import('../../../functions/receive.ts')
  look: typeof import('../../../functions/look.ts')
  deliver: typeof import('../../../functions/deliver.ts')
  tick: typeof import('../../../functions/tick.ts')
  subscribing: typeof import('../../../functions/api/subscribing.ts')
  inbox: typeof import('../../../shared/store/inbox.ts')
  relay: typeof import('../../../shared/relay.ts')
  targets: typeof import('../../../shared/targets.ts')
}

const files = {
  receive: 'functions/receive.ts',
  look: 'functions/look.ts',
  deliver: 'functions/deliver.ts',
  tick: 'functions/tick.ts',
  subscribing: 'functions/api/subscribing.ts',
  inbox: 'shared/store/inbox.ts',
  relay: 'shared/relay.ts',
  targets: 'shared/targets.ts',
} as const

/** Loads the code without these rules; with all of them for none. */
export async function loadCode(without: readonly Rule[]): Promise<Code> {
  const of = (file: string) => import(`${root}${file}?without=${without.join('.')}`)
  return {
    receive: await of(files.receive),
    look: await of(files.look),
    deliver: await of(files.deliver),
    tick: await of(files.tick),
    subscribing: await of(files.subscribing),
    inbox: await of(files.inbox),
    relay: await of(files.relay),
    targets: await of(files.targets),
  }
}
