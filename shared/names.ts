// Names that leave the house: public ids that carry where to find what they name, and the header of our own wakes. Pure.

/** Marks what a relay sends out, so that no relay takes it for a push: two that point at each other stop there. */
export const hopHeader = 'rouse-hop'

const prefix = 'wk_'
const length = 24

/** Public id of a wake, sent as `webhook-id`: it carries the subject whose partition holds the record. */
export const writeWakeId = (subject: string, id: string): string => `${prefix}${subject}${id}`

/** The parts of a public wake id, or undefined when it is none. */
export function readWakeId(text: string): { subject: string; id: string } | undefined {
  if (!/^wk_[\w-]{48}$/.test(text)) return undefined
  const rest = text.slice(prefix.length)
  return { subject: rest.slice(0, length), id: rest.slice(length) }
}
