// The item `gate` of a target: slots of the attempts under way, its pace, and whether it is paused. Settles who may call it; decides nothing.
import type { Gate, Spoke, Target } from '../telling.ts'
import { slotOf, targetGateKey, targetGroup } from './keys.ts'
import { get, type Table, update, type Written } from './table.ts'

export type TargetName = Pick<Target, 'tenant' | 'target'>

/** Outlives every wake that may wait. */
const keptMs = 40 * 24 * 60 * 60 * 1000

const ttlOf = (now: number): number => Math.ceil((now + keptMs) / 1000)

type Stored = Omit<Gate, 'slots'> & Record<`s${number}`, number>

const slotName = /^s(\d+)$/

function read(stored: Stored): Gate {
  const slots = Object.entries(stored).flatMap(([name, until]) => {
    const slot = slotName.exec(name)?.[1]
    return slot === undefined ? [] : [[slot, Number(until)]]
  })
  return { ...stored, slots: Object.fromEntries(slots) }
}

/** What was written, or stood in the way. */
type Tried = { ok: true; gate: Gate } | { ok: false; gate: Gate | undefined }

async function tried(writing: Promise<Written<Stored>>): Promise<Tried> {
  const written = await writing
  if (written.ok && written.item !== undefined) return { ok: true, gate: read(written.item) }
  const old = written.ok ? undefined : written.old
  return { ok: false, gate: old && read(old) }
}

export async function getGate(table: Table, { tenant, target }: TargetName): Promise<Gate | undefined> {
  const stored = await get<Stored>(table, targetGateKey(tenant, target))
  return stored && read(stored)
}

/** Its timer: when somebody looks after those who wait. There is one as long as anybody may. */
function timerOf(table: Table, { tenant, target }: TargetName, due: number) {
  const { pk } = targetGateKey(tenant, target)
  return { slot: slotOf(pk, table.shards), due, holds: 0, group: targetGroup(tenant, target) }
}

const setsTimer = '#slot = :slot, #due = :due, #holds = :holds, #group = :group'

/** Takes one slot of a gate that stands open; of many at once each takes its own, or sees how things are. */
export const takeSlot = (
  table: Table,
  name: TargetName,
  {
    generation,
    slot,
    pace,
  }: { generation: number; slot: number; pace: { seen: number; next: number } | undefined },
  at: { now: number; until: number },
): Promise<Tried> => {
  const usual = `#generation = :generation AND attribute_not_exists(#pausedUntil) AND (attribute_not_exists(#s${slot}) OR #s${slot} <= :now)`
  const paced =
    pace === undefined ? '' : ' AND (attribute_not_exists(#free) OR #free = :seen OR #free < :now)'
  return tried(
    update<Stored>(
      table,
      targetGateKey(name.tenant, name.target),
      `SET #generation = :generation, #s${slot} = :until, #ttl = :ttl${pace === undefined ? '' : ', #free = :next'}`,
      { ...at, ...pace, generation, ttl: ttlOf(at.now) },
      `attribute_not_exists(#pk) OR (${usual}${paced})`,
    ),
  )
}

/** Takes the one probe of a pause that is over: for others it lasts until the probe is. */
export const takeProbe = (
  table: Table,
  name: TargetName,
  { generation, seen }: { generation: number; seen: number },
  at: { now: number; until: number; due: number },
): Promise<Tried> =>
  tried(
    update<Stored>(
      table,
      targetGateKey(name.tenant, name.target),
      `SET #pausedUntil = :until, #ttl = :ttl, ${setsTimer} REMOVE #handed`,
      { ...at, ...timerOf(table, name, at.due), generation, seen, ttl: ttlOf(at.now) },
      '#generation = :generation AND #pausedUntil = :seen',
    ),
  )

