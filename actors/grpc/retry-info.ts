/** Metadata with the time after which a client may retry a refused call. */
import { fieldHead, textField, varintField } from '../../src/xds/slab/wire.ts'

const retryInfo = 'type.googleapis.com/google.rpc.RetryInfo'

/**
 * Returns the metadata: `google.rpc.RetryInfo` within `google.rpc.Status` for clients that read status details, and the pushback header
 * for clients with a retry policy (gRFC A6).
 */
export function retryMetadata(code: number, message: string, afterMs: number): Record<string, string> {
  const delay = [varintField(1, Math.floor(afterMs / 1000)), varintField(2, (afterMs % 1000) * 1_000_000)]
  const info = field(1, ...delay)
  const detail = field(3, textField(1, retryInfo), field(2, info))
  const details = Buffer.concat([varintField(1, code), textField(2, message), detail])
  return { 'grpc-status-details-bin': details.toString('base64'), 'grpc-retry-pushback-ms': String(afterMs) }
}

function field(number: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  return Buffer.concat([fieldHead(number, content.length), content])
}
