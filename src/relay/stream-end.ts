/** Classifies the end of a discovery stream (docs/agent.md, X6). */
import { status } from '../model/status-codes.ts'

/** The end of a stream: status and message. `hasStatus` is false when the connection was lost before discovery sent a status. */
export interface GivenEnd {
  readonly code: number
  readonly message: string
  readonly hasStatus: boolean
}

/** The consequences of the end. */
export interface ClassifiedEnd {
  /** Whether streams end this way in normal operation, for example when a server restarts or a connection reaches its maximum age. */
  readonly isExpected: boolean
  /** Whether another attempt with the same requests would end the same way. */
  readonly isFinal: boolean
  /** The status that the proxy's stream is ended with. */
  readonly code: number
  readonly message: string
}

const expectedCodes: ReadonlySet<number> = new Set([status.ok, status.canceled, status.deadlineExceeded])
const finalCodes: ReadonlySet<number> = new Set([
  status.invalidArgument,
  status.failedPrecondition,
  status.outOfRange,
  status.unimplemented,
  status.internal,
])
const expectedMessages = /client disconnected|transport is closing/

/** Classifies the end of a stream. `isWhole` is false when a response was received only in part. */
export function endOfStream(end: GivenEnd, isWhole: boolean): ClassifiedEnd {
  const isExpected = expectedCodes.has(end.code) || (end.code === status.unavailable && (!end.hasStatus || expectedMessages.test(end.message)))
  const isCut = end.code === status.ok && !isWhole
  return {
    isExpected,
    isFinal: end.hasStatus && finalCodes.has(end.code),
    code: isCut ? status.unavailable : end.code,
    message: isCut ? 'discovery ended the stream in the middle of a response' : end.message,
  }
}
