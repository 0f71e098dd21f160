// Lays out SST's components and providers below .sst/, from the package registry alone: no account, no Pulumi engine, no bun.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const { status } = spawnSync('sst', ['install', '--stage', 'ci'], {
  cwd: join(import.meta.dirname, '../..'),
  env: { ...process.env, SST_SKIP_DEPENDENCY_CHECK: '1', SST_NO_BUN: '1', SST_TELEMETRY_DISABLED: '1' },
  stdio: ['ignore', 'inherit', 'inherit'],
})
process.exitCode = status ?? 1
