/** What the end of a stream of discovery means (docs/agent.md, X6). Codes are those of gRPC (statuscodes.md). */

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

const code = {
  ok: 0,
  canceled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
}
const expectedCodes: ReadonlySet<number> = new Set([code.ok, code.canceled, code.deadlineExceeded])
const finalCodes: ReadonlySet<number> = new Set([code.invalidArgument, code.failedPrecondition, code.outOfRange, code.unimplemented, code.internal])
const expectedMessages = /client disconnected|transport is closing/

/** Judges the end of a stream; `isWhole` says that no response had come in part only. */
export function endOfStream(end: GivenEnd, isWhole: boolean): MeaningOfEnd {
  const isExpected = expectedCodes.has(end.code) || (end.code === code.unavailable && (!end.isTold || expectedMessages.test(end.message)))
  const isCut = end.code === code.ok && !isWhole
  return {
    isExpected,
    isFinal: end.isTold && finalCodes.has(end.code),
    code: isCut ? code.unavailable : end.code,
    message: isCut ? 'discovery ended the stream in the middle of a response' : end.message,
  }
}
