// Hook URLs that the SDK prints do not reach the console while an agent of ours runs.
import { expect, test } from 'vitest'
import { hush } from '../../infra/local/agent/hush.ts'

test('lines with hook URLs are dropped until the last agent stops, and no others', () => {
  const written: unknown[] = []
  const mine = (line: unknown): void => {
    written.push(line)
  }
  const { info, error } = console
  Object.assign(console, { info: mine, error: mine })
  try {
    const ends = [hush(), hush()]
    const tell = (): void => {
      console.info('Push notification sent for task_id=t-1 to URL: https://hooks.example/hooks/h-1')
      console.error('Error sending push notification for task_id=t-1 to URL: https://hooks.example/hooks/h-1')
      console.info('Something else')
    }
    tell()
    ends[0]?.()
    tell()
    expect(written).toEqual(['Something else', 'Something else'])
    ends[1]?.()
    expect([console.info, console.error]).toEqual([mine, mine])
    tell()
    expect(written).toHaveLength(5)
  } finally {
    Object.assign(console, { info, error })
  }
})
