/** What becomes of a query (docs/agent.md, D2 to D5): an answer from the name table, a refusal, or the way to the servers of the system. */
import { answer, BadMessage, failure, fitting, isNameError, type Query, rcode, readQuery, recordType, roomFor, sizeFor } from './message.ts'
import type { NameTable } from './name-table.ts'

/** How long clients may keep our answers, in seconds. */
const ttl = 30

/** What is to be done with a query: send an answer, ask the servers of the system, or nothing. */
export type Decision =
  | { readonly answer: Buffer }
  /** Whether the name is known: then it is not for others to say that there is no such name. */
  | { readonly forward: Query; readonly isKnown: boolean }
  | 'ignore'

/** What queries are answered from. */
export interface Knowledge {
  /** Undefined until the first has come. */
  readonly table: NameTable | undefined
  readonly search: readonly string[]
}

/** Decides about a message that came, over TCP or not. `below` gives a random integer from 0 up to but without a number: addresses are in another order each time. */
export function decide(message: Buffer, { table, search }: Knowledge, isStream: boolean, below: (limit: number) => number): Decision {
  let query: Query
  try {
    query = readQuery(message)
  } catch (error) {
    const bad = error instanceof BadMessage ? error.query : undefined
    return bad ? { answer: failure(bad, rcode.formatError) } : 'ignore'
  }
  const { question, edns, isStandard } = query
  if (!question) return { answer: failure(query, rcode.serverFailure) }
  const { name, type, isInternet } = question
  const found = isStandard && isInternet && name !== undefined ? table?.find(name, search) : undefined
  if (!found || (type !== recordType.A && type !== recordType.AAAA)) return { forward: query, isKnown: found !== undefined }
  if (edns && edns.version > 0) return { answer: failure(query, rcode.badVersion) }
  const [all, bytes] = type === recordType.A ? [found.ipv4, 4] : [found.ipv6, 16]
  const size = sizeFor(query, isStream)
  const addresses = shuffled(all, roomFor(size, bytes), below)
  return { answer: answer(query, { alias: found.alias, addresses, ttl }, size) }
}

/** What is sent to the client when a server of the system has answered, or none. */
export function forwarded(
  { forward: query, isKnown }: Extract<Decision, { forward: Query }>,
  response: Buffer | undefined,
  isStream: boolean,
): Buffer {
  if (!response) return failure(query, rcode.serverFailure)
  const size = sizeFor(query, isStream)
  return isKnown && isNameError(response) ? answer(query, { addresses: [], ttl }, size) : fitting(query, response, size)
}

/** The items with so many of them, chosen by chance, in front: the others are not looked at. */
function shuffled<T>(items: readonly T[], count: number, below: (limit: number) => number): readonly T[] {
  const mixed = [...items]
  for (let place = 0; place < Math.min(count, mixed.length - 1); place++) {
    const other = place + below(mixed.length - place)
    const moved = mixed[place] as T
    mixed[place] = mixed[other] as T
    mixed[other] = moved
  }
  return mixed
}
