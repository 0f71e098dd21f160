// Reads what whoever deploys may set, from the environment or SST's `.env.<stage>` file, and says what is missing or unwise.

export type Settings = {
  /** Where the API and the hooks are reached; undefined until the first deploy has told the Function URLs. */
  origins: { PUBLIC_ORIGIN: string; HOOK_ORIGIN: string } | undefined
  /** Concurrency kept free for the receive door, so that work in the queues cannot starve it. */
  receiveConcurrency: number | undefined
  /** Settings of the doors that have a default of their own. */
  others: Record<string, string>
  /** What works but should not stay so. */
  warnings: string[]
}

const optional = ['ALLOW_ADDRESSES', 'ALLOW_PORTS', 'DUE_SHARDS', 'LOG_LEVEL'] as const

/**
 * Reads the settings of a stage.
 * @throws Error naming the setting that is wrong
 */
export function readSettings(env: Record<string, string | undefined>, stage: string): Settings {
  const publicOrigin = originOf(env, 'PUBLIC_ORIGIN')
  const hookOrigin = originOf(env, 'HOOK_ORIGIN')
  if ((publicOrigin === undefined) !== (hookOrigin === undefined))
    throw new Error('Set both PUBLIC_ORIGIN and HOOK_ORIGIN, or neither for a first deploy.')
  const origins =
    publicOrigin && hookOrigin ? { PUBLIC_ORIGIN: publicOrigin, HOOK_ORIGIN: hookOrigin } : undefined
  const others: Record<string, string> = {}
  for (const name of optional) if (env[name]) others[name] = env[name]
  return {
    origins,
    receiveConcurrency: concurrencyOf(env.RECEIVE_CONCURRENCY),
    others,
    warnings: warningsOf(origins, stage),
  }
}

function originOf(env: Record<string, string | undefined>, name: string): string | undefined {
  const value = env[name]
  if (!value) return undefined
  if (!URL.canParse(value) || new URL(value).origin !== value || !value.startsWith('https://'))
    throw new Error(
      `${name} must be an origin such as https://rouse.example, without a path or a slash behind.`,
    )
  return value
}

function concurrencyOf(value: string | undefined): number | undefined {
  if (!value) return undefined
  if (!/^[1-9]\d*$/.test(value)) throw new Error('RECEIVE_CONCURRENCY must be a positive whole number.')
  return Number(value)
}

function warningsOf(origins: Settings['origins'], stage: string): string[] {
  if (origins === undefined)
    return [
      `First deploy: the doors answer nothing yet. Write the PUBLIC_ORIGIN and HOOK_ORIGIN printed below into .env.${stage} and deploy again.`,
    ]
  const borrowed = Object.entries(origins).filter(([, origin]) =>
    /\.lambda-url\.[\w-]+\.on\.aws$/.test(origin),
  )
  if (stage !== 'production' || borrowed.length === 0) return []
  return [
    `${borrowed.map(([name]) => name).join(' and ')}: a Function URL ends with its function, but hook URLs live as long as tasks. Put a domain of your own in front.`,
  ]
}
