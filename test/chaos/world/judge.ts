// Judges what clients and targets were told against what the agents really did. It knows the promises, and nothing of how they are kept. Pure.
import { isNews } from '../../../shared/a2a/task.ts'
import { barring, present, type Task, trickOf } from './agents.ts'
import type { Cast, Client, Entry, Interest } from './cast.ts'
import { isPlain, isPrompt, isSeeing } from './kinds.ts'
import type { Stage } from './play.ts'
import type { Target, Told } from './targets.ts'
import type { Version } from './words.ts'

export type Rule =
  /** A state that lasts did not reach somebody who waits for it. */
  | 'lost'
  /** It did not reach them in the time that a push promises. */
  | 'late'
  /** Something was told that is not so, or not in that order. */
  | 'wrong'
  /** One thing was told under two ids. */
  | 'twice'
  /** The same id came again although nothing had gone wrong. */
  | 'again'
  /** A cursor stepped over an entry. */
  | 'skipped'
  /** Somebody was told although the subscription had been deleted. */
  | 'deleted'
  /** Nobody can have a task, or its time is up, and that came to nothing. */
  | 'unsaid'
  /** Something is still leased, due, queued or dead in the end. */
  | 'stuck'

export type Violation = { rule: Rule; task: string; says: string }

/** When the relay was left in peace, in the bent clock's ms. */
export type Peace = { from: number; until: number }[]

const clockOf = (at: number): string => new Date(at).toISOString().slice(11, 23)

/** Whether the relay can know of a task on this subscription's behalf. */
function isKnown({ how, id }: Interest, task: Task, listed: boolean): boolean {
  if (how === 'bound' || task.taken.has(id)) return true
  return how === 'wide' && listed && task.agent.kind.protocol === '1.0'
}

/** Whether those who wait for a task have no credentials among them that show it. */
export function isHidden(interests: readonly Interest[]): boolean {
  const live = interests.filter(({ ending }) => ending === undefined)
  return live.length > 0 && live.every(({ pass }) => pass !== undefined && !isSeeing(pass))
}

/**
 * Judges whether the state that a task rests in has arrived wherever it must have by now.
 * @param inPeace nothing has gone wrong since it was pushed, so that even what is no news must be known
 */
export function judgeRest(
  task: Task,
  interests: readonly Interest[],
  stage: Stage,
  inPeace: boolean,
): Violation[] {
  const { kind } = task.agent
  const version = present(task)
  if (stage === 'prompt' && !isPrompt(kind)) return []
  if (stage === 'pushed' && !isPlain(kind)) return []
  if (isHidden(interests)) return []
  return interests
    .filter(({ ending }) => ending === undefined)
    .filter(({ states }) => states.includes(version.state))
    .filter(interest => isKnown(interest, task, stage === 'all' || stage === 'end'))
    .filter(interest => stage === 'all' || stage === 'end' || isTaken(task, version, interest, inPeace))
    .flatMap(interest => judgeInterest(task, version, interest, stage))
}

/** News that the relay took is its own to bring; what is no news has no record that would be missed. */
const isTaken = (task: Task, { state, step }: Version, { id, how }: Interest, inPeace: boolean): boolean =>
  (inPeace || isNews(state)) &&
  (how === 'bound'
    ? [...task.taken.values()].some(steps => steps.has(step))
    : task.taken.get(id)?.has(step) === true)

function judgeInterest(task: Task, version: Version, interest: Interest, stage: Stage): Violation[] {
  const { client, targets, id } = interest
  const rule = stage === 'prompt' ? 'late' : 'lost'
  const missing = (where: string, has: string | undefined): Violation => ({
    rule,
    task: task.id,
    says: `${where} has ${has ?? 'nothing'} at ${stage}, not ${storyOf(task, version)} (${id}, ${interest.pass?.name ?? interest.how})`,
  })
  const last = entriesOf(client, task).at(-1)
  const missed = last?.state === version.state ? [] : [missing(`inbox ${client.name}`, last?.state)]
  for (const target of targets) {
    if (!isDue(target, stage)) continue
    const told = newest(target, task)
    if (told?.state !== version.state && !isSpokenFor(target, client, last))
      missed.push(missing(`target ${target.name}`, told?.state))
  }
  return missed
}

