/// <reference path="./.sst/platform/config.d.ts" />
// The app as SST sees it. What stands on AWS is declared in infra/*.ts, from the data of infra/topology.ts.

export default $config({
  app(input) {
    const production = input.stage === 'production'
    return {
      name: 'rouse',
      home: 'aws',
      version: '4.17.1',
      removal: production ? 'retain' : 'remove',
      protect: production,
    }
  },
  async run() {
    const { settings } = await import('./infra/door.ts')
    const { receive, api } = await import('./infra/http.ts')
    await import('./infra/work.ts')
    await import('./infra/tick.ts')
    for (const warning of settings.warnings) console.warn(warning)
    const origin = (url: $util.Output<string>) => url.apply(text => new URL(text).origin)
    return {
      PUBLIC_ORIGIN: settings.origins?.PUBLIC_ORIGIN ?? origin(api.url),
      HOOK_ORIGIN: settings.origins?.HOOK_ORIGIN ?? origin(receive.url),
    }
  },
})
