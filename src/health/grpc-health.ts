/** Decodes the response of `grpc.health.v1.Health/Check`. */
import { scanFields } from '../xds/slab/wire.ts'

/** `HealthCheckResponse.ServingStatus.SERVING`. */
export const serving = 1

/** Returns the status of a `HealthCheckResponse`; 0 (`UNKNOWN`) when the field is absent. Throws WireError. */
export function readHealthStatus(message: Buffer): number {
  let status = 0
  for (const { field, value } of scanFields(message)) if (field === 1) status = value ?? 0
  return status
}