/** So far apart two clocks may be that say when an entry was made and when a hint came, in ms. */
const clocksMs = 1000

/**
 * A target that was paused is told once for each client when it is back: a hint speaks for all that stood in the inbox
 * when it came, whichever entry it names.
 */
const isSpokenFor = ({ kind, told }: Target, client: Client, entry: Entry | undefined): boolean =>
  kind !== 'fine' &&
  kind !== 'slow' &&
  entry !== undefined &&
  told.some(
    ({ answered, taskId, seq, at }) =>
      answered === 200 &&
      (seq >= entry.seq || at > entry.at + clocksMs) &&
      client.byTask.get(taskId)?.some(hinted => hinted.seq === seq) === true,
  )

const storyOf = ({ agent, history, taken }: Task, { state, at, step }: Version): string => {
  const pushed = [...taken].map(([sub, steps]) => `${sub}:${[...steps].join('.')}`).join(' ') || 'none'
  const before = history.map(version => version.state).join(' ')
  return `${state} of ${clockOf(at)}, step ${step} of ${agent.name} [${before}], pushes taken ${pushed}`
}

/** By when a target of each kind must have been told. */
function isDue({ kind }: Target, stage: Stage): boolean {
  if (kind === 'gone') return false
  if (kind === 'fine' || kind === 'slow') return true
  return stage === 'end' || (stage === 'all' && kind === 'failing')
}

/** Only `task.<state>` tells a state; other events have stories of their own. */
const tellsState = ({ type, state }: { type: string; state?: string }): boolean =>
  type === `task.${state?.replaceAll('-', '_')}`

const entriesOf = (client: Client, task: Task): Entry[] =>
  (client.byTask.get(task.id) ?? []).filter(tellsState)

/** What is told to those alone whose credentials are refused, and what to all who cannot have a task. */
export const expired = 'subscription.credentials_expired'
export const lost: readonly string[] = ['task.lost_access', 'task.orphaned']
const alarms: readonly string[] = [...lost, expired]

/** What is told of a task that cannot be had: its state is told again once it can. */
export const isAlarm = ({ type }: Pick<Entry, 'type'>): boolean => alarms.includes(type)

const alarmsOf = (clients: readonly Client[], task: Task): Entry[] =>
  clients.flatMap(client => client.byTask.get(task.id) ?? []).filter(isAlarm)

const toldOf = (target: Target, task: Task): Told[] => (target.byTask.get(task.id) ?? []).filter(tellsState)

const newest = (target: Target, task: Task): Told | undefined =>
  toldOf(target, task)
    .toSorted((a, b) => a.rev - b.rev)
    .at(-1)

/** Judges everything that was ever told of a task. */
export function judgeTold(task: Task, interests: readonly Interest[], peace: Peace): Violation[] {
  const clients = [...new Set(interests.map(({ client }) => client))]
  const targets = [...new Set(interests.flatMap(interest => interest.targets))]
  return [
    ...alarmsOf(clients, task).flatMap(alarm => judgeAlarm(task, alarm, interests)),
    ...targets.flatMap(target => judgeDeleted(task, target, interests)),
    ...clients.flatMap(client => {
      const sharing = interests.filter(interest => interest.client === client)
      return [
        ...judgeOrder(task, `inbox ${client.name}`, entriesOf(client, task)),
        ...judgeInbox(task, client, sharing),
      ]
    }),
    ...targets.flatMap(target => {
      const told = toldOf(target, task)
      const sharing = interests.filter(interest => interest.targets.includes(target))
      // One that was away may have been told of an alarm by a later hint to the same inbox.
      const hinted = alarmsOf([...new Set(sharing.map(({ client }) => client))], task)
      // Webhooks overtake each other; whoever has a newer revision drops an older one.
      const inOrder = told.toSorted((a, b) => a.rev - b.rev)
      return [
        ...judgeOrder(task, `target ${target.name}`, inOrder),
        ...judgeIds(task, target, { told, hinted, sharing: sharing.length }),
        ...judgeRepeats(task, target, told, peace),
      ]
    }),
  ]
}

