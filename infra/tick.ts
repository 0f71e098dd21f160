// The schedule that makes everything due be found: once a minute, never tried again, for the next minute comes anyway.
import { door } from './door.ts'
import { schedules } from './topology.ts'

const minutes = schedules.tick.everySeconds / 60

new sst.aws.CronV2('TickSchedule', {
  schedule: minutes === 1 ? 'rate(1 minute)' : `rate(${minutes} minutes)`,
  function: door(schedules.tick.door, 'Tick', { retries: 0 }),
})
