/** Names of gRPC status codes, as metrics have them (gRPC, statuscodes.md). */
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
