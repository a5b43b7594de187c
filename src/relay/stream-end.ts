/** What the end of a stream of discovery means (docs/agent.md, X6). */
import { status } from '../model/status-codes.ts'

/** How a stream ended: status and message, and whether discovery has said so or the connection was lost. */
export interface GivenEnd {
  readonly code: number
  readonly message: string
  readonly isTold: boolean
}

/** What it means. */
export interface MeaningOfEnd {
  /** Whether it is an end that streams come to when servers restart or connections are renewed. */
  readonly isExpected: boolean
  /** Whether another attempt with the same requests would end the same way. */
  readonly isFinal: boolean
  /** What the proxy is told. */
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

/** Judges the end of a stream; `isWhole` says that no response had come in part only. */
export function endOfStream(end: GivenEnd, isWhole: boolean): MeaningOfEnd {
  const isExpected = expectedCodes.has(end.code) || (end.code === status.unavailable && (!end.isTold || expectedMessages.test(end.message)))
  const isCut = end.code === status.ok && !isWhole
  return {
    isExpected,
    isFinal: end.isTold && finalCodes.has(end.code),
    code: isCut ? status.unavailable : end.code,
    message: isCut ? 'discovery ended the stream in the middle of a response' : end.message,
  }
}
