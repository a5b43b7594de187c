/**
 * Versions of what is made of many parts, in the time of the parts that changed: each part has a number of 128 bits, and the
 * whole has their sum. The numbers come from a digest with a key that no client knows, because several tenants have parts in
 * one whole: whoever could compute them could look for parts with which two different wholes come to the same. The sums
 * themselves stay in the process; what is sent is a digest of them.
 *
 * The key is the process's. After a restart of the process the versions of such wholes are others, and a proxy that comes back
 * is sent them once more; versions of single resources come from their bytes alone and stay what they were.
 */
import { hash } from 'node:crypto'

/** 128 bits as four unsigned numbers, each of which is added by itself. */
export type Sum = readonly [number, number, number, number]

/** The sum of nothing. */
export const zeroSum: Sum = [0, 0, 0, 0]

/** Sum of two sums. */
export function addSums(one: Sum, other: Sum): Sum {
  return [(one[0] + other[0]) >>> 0, (one[1] + other[1]) >>> 0, (one[2] + other[2]) >>> 0, (one[3] + other[3]) >>> 0]
}

/** Difference of two sums. */
export function subtractSums(one: Sum, other: Sum): Sum {
  return [(one[0] - other[0]) >>> 0, (one[1] - other[1]) >>> 0, (one[2] - other[2]) >>> 0, (one[3] - other[3]) >>> 0]
}

/** A sum as 32 hexadecimal digits; not for clients. */
export function sumText(sum: Sum): string {
  return sum.map((lane) => lane.toString(16).padStart(8, '0')).join('')
}

/** The sum in 32 hexadecimal digits. */
export function readSum(text: string): Sum {
  const lane = (at: number) => Number.parseInt(text.slice(at, at + 8), 16)
  return [lane(0), lane(8), lane(16), lane(24)]
}

/** What clients are told of a sum: 32 hexadecimal digits, equal for equal sums. */
export function versionOfSum(sum: Sum): string {
  return contentVersion(Buffer.from(sumText(sum)))
}

/** The version of bytes: the first 128 bits of their SHA-256 as 32 hexadecimal digits. */
export function contentVersion(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'hex').slice(0, 32)
}

/** Makes the numbers of parts, with the process's key. */
export class KeyedSums {
  readonly #key: string
  readonly #known = new WeakMap<object, Sum>()

  constructor(key: string) {
    this.#key = key
  }

  /** The number of a part that this text stands for. */
  of(text: string): Sum {
    return readSum(hash('sha256', `${this.#key}|${text}`, 'hex'))
  }

  /** The same for a part that is asked for again and again. */
  ofPart(part: { readonly version: string }): Sum {
    let sum = this.#known.get(part)
    if (!sum) this.#known.set(part, (sum = this.of(part.version)))
    return sum
  }
}
