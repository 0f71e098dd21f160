// `npm run cost`: plays three kinds of traffic and tasks that say nothing on the local ground, counts what AWS would bill, prints USD per million notices by part, and says by its exit status whether the budgets are kept.
import { settings } from '../../../shared/config.ts'
import { readFlags, refuse } from '../../support/flags.ts'
import { billOf, billOfSilence, standing } from './bill.ts'
import { type Ground, type Load, open, playDoor, playFlood, playSilence, playTrip, shut } from './loads.ts'
import { print, printCalls } from './print.ts'

/** Each on a ground of its own: tasks of the others that do not end, and their timers, would be counted in. */
const plays: Record<string, (ground: Ground) => Promise<Load[]>> = {
  trip: async ground => [await playTrip(ground)],
  flood: async ground => [await playFlood(ground)],
  door: async ground => [await playDoor(ground)],
  silence: ground => playSilence(ground, 2),
}

const usage = `npm run cost -- [flags]

  --only LOADS  some of the loads, commas between: ${Object.keys(plays).join(', ')}
  --calls       lists the calls too
  -h, --help    shows this`

const values = readFlags(usage, { only: { type: 'string' }, calls: { type: 'boolean' } })
const chosen = values.only?.split(',') ?? Object.keys(plays)
const strange = chosen.find(name => plays[name] === undefined)
if (strange !== undefined) refuse(usage, `There is no load ${strange}; there are ${Object.keys(plays)}`)
const loads: Record<string, Load[]> = {}
for (const name of chosen) {
  console.log(`Playing: ${name} ...`)
  const ground = await open()
  try {
    loads[name] = (await plays[name]?.(ground)) ?? []
  } finally {
    await shut(ground)
  }
}

const [door, flood, trip] = [loads.door?.[0], loads.flood?.[0], loads.trip?.[0]]
const kept = print([
  ...(door ? [{ name: 'door only', load: door, bill: billOf(door, ['receive']), budget: 1.5 }] : []),
  ...(flood ? [{ name: 'flood', load: flood, bill: billOf(flood), budget: 2.5 }] : []),
  ...(trip ? [{ name: 'trip', load: trip, bill: billOf(trip), budget: 6 }] : []),
])

if (values.calls) for (const name of ['door', 'flood', 'trip']) printCalls(name, loads[name]?.[0])

const usd = (value: number): string => `${value.toFixed(2)} USD`
for (const [day, load] of (loads.silence ?? []).entries()) {
  const looks = (load.looks / load.notices).toFixed(1)
  const { busy } = billOfSilence(load)
  console.log(`1 M open tasks that say nothing, day ${day + 1}: ${usd(busy)} for ${looks} looks each.`)
}
console.log(
  `A deployment to which nothing happens, a day: ${usd(standing(Number(settings.DUE_SHARDS.fallback)))}.`,
)
console.log(
  'Waits and processor are assumed (test/bench/cost/prices.ts); the network out, and what a free tier covers, are left out.',
)
if (!kept) process.exitCode = 1
