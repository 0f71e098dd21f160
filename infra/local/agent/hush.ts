// Keeps the SDK's sender from printing hook URLs, which are secrets, to the console. Touches those lines only.

const lines = /^(Push notification sent|Error sending push notification) for task_id=/

let holders = 0
let restore = (): void => {}

/** Starts to drop those lines; call what it gives back to stop. */
export function hush(): () => void {
  if (holders++ === 0) {
    const { info, error } = console
    const filter =
      (write: typeof info): typeof info =>
      (...words) => {
        if (!lines.test(String(words[0]))) write(...words)
      }
    Object.assign(console, { info: filter(info), error: filter(error) })
    restore = () => {
      Object.assign(console, { info, error })
    }
  }
  return () => {
    if (--holders === 0) restore()
  }
}
