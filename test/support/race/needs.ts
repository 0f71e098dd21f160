// What each rule is for: how a run without it breaks, and in what weather that shows soon.
import type { Fault } from './judge.ts'
import type { Rule } from './rules.ts'
import { mild, type Options, rough } from './run.ts'

export type Need = {
  name: string
  /** What breaks without it. */
  breaks: (Fault | 'tardy')[]
  setting: Options
  /** Rules that would hide it. */
  without?: Rule[]
}

const lost: Fault[] = ['no entry', 'no hint']
const behindReplicas: Options = { odds: { ...mild, replica: 0.5 }, pace: 'brisk', replicaMs: 5000 }

export const needs: Record<Rule, Need> = {
  completed: {
    name: 'a push that is dropped because somebody merely started to look waits for the floor',
    breaks: ['late'],
    // Patience would hide it where the push named news.
    setting: { odds: { ...rough, replica: 0, outage: 0, kill: 0.04, lag: 0.3 } },
    without: ['patience'],
  },
  queueFirst: {
    name: 'a revision that is marked as published before its wakes are queued is lost in a crash',
    breaks: lost,
    setting: { odds: rough },
  },
  entryFirst: {
    name: 'a wake that is queued before its inbox entry stands hints at nothing',
    breaks: ['blind hint'],
    setting: { odds: mild },
  },
  noticeTimers: {
    name: 'a push whose record is no pending work is lost when its message is',
    breaks: lost,
    setting: { odds: { ...rough, kill: 0.06 }, kind: 'unbound', pace: 'brief', mostReceives: 1 },
  },
  fence: {
    name: 'looks that save without a fence tell one change twice, or none',
    breaks: ['two ids', 'no entry', 'wrong state'],
    setting: { odds: { ...rough, slow: 0.5, twice: 0.3 }, kind: 'two', pace: 'brisk' },
  },
  outlives: {
    name: 'a lease that ends before its holder does lets two publish at once',
    breaks: ['entry twice', 'order'],
    setting: { odds: { ...rough, stall: 0.1 } },
  },
  publishFirst: {
    name: 'a revision that a crash left unpublished is passed over by the next look',
    breaks: lost,
    setting: { odds: { ...rough, kill: 0.1 }, pace: 'brief', kind: 'two' },
  },
  timerStays: {
    name: 'an ended task without a timer is forgotten if its look dies before it told',
    breaks: lost,
    setting: { odds: { ...rough, kill: 0.06 }, kind: 'polled', pace: 'brief' },
  },
  patience: {
    name: 'an end that the agent’s replica does not show yet waits for the floor',
    breaks: ['late'],
    setting: { odds: { ...rough, replica: 0.5 } },
  },
  sharesLooks: {
    name: 'questions that were taken back keep a look of their own each, and beget messages without end',
    breaks: ['churn'],
    setting: { odds: mild, pace: 'flapping', kind: 'bound' },
  },
  ring: {
    name: 'answers of replicas are told again',
    breaks: ['two ids'],
    setting: behindReplicas,
    without: ['stamps'],
  },
  stamps: {
    name: 'a state that was passed over comes back from a replica as if it were new',
    breaks: ['back in time'],
    setting: behindReplicas,
  },
  backSoon: {
    name: 'a question that is asked again in the same words waits for half of the silence before it',
    breaks: ['late'],
    setting: { odds: mild },
  },
  endStays: {
    name: 'a replica’s answer to a late look undoes an end that was told',
    breaks: lost,
    setting: { odds: { ...mild, replica: 0.8 }, replicaMs: 6000, kind: 'late unbound' },
  },
  joiners: {
    name: 'who joins while a look is under way is counted as told, though nobody told it',
    breaks: lost,
    setting: { odds: mild, kind: 'late', pace: 'brief' },
  },
  lateWaits: {
    name: 'who subscribes to a task right after its end waits for a tick',
    breaks: ['tardy'],
    setting: { odds: mild, kind: 'late' },
  },
  unboundLooks: {
    name: 'an unbound subscription is never bound if somebody else’s look settles its push',
    breaks: lost,
    setting: { odds: mild, kind: 'two unbound' },
  },
  countsOnce: {
    name: 'a number that the SDK’s retry took twice hides the entry from who was just woken',
    breaks: ['blind hint'],
    setting: { odds: { ...rough, lostAnswer: 0.05 }, pace: 'brief' },
  },
  gapsAge: {
    name: 'a gap that is taken for younger than it is hides the entry from who was just woken',
    breaks: ['blind hint'],
    setting: { odds: rough },
  },
  trailing: {
    name: 'a push that comes while a look is under way waits for the next push, or for a timer',
    breaks: ['tardy'],
    setting: { odds: { ...mild, slow: 0.9 }, kind: 'bound' },
  },
  marks: {
    name: 'a trailing look under a faster clock’s mark waits for itself',
    breaks: ['tardy'],
    setting: { odds: { ...mild, slow: 0.9 }, kind: 'late' },
  },
  cap: {
    name: 'tasks that end together call their agent all at once',
    breaks: ['too many at once'],
    setting: { odds: mild, kind: 'crowd', pace: 'brief' },
  },
  leavesAlone: {
    name: 'an agent that answers nobody is called for each of its tasks',
    breaks: ['hammered'],
    setting: { odds: mild, kind: 'crowd', pace: 'brief' },
  },
  oneProbe: {
    name: 'an agent that was left alone is called for all of its tasks at once',
    breaks: ['hammered'],
    setting: { odds: mild, kind: 'crowd', pace: 'brief' },
  },
  closes: {
    name: 'an agent that answers again is called for one task after the other, minutes apart',
    breaks: ['tardy'],
    setting: { odds: mild, kind: 'crowd', pace: 'brief' },
  },
}
