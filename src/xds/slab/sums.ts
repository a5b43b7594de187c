/**
 * Versions of compound resources, updated in time proportional to the parts that changed: each part has a number of 128 bits, and the whole
 * has their sum. The numbers are digests with a secret key, because several tenants contribute parts to one whole: a tenant who could
 * compute the numbers could search for parts that give two different wholes the same sum. The sums stay in the process; clients get a
 * digest of a sum.
 *
 * Processes with the same key give equal content equal versions. With another key the versions of compound resources differ, and a proxy
 * that reconnects is sent them once more. Versions of single resources are digests of their bytes and depend on no key.
 */
import { hash } from 'node:crypto'

/** 128 bits as four unsigned 32-bit numbers that are added separately. */
export type Sum = readonly [number, number, number, number]

/** The sum of no parts. */
export const zeroSum: Sum = [0, 0, 0, 0]

/** Returns the sum of two sums. */
export function addSums(one: Sum, other: Sum): Sum {
  return [(one[0] + other[0]) >>> 0, (one[1] + other[1]) >>> 0, (one[2] + other[2]) >>> 0, (one[3] + other[3]) >>> 0]
}

/** Returns the difference of two sums. */
export function subtractSums(one: Sum, other: Sum): Sum {
  return [(one[0] - other[0]) >>> 0, (one[1] - other[1]) >>> 0, (one[2] - other[2]) >>> 0, (one[3] - other[3]) >>> 0]
}

/** Returns a sum as 32 hexadecimal digits. Must not be sent to clients. */
export function sumText(sum: Sum): string {
  return sum.map((lane) => lane.toString(16).padStart(8, '0')).join('')
}

/** Parses a sum from at least 32 hexadecimal digits, of which the first 32 are used. */
export function readSum(text: string): Sum {
  const lane = (at: number) => Number.parseInt(text.slice(at, at + 8), 16)
  return [lane(0), lane(8), lane(16), lane(24)]
}

/** Returns the version that clients are sent for a sum: 32 hexadecimal digits, equal for equal sums. */
export function versionOfSum(sum: Sum): string {
  return contentVersion(Buffer.from(sumText(sum)))
}

/** Returns the version of a resource: the first 128 bits of the SHA-256 of its bytes, as 32 hexadecimal digits. */
export function contentVersion(bytes: Uint8Array): string {
  // Not a slice of all 64 digits: V8 would keep the whole text for it.
  return Buffer.from(hash('sha256', bytes, 'binary'), 'latin1').toString('hex', 0, 16)
}

/** Computes the numbers of parts with a secret key. */
export class KeyedSums {
  readonly #key: string
  readonly #known = new WeakMap<object, Sum>()

  constructor(key: string) {
    this.#key = key
  }

  /** Returns the number of the part that a text identifies. */
  of(text: string): Sum {
    return readSum(hash('sha256', `${this.#key}|${text}`, 'hex'))
  }

  /** Returns the number of the part's version, and caches it for the part object. */
  ofPart(part: { readonly version: string }): Sum {
    let sum = this.#known.get(part)
    if (!sum) this.#known.set(part, (sum = this.of(part.version)))
    return sum
  }
}
