/** Status codes of gRPC (statuscodes.md). */

/** Codes with which streams and calls end. */
export const status = {
  ok: 0,
  canceled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const

/** Names of gRPC status codes, as metrics have them. */
const grpcCodes = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
]

/** The name of a status; codes that gRPC does not know are `Unknown`. */
export const codeName = (code: number): string => grpcCodes[code] ?? 'Unknown'
