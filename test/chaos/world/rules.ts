// Breaks one rule of the relay at a time, from outside: a text that is changed when the doors are bundled, or a call that is bent on the wire.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'esbuild'
import { type Call, isRecord } from '../../../infra/local/wire.ts'
import { changed, breaks as inRaces, type Break as TextBreak } from '../../support/race/rules.ts'

export type Break = { texts?: readonly TextBreak[]; bend?: (call: Call) => void }

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Changes texts of the relay while its doors are bundled. */
export const changing = (texts: readonly TextBreak[]): Plugin => ({
  name: 'break rules',
  setup: build =>
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const own = texts.filter(({ file }) => file === relative(root, path))
      return own.length === 0
        ? undefined
        : { contents: changed(readFileSync(path, 'utf8'), own), loader: 'ts' }
    }),
})

const isVoid = ({ body }: Call): boolean => isRecord(body.Item) && body.Item.void !== undefined

/** The rules whose breaking must show, by what happens then to news. */
export const ruleNames = [
  'dropped because a look was begun',
  'marked before it is queued',
  'held before it is queued',
  'saved without a fence',
  'dropped because a look is under way',
  'stepped over without a void',
] as const
export type RuleName = (typeof ruleNames)[number]

export const breaks: Record<RuleName, Break> = {
  'dropped because a look was begun': { texts: inRaces.completed },
  'marked before it is queued': {
    texts: [
      {
        file: 'shared/timing.ts',
        from: /( {2}await sendLook\(.*\n)( {2}await markAgain\(.*\n)/,
        to: '$2$1',
      },
    ],
  },
  /** Tick puts an entry off, and then queues it. */
  'held before it is queued': {
    texts: [
      {
        file: 'functions/tick.ts',
        from: /( {4}await queue\(.*\n)( {4}await holdTimer\(.*\n)/,
        to: '$2$1',
      },
    ],
  },
  'saved without a fence': { texts: inRaces.fence },
  /** No look follows for a push that found another one under way. */
  'dropped because a look is under way': { texts: inRaces.trailing },
  /** The reader steps over a gap without closing it. */
  'stepped over without a void': {
    bend: call => {
      if (isVoid(call) && isRecord(call.body.Item)) call.body.Item.pk = { S: 'X#nowhere' }
    },
  },
}
