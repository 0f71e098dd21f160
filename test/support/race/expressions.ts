// Reads DynamoDB's conditions and updates and carries them out on items as the wire has them. Takes what our tables write, refuses the rest.
import type { AttributeValue } from '@aws-sdk/client-dynamodb'

export type Item = Record<string, AttributeValue>
export type Condition = (item: Item, values: Item) => boolean
type Operand = (item: Item, values: Item) => AttributeValue | undefined
type Change = (next: Item, item: Item, values: Item) => void

const conditions = new Map<string, Condition>()
const updates = new Map<string, Change[]>()

const once = <T>(known: Map<string, T>, text: string, make: () => T): T => {
  const made = known.get(text) ?? make()
  known.set(text, made)
  return made
}

/** The condition that a text says. Names are written as `#name`, as shared/store/table.ts does. */
export const conditionOf = (text: string): Condition =>
  once(conditions, text, () => whole(text, tokens => either(tokens)))

/** The item as an update leaves it; what stood there stays as it is. */
export function updated(text: string, item: Item, values: Item): Item {
  const changes = once(updates, text, () => whole(text, changesIn))
  const next = { ...item }
  for (const change of changes) change(next, item, values)
  // Places are counted as they were before: what was taken out leaves the list only now.
  for (const [name, { L: list }] of Object.entries(next))
    if (list !== undefined) next[name] = { L: list.filter(one => one !== undefined) }
  return next
}

type Tokens = { text: string; list: string[]; at: number }

const peek = ({ list, at }: Tokens): string => list[at] ?? ''

function take(tokens: Tokens, ...wanted: string[]): string {
  const token = peek(tokens)
  if (token === '' || (wanted.length > 0 && !wanted.includes(token)))
    throw new Error(`"${tokens.text}": ${token || 'its end'} where ${wanted} should be`)
  tokens.at += 1
  return token
}

