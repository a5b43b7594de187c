/**
 * Decides how a query is handled (docs/agent.md, D2 to D5): answered from the name table, answered with an error, or forwarded to the
 * servers of the system.
 */
import { answer, BadMessage, failure, fitting, isNameError, type Query, rcode, readQuery, recordType, roomFor, sizeFor } from './message.ts'
import type { NameTable } from './name-table.ts'

/** The TTL of our answers, in seconds. */
const ttl = 30

/** How a query is handled: answered, forwarded to the servers of the system, or ignored. */
export type Decision =
  | { readonly answer: Buffer }
  /** `isKnown`: the name is in the name table, so an upstream NXDOMAIN is not passed on. */
  | { readonly forward: Query; readonly isKnown: boolean }
  | 'ignore'

/** The data that queries are answered from. */
export interface ResolverState {
  /** Undefined until the first table has arrived. */
  readonly table: NameTable | undefined
  readonly search: readonly string[]
}

/**
 * Decides how a received message is handled. `isStream` is true for TCP. `below` returns a random integer from 0 up to but excluding its
 * argument, which shuffles the addresses.
 */
export function decide(message: Buffer, { table, search }: ResolverState, isStream: boolean, below: (limit: number) => number): Decision {
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

/** Returns the response to a forwarded query. `response` is the upstream server's response, undefined when there was none. */
export function forwarded(
  { forward: query, isKnown }: Extract<Decision, { forward: Query }>,
  response: Buffer | undefined,
  isStream: boolean,
): Buffer {
  if (!response) return failure(query, rcode.serverFailure)
  const size = sizeFor(query, isStream)
  return isKnown && isNameError(response) ? answer(query, { addresses: [], ttl }, size) : fitting(query, response, size)
}

/** Returns a copy of the items whose first `count` are a random selection in random order. */
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
