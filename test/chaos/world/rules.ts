// Breaks one rule of the relay at a time, from outside: a module whose export is replaced when the doors are bundled, or a call that is bent on the wire.
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Plugin } from 'esbuild'
import { type Call, isRecord } from '../../../infra/local/wire.ts'

export type Break = { plugins?: Plugin[]; bend?: (call: Call) => void }

const shared = fileURLToPath(new URL('../../../shared/', import.meta.url))

/** Replaces exports of one module for all who import it. @param text TypeScript that exports them anew */
function replace(module: string, text: string): Plugin {
  const file = join(shared, module)
  return {
    name: `break ${module}`,
    setup: build => {
      build.onResolve({ filter: /\.ts$/ }, ({ path, resolveDir, namespace }) =>
        namespace === 'file' && join(resolveDir, path) === file
          ? { path: file, namespace: 'broken' }
          : undefined,
      )
      build.onLoad({ filter: /.*/, namespace: 'broken' }, () => ({
        // What is exported here wins over what is passed on.
        contents: `export * from ${JSON.stringify(file)}\n${text}`,
        loader: 'ts',
        resolveDir: dirname(file),
      }))
    },
  }
}

const isVoid = ({ body }: Call): boolean => isRecord(body.Item) && body.Item.void !== undefined

/** The rules whose breaking must show, each with how it is broken. */
export const breaks = {
  /** A trailing look is marked, and then queued. */
  'marked before it is queued': {
    plugins: [
      replace(
        'timing.ts',
        `import { longestDelayMs, sendLook } from './queue.ts'
        import { agentGroup } from './store/keys.ts'
        import { markAgain } from './store/watches.ts'
        export async function putOff(relay, watch, message, delayMs) {
          const wholeMs = Math.ceil(Math.min(delayMs, longestDelayMs) / 1000) * 1000
          const mark = relay.now() + wholeMs
          await markAgain(relay.table, watch.key, mark)
          await sendLook(relay.queues, agentGroup(watch.tenant, watch.agent), { ...message, mark }, wholeMs)
        }`,
      ),
    ],
  },
  /** The reader steps over a gap without closing it. */
  'stepped over without a void': {
    bend: call => {
      if (isVoid(call) && isRecord(call.body.Item)) call.body.Item.pk = { S: 'X#nowhere' }
    },
  },
} satisfies Record<string, Break>
