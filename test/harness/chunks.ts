/** Splits byte streams into chunks, as a network does. */
import fc from 'fast-check'

/** Arbitrary offsets at which a stream is split; some samples split it after every byte. */
export const cuts = fc.oneof(fc.array(fc.nat(20_000), { maxLength: 30 }), fc.constant(Array.from({ length: 30_000 }, (_, index) => index)))

/** Splits a stream at the given offsets. */
export function chunked(stream: Buffer, at: readonly number[]): Buffer[] {
  const bounds = [...new Set([0, ...at.filter((offset) => offset < stream.length), stream.length])].sort((one, other) => one - other)
  return bounds.slice(1).map((end, index) => stream.subarray(bounds[index], end))
}