/** Hands the one probe of a pause that is over to a wake that is sent for it; nobody else takes it until then. */
export async function handProbe(
  table: Table,
  name: TargetName,
  { generation, seen }: { generation: number; seen: number },
  { wake, until }: { wake: string; until: number },
): Promise<boolean> {
  const { ok } = await update<Stored>(
    table,
    targetGateKey(name.tenant, name.target),
    'SET #pausedUntil = :until, #handed = :wake',
    { generation, seen, wake, until },
    '#generation = :generation AND #pausedUntil = :seen',
  )
  return ok
}

/** Begins anew because the target was put anew; whoever waits for the one before is looked after at once. */
export const renewGate = (table: Table, name: TargetName, generation: number, now: number): Promise<Tried> =>
  tried(
    update<Stored>(
      table,
      targetGateKey(name.tenant, name.target),
      `SET #generation = :generation, #resumedAt = :now, #ttl = :ttl, ${setsTimer} REMOVE #failures, #failingSince, #failedAt, #reason, #wrong, #told, #pauses, #handed, #pausedUntil, #spoke, #free`,
      { ...timerOf(table, name, now), generation, now, ttl: ttlOf(now) },
      'attribute_exists(#pk) AND #generation < :generation',
    ),
  )

/** Gives a slot back, whoever held it in time. */
export const giveSlot = (table: Table, name: TargetName, slot: number, until: number) =>
  update<Stored>(
    table,
    targetGateKey(name.tenant, name.target),
    `REMOVE #s${slot}`,
    { until },
    `#s${slot} = :until`,
  )

/** Gives a probe back that was not needed. */
export const giveProbe = (table: Table, name: TargetName, until: number, now: number) =>
  update<Stored>(
    table,
    targetGateKey(name.tenant, name.target),
    'SET #pausedUntil = :now REMOVE #handed',
    { until, now },
    '#pausedUntil = :until',
  )

/** Forgets failures after a success; a pause that came meanwhile is for its probe to end. */
export const forgetFailures = (table: Table, name: TargetName, generation: number, slot: number) =>
  update<Stored>(
    table,
    targetGateKey(name.tenant, name.target),
    `REMOVE #failures, #failingSince, #failedAt, #reason, #wrong, #s${slot}`,
    { generation },
    '#generation = :generation AND attribute_not_exists(#pausedUntil)',
  )

/** Cuts a pause short: whoever comes next is its probe. A probe under way has no say any more. */
export async function cutPause(
  table: Table,
  name: TargetName,
  generation: number,
  at: { now: number; due: number },
): Promise<Gate | undefined> {
  const cut = await tried(
    update<Stored>(
      table,
      targetGateKey(name.tenant, name.target),
      `SET #pausedUntil = :now, ${setsTimer}`,
      { now: at.now, generation, ...timerOf(table, name, at.due) },
      '#generation = :generation AND #pausedUntil > :now',
    ),
  )
  return cut.gate
}

/** Ends a pause after the probe that succeeded, and spoke for others; those who wait are looked after by the timer, if not before. */
export async function endPause(
  table: Table,
  name: TargetName,
  probe: number,
  at: { now: number; due: number },
  spoke: Spoke,
): Promise<boolean> {
  const { ok } = await update<Stored>(
    table,
    targetGateKey(name.tenant, name.target),
    `SET #resumedAt = :now, #spoke = :spoke, ${setsTimer} REMOVE #failures, #failingSince, #failedAt, #reason, #wrong, #told, #pauses, #handed, #pausedUntil`,
    { now: at.now, probe, spoke, ...timerOf(table, name, at.due) },
    '#pausedUntil = :probe',
  )
  return ok
}

/** A failure, of the generation of a target, and the slot that it had. */
type Failed = { now: number; reason: string; wrong: boolean; slot: number | undefined }

/**
 * Counts a failure and gives the slot back.
 * @param since a failure is in a row with the one before if that was not earlier; else it is the first of a new row
 */
