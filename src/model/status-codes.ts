/** Status codes of gRPC (statuscodes.md). */

/** The status codes that streams and calls end with. */
export const status = {
  ok: 0,
  canceled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  outOfRange: 11,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
  unauthenticated: 16,
} as const

/** Names of gRPC status codes as used in metrics. */
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

/** Returns the name of a status code. Unknown codes are `Unknown`. */
export const codeName = (code: number): string => grpcCodes[code] ?? 'Unknown'

/** Returns the status code for a name in any spelling (`NOT_FOUND`, `NotFound`) or a number. Undefined for other texts. */
export function codeNamed(name: string): number | undefined {
  const plain = name.replaceAll('_', '').toLowerCase().replace('cancelled', 'canceled')
  const code = /^\d{1,2}$/.test(name) ? Number(name) : grpcCodes.findIndex((known) => known.toLowerCase() === plain)
  return code in grpcCodes ? code : undefined
}
