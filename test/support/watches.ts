// A watch as a test needs it: told and looked at an hour ago, unless said otherwise.
import type { Watch } from '../../shared/model.ts'

export const second = 1000
export const minute = 60 * second
export const hour = 60 * minute
export const now = Date.UTC(2026, 0, 1)

export const watchWith = (more: Partial<Watch> = {}): Watch => ({
  key: 'w',
  tenant: 't',
  agent: 'a',
  principal: 'agent',
  taskId: 'task',
  created: now - hour,
  subs: ['s1'],
  fresh: [],
  owed: [],
  ring: [],
  rev: 1,
  woken: 1,
  changed: now - hour,
  looked: now - hour,
  lookAt: now - hour,
  lease: 0,
  again: 0,
  holds: 0,
  ...more,
})
