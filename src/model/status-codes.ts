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

/** The code of a status by its name in any spelling (`NOT_FOUND`, `NotFound`) or by its number; undefined for what is neither. */
export function codeNamed(name: string): number | undefined {
  const plain = name.replaceAll('_', '').toLowerCase().replace('cancelled', 'canceled')
  const code = /^\d{1,2}$/.test(name) ? Number(name) : grpcCodes.findIndex((known) => known.toLowerCase() === plain)
  return code in grpcCodes ? code : undefined
}
