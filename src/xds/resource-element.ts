/** The elements of responses. */
import { fromBinary } from '@bufbuild/protobuf'
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt'
import { scanFields } from './slab/wire.ts'

/** Returns the resource in an element of a response: a field with an `Any`. Throws an Error when it cannot be decoded. */
export function resourceIn(element: Buffer): Any {
  const [field] = scanFields(element)
  return fromBinary(AnySchema, field?.bytes ?? new Uint8Array())
}
