// Ends calls to AWS whose time is over, and waits for moments. The SDK's own way, options of each call, would have it build its whole middleware anew for each.

/** Ends the calls that heed it; `over` stops the clock, so that nothing is left behind. */
export type Deadline = { signal: AbortSignal; over: () => void }

/** Starts a deadline, in milliseconds from now. */
export function startDeadline(milliseconds: number): Deadline {
  const ending = new AbortController()
  const timer = setTimeout(() => ending.abort(), milliseconds)
  return { signal: ending.signal, over: () => clearTimeout(timer) }
}

/** Waits, for another worker that will be done in a moment. */
export const pause = (milliseconds: number): Promise<void> =>
  new Promise(resolve => setTimeout(resolve, milliseconds))

/** What ends a command, by its input: the one part of it that goes all the way down to the connection. */
const endings = new WeakMap<object, AbortSignal>()

/** Lets a command end with a signal, if there is one. Only clients that {@link heed} obey. */
export function endBy<Command extends { input: object }>(
  command: Command,
  signal: AbortSignal | undefined,
): Command {
  if (signal !== undefined) endings.set(command.input, signal)
  return command
}

type Carrier<Request> = {
  handle: (request: Request, options: { abortSignal: AbortSignal }) => Promise<{ response: unknown }>
}

type Step<Input, Output, Request> = (args: {
  input: Input
  request: Request
}) => Promise<{ response: unknown; output?: Output }>

/** The SDK middleware that obeys the deadlines of commands; its place is {@link innermost}. */
export const heed =
  <Request>(config: { requestHandler: Carrier<Request> }) =>
  <Input extends object, Output extends object>(
    next: Step<Input, Output, Request>,
  ): Step<Input, Output, Request> =>
  async args => {
    const abortSignal = endings.get(args.input)
    if (abortSignal === undefined) return next(args)
    const { response } = await config.requestHandler.handle(args.request, { abortSignal })
    return { response }
  }

/** Every attempt passes here, and behind it is nothing but the connection. */
export const innermost = { name: 'deadline', step: 'deserialize', priority: 'low' } as const