function whole<T>(text: string, read: (tokens: Tokens) => T): T {
  const list = text.match(/<>|<=|>=|[#:]?\w+|[^\s\w]/g) ?? []
  const tokens = { text, list, at: 0 }
  const result = read(tokens)
  if (tokens.at < list.length) throw new Error(`"${text}": ${peek(tokens)} was not expected`)
  return result
}

function either(tokens: Tokens): Condition {
  const one = both(tokens)
  if (peek(tokens) !== 'OR') return one
  take(tokens)
  const other = either(tokens)
  return (item, values) => one(item, values) || other(item, values)
}

function both(tokens: Tokens): Condition {
  const one = single(tokens)
  if (peek(tokens) !== 'AND') return one
  take(tokens)
  const other = both(tokens)
  return (item, values) => one(item, values) && other(item, values)
}

type Test = (one: AttributeValue | undefined, other: AttributeValue | undefined) => boolean

const functions: Record<string, Test> = {
  attribute_exists: one => one !== undefined,
  attribute_not_exists: one => one === undefined,
  begins_with: (one, other) => textOf(one)?.startsWith(textOf(other) ?? '') === true,
  contains: (one, other) => (one?.SS ?? [one?.S]).some(text => text === other?.S),
}

function single(tokens: Tokens): Condition {
  const token = peek(tokens)
  if (token === 'NOT') {
    take(tokens)
    const inner = single(tokens)
    return (item, values) => !inner(item, values)
  }
  if (token === '(') {
    take(tokens)
    const inner = either(tokens)
    take(tokens, ')')
    return inner
  }
  const named = functions[token]
  if (named !== undefined) {
    take(tokens)
    const [one, other] = argumentsIn(tokens)
    return (item, values) => named(one?.(item, values), other?.(item, values))
  }
  const left = operand(tokens)
  const test = comparisons[take(tokens, ...Object.keys(comparisons))]
  const right = operand(tokens)
  return (item, values) => test?.(left(item, values), right(item, values)) === true
}

/** Values of different kinds, or none, are neither less nor greater. */
const order = (one: AttributeValue | undefined, other: AttributeValue | undefined): number => {
  if (one?.N !== undefined && other?.N !== undefined) return Number(one.N) - Number(other.N)
  if (one?.S !== undefined && other?.S !== undefined) return one.S < other.S ? -1 : Number(one.S > other.S)
  return Number.NaN
}

const same: Test = (one, other) => {
  if (one === undefined || other === undefined) return false
  const by = order(one, other)
  return Number.isNaN(by) ? canonical(one) === canonical(other) : by === 0
}

const canonical = (value: AttributeValue): string =>
  JSON.stringify(value.SS === undefined ? value : [...value.SS].sort())

const comparisons: Record<string, Test> = {
  '=': same,
  '<>': (one, other) => !same(one, other),
  '<': (one, other) => order(one, other) < 0,
  '<=': (one, other) => order(one, other) <= 0,
  '>': (one, other) => order(one, other) > 0,
  '>=': (one, other) => order(one, other) >= 0,
}

const textOf = (value: AttributeValue | undefined): string | undefined => value?.S

function argumentsIn(tokens: Tokens): Operand[] {
  take(tokens, '(')
  const found = [value(tokens)]
  while (take(tokens, ',', ')') === ',') found.push(value(tokens))
  return found
}

/** A name, also of a member of a map or of a place in a list, a value, or a size. */
function operand(tokens: Tokens): Operand {
  const token = take(tokens)
  if (token === 'size') {
    const [of] = argumentsIn(tokens)
    return (item, values) => ({ N: String(sizeOf(of?.(item, values))) })
  }
  if (token.startsWith(':')) return (_item, values) => values[token]
  const path = pathFrom(token, tokens)
  return item => member({ M: item }, path)
}

function pathFrom(token: string, tokens: Tokens): string[] {
  if (!token.startsWith('#')) throw new Error(`"${tokens.text}": ${token} is no name`)
  const path = [token.slice(1)]
  while (peek(tokens) === '.' || peek(tokens) === '[') {
    const isPlace = take(tokens) === '['
    path.push(isPlace ? take(tokens) : take(tokens).slice(1))
    if (isPlace) take(tokens, ']')
  }
  return path
}

const member = (value: AttributeValue | undefined, [name, ...rest]: string[]): AttributeValue | undefined =>
  name === undefined ? value : member(value?.M?.[name] ?? value?.L?.[Number(name)], rest)

const sizeOf = (value: AttributeValue | undefined): number =>
  value?.SS?.length ?? value?.L?.length ?? value?.S?.length ?? Object.keys(value?.M ?? {}).length

/** What a SET may give a name: an operand, a fallback, a sum. */
function value(tokens: Tokens): Operand {
  const first = term(tokens)
  const sign = peek(tokens)
  if (sign !== '+' && sign !== '-') return first
  take(tokens)
  const second = term(tokens)
  const factor = sign === '+' ? 1 : -1
  return (item, values) => ({
    N: String(numberOf(first(item, values)) + factor * numberOf(second(item, values))),
  })
}

function term(tokens: Tokens): Operand {
  const name = peek(tokens)
  if (name !== 'if_not_exists' && name !== 'list_append') return operand(tokens)
  take(tokens)
  const [one, other] = argumentsIn(tokens)
  if (name === 'if_not_exists') return (item, values) => one?.(item, values) ?? other?.(item, values)
  return (item, values) => ({ L: [...(one?.(item, values)?.L ?? []), ...(other?.(item, values)?.L ?? [])] })
}

const numberOf = (value: AttributeValue | undefined): number => Number(value?.N ?? 0)

type Clause = (tokens: Tokens) => Change

const clauses: Record<string, Clause> = {
  SET: tokens => {
    const path = pathFrom(take(tokens), tokens)
    take(tokens, '=')
    const from = value(tokens)
    return (next, item, values) => assign(next, path, from(item, values))
  },
  REMOVE: tokens => {
    const path = pathFrom(take(tokens), tokens)
    return next => assign(next, path, undefined)
  },
  ADD: tokens => {
    const path = pathFrom(take(tokens), tokens)
    const from = operand(tokens)
    return (next, item, values) => assign(next, path, sum(member({ M: item }, path), from(item, values)))
  },
  DELETE: tokens => {
    const path = pathFrom(take(tokens), tokens)
    const from = operand(tokens)
    return (next, item, values) => {
      const left = (member({ M: item }, path)?.SS ?? []).filter(one => !from(item, values)?.SS?.includes(one))
      assign(next, path, left.length === 0 ? undefined : { SS: left })
    }
  },
}

function sum(one: AttributeValue | undefined, other: AttributeValue | undefined): AttributeValue {
  if (other?.SS !== undefined) return { SS: [...new Set([...(one?.SS ?? []), ...other.SS])] }
  return { N: String(numberOf(one) + numberOf(other)) }
}

function assign(map: Item, [name = '', ...rest]: string[], to: AttributeValue | undefined): void {
  const list = map[name]?.L
  if (list !== undefined && rest[0] !== undefined) map[name] = { L: placed(list, Number(rest[0]), to) }
  else if (rest.length > 0) {
    const inner = { ...map[name]?.M }
    assign(inner, rest, to)
    map[name] = { M: inner }
  } else if (to === undefined) delete map[name]
  else map[name] = to
}

/** A place behind the end is the end. */
function placed(list: AttributeValue[], at: number, to: AttributeValue | undefined): AttributeValue[] {
  const next = [...list]
  if (to === undefined) delete next[at]
  else next[Math.min(at, next.length)] = to
  return next
}

function changesIn(tokens: Tokens): Change[] {
  const changes: Change[] = []
  while (peek(tokens) !== '') {
    const clause = clauses[take(tokens, ...Object.keys(clauses))]
    if (clause === undefined) break
    do changes.push(clause(tokens))
    while (peek(tokens) === ',' && take(tokens) === ',')
  }
  return changes
}