/** A webhook may be on its way while its subscription is deleted. */
const onItsWayMs = 30_000

/** Nothing is sent any more once all who wanted it sent are gone. */
function judgeDeleted(task: Task, target: Target, interests: readonly Interest[]): Violation[] {
  const own = interests.filter(({ targets }) => targets.includes(target))
  const over = Math.max(...own.map(({ deletedAt = Number.POSITIVE_INFINITY }) => deletedAt))
  return toldOf(target, task)
    .filter(({ at }) => at > over + onItsWayMs)
    .map(({ at, state }) => ({
      ...{ rule: 'deleted', task: task.id },
      says: `target ${target.name} was told ${state} at ${clockOf(at)}, deleted at ${clockOf(over)}`,
    }))
}

const minute = 60_000

/** A loss is told only while nobody's credentials show the task, refused ones only to those whose they are. */
function judgeAlarm(
  task: Task,
  { type, at, subscription }: Entry,
  interests: readonly Interest[],
): Violation[] {
  // Clocks differ, and a look takes its time: what it met holds then or a minute later.
  const times = [at, at + minute]
  const answersTo = ({ pass }: Interest, time: number) =>
    barring(task.agent, pass, time) ?? trickOf(task, time)
  const isTrue =
    type === expired
      ? interests.some(
          one => one.id === subscription && times.some(time => answersTo(one, time) === 'refuse'),
        )
      : !interests
          .filter(({ begun, ending = Number.POSITIVE_INFINITY }) => begun < at && ending > at + minute)
          .some(one => times.every(time => answersTo(one, time) === undefined))
  if (isTrue) return []
  const says = `${subscription} was told ${type} since ${clockOf(at)}, which was not so`
  return [{ rule: 'wrong', task: task.id, says }]
}

type Said = { id: string; type: string; state: string; rev: number }

/** What was told, in its order, must be part of what really happened, in its order. */
function judgeOrder(task: Task, where: string, said: readonly Said[]): Violation[] {
  const found: Violation[] = []
  const seen = new Set<number>()
  let [rev, step] = [0, -1]
  for (const one of said) {
    if (seen.has(one.rev)) continue
    seen.add(one.rev)
    const next = task.history.find(version => version.step > step && version.state === one.state)
    const story = said.map(({ rev: number, state }) => `${number} ${state}`).join(', ')
    const really = task.history.map(version => version.state).join(' ')
    if (one.rev < rev) found.push({ rule: 'wrong', task: task.id, says: `${where} goes back: ${story}` })
    if (next === undefined)
      found.push({
        rule: 'wrong',
        task: task.id,
        says: `${where} was told ${story}; it really was ${really}`,
      })
    rev = Math.max(rev, one.rev)
    step = next?.step ?? step
  }
  return found
}

const twice = (task: Task, where: string, what: string): Violation => ({
  ...{ rule: 'twice', task: task.id },
  says: `${where} was told ${what} again, for no reason`,
})