export async function countFailure(
  table: Table,
  name: TargetName,
  generation: number,
  failed: Failed,
  since: number,
): Promise<Tried> {
  const next = () => count(table, name, generation, failed, since, false)
  const counted = await next()
  if (counted.ok || counted.gate?.generation !== generation) return counted
  const first = await count(table, name, generation, failed, since, true)
  // Of two that would be the first of a row one is.
  return first.ok ? first : next()
}

const count = (
  table: Table,
  name: TargetName,
  generation: number,
  { slot, ...failed }: Failed,
  since: number,
  first: boolean,
): Promise<Tried> => {
  const said = '#failedAt = :now, #reason = :reason, #wrong = :wrong'
  const gone = slot === undefined ? [] : [`#s${slot}`]
  return tried(
    update<Stored>(
      table,
      targetGateKey(name.tenant, name.target),
      first
        ? `SET #failures = :one, #failingSince = :now, ${said} REMOVE ${['#pauses', ...gone].join(', ')}`
        : [
            `SET #failingSince = if_not_exists(#failingSince, :now), ${said}`,
            gone.length === 0 ? '' : `REMOVE ${gone.join(', ')}`,
            'ADD #failures :one',
          ].join(' '),
      { ...failed, one: 1, generation, since },
      `#generation = :generation AND ${first ? '#failedAt < :since' : '(attribute_not_exists(#failedAt) OR #failedAt >= :since)'}`,
    ),
  )
}

/**
 * Pauses a target.
 * @param pause.probe the time that the probe which failed had been given: only the latest probe has a say. Without it
 * the gate is open, or its pause shorter than the target itself asked for
 * @param pause.told the outage that operations heard of
 */
export async function pauseGate(
  table: Table,
  name: TargetName,
  generation: number,
  pause: {
    until: number
    pauses: number
    probe: number | undefined
    asked: boolean
    told?: number
    due: number
  },
): Promise<boolean> {
  const open = `attribute_not_exists(#pausedUntil)${pause.asked ? ' OR #pausedUntil < :until' : ''}`
  const { ok } = await update<Stored>(
    table,
    targetGateKey(name.tenant, name.target),
    `SET #pausedUntil = :until, #pauses = :pauses${pause.told === undefined ? '' : ', #told = :told'}, ${setsTimer} REMOVE #handed`,
    { ...pause, ...timerOf(table, name, pause.due), generation },
    `#generation = :generation AND (${pause.probe === undefined ? open : '#pausedUntil = :probe'})`,
  )
  return ok
}

/** Sets the timer anew, unless somebody else did. */
export const timeGate = (table: Table, name: TargetName, seen: number | undefined, due: number) =>
  update<Stored>(
    table,
    targetGateKey(name.tenant, name.target),
    `SET ${setsTimer}`,
    { ...timerOf(table, name, due), seen },
    seen === undefined ? 'attribute_exists(#pk) AND attribute_not_exists(#due)' : '#due = :seen',
  )

/** Takes the timer off: nobody waits, and nobody can come to wait without setting it again. */
export const restGate = (table: Table, name: TargetName, seen: number) =>
  update<Stored>(
    table,
    targetGateKey(name.tenant, name.target),
    'REMOVE #slot, #due, #holds, #group',
    { seen },
    '#due = :seen',
  )

/**
 * Leaves of the gate of a target that is gone no more than its generation: one that is made again under its name is above
 * it, and what was on its way to the one before concerns it no more. A timer stays, since somebody may wait there, or come
 * to wait who was turned away just now.
 */
export const retireGate = (table: Table, { tenant, target }: TargetName, generation: number, now: number) =>
  update<Stored>(
    table,
    targetGateKey(tenant, target),
    'SET #generation = :generation, #resumedAt = :now, #ttl = :ttl REMOVE #failures, #failingSince, #failedAt, #reason, #wrong, #told, #pauses, #handed, #pausedUntil, #spoke, #free',
    { generation, now, ttl: ttlOf(now) },
    'attribute_not_exists(#generation) OR #generation <= :generation',
  )