/** A revision is one entry, and one more after each alarm; a loss is told once until the state is told again. */
function judgeInbox(task: Task, client: Client, sharing: readonly Interest[]): Violation[] {
  const found: Violation[] = []
  const told = new Set<number>()
  const losses = new Map<string, number>()
  let isAlarmed = false
  const said = (client.byTask.get(task.id) ?? []).filter(entry => tellsState(entry) || isAlarm(entry))
  for (const { type, rev } of said) {
    if (type === expired) isAlarmed = true
    else if (alarms.includes(type)) {
      isAlarmed = true
      losses.set(type, (losses.get(type) ?? 0) + 1)
      // Each subscription has a loss of its own, as its credentials show it.
      if ((losses.get(type) ?? 0) > sharing.length) found.push(twice(task, `inbox ${client.name}`, type))
    } else {
      if (told.has(rev) && !isAlarmed)
        found.push(twice(task, `inbox ${client.name}`, `${type} ${rev} (${entriesIn(said, sharing)})`))
      told.add(rev)
      losses.clear()
      isAlarmed = false
    }
  }
  return [...found, ...sharing.flatMap(interest => judgeRefusals(task, client, interest))]
}

/** All that an inbox says of a task, and to whom. */
const entriesIn = (said: readonly Entry[], sharing: readonly Interest[]): string =>
  said
    .map(({ type, rev, at, subscription }) => {
      const { pass, how } = sharing.find(({ id }) => id === subscription) ?? {}
      return `${type} ${rev} since ${clockOf(at)} to ${subscription}, ${pass?.name ?? how}`
    })
    .join('; ')

/** Of credentials it is told once that they are refused, and once more after they served, or others did that lapsed then. */
function judgeRefusals({ agent, ...task }: Task, client: Client, { id }: Interest): Violation[] {
  const most = 1 + agent.lapses.length
  const told = (client.byTask.get(task.id) ?? []).filter(
    ({ type, subscription }) => type === expired && subscription === id,
  )
  return told.length > most ? [twice({ ...task, agent }, `inbox ${client.name}`, `${expired} of ${id}`)] : []
}

/** A revision has one id for each subscription, and one more after each alarm. */
function judgeIds(
  task: Task,
  target: Target,
  { told, hinted, sharing }: { told: readonly Told[]; hinted: readonly Entry[]; sharing: number },
): Violation[] {
  const ids = new Map<number, Set<string>>()
  for (const { rev, id } of told) ids.set(rev, (ids.get(rev) ?? new Set()).add(id))
  return [...ids]
    .filter(([of, { size }]) => size > sharing * (1 + hinted.filter(({ rev }) => rev === of).length))
    .map(([rev, { size }]) => twice(task, `target ${target.name}`, `revision ${rev} under ${size} ids`))
}

/** What a target took is not sent again, unless something went wrong in between. */
const judgeRepeats = (task: Task, target: Target, told: readonly Told[], peace: Peace): Violation[] =>
  repeatsOf(told)
    .filter(([first, again]) => peace.some(({ from, until }) => first.at >= from && again.at <= until))
    .map(([first, again]) => ({
      ...{ rule: 'again', task: task.id },
      says: `target ${target.name} took ${again.id} at ${clockOf(first.at)} and again at ${clockOf(again.at)}`,
    }))

/** Pairs of webhooks of one id, of which the first was taken. */
export function repeatsOf(told: readonly Told[]): [Told, Told][] {
  const taken = new Map<string, Told>()
  const pairs: [Told, Told][] = []
  for (const one of told) {
    const first = taken.get(one.id)
    if (first !== undefined) pairs.push([first, one])
    else if (one.answered === 200) taken.set(one.id, one)
  }
  return pairs
}

/** What a cursor showed, wave by wave, must be what stands there in the end. */
export function judgeCursor(client: Client, standing: readonly Entry[]): Violation[] {
  const read = new Set(client.read.map(({ seq }) => seq))
  return standing
    .filter(({ seq }) => !read.has(seq))
    .map(({ seq, taskId, state }) => ({
      ...{ rule: 'skipped', task: taskId },
      says: `inbox ${client.name} holds ${state} at ${seq}, which its cursor stepped over`,
    }))
}

/** All subscriptions of each task. */
export function interestsOf({ interests }: Cast, task: Task): Interest[] {
  return interests.filter(one => one.task === task || (one.how === 'wide' && one.agent === task.agent))
}
