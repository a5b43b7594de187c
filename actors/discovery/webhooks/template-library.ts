/** The functions of injection templates besides those of Go and of injection: those of sprig (docs/injection.md, N5; docs/templates.md, T8). */
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import type { Functions } from '../../../src/template/function.ts'
import type { KeyKind } from '../../../src/template/sprig/keys.ts'
import { sprigFunctions } from '../../../src/template/sprig/sprig.ts'
import { wallClockMs } from '../../runtime/clock.ts'

/** Returns the functions by name. */
export const templateLibrary = (): Functions =>
  sprigFunctions({ clock: () => BigInt(Math.floor(wallClockMs())) * 1_000_000n, random: (count) => randomBytes(count), newKey })

/** Makes a private key for a template. */
export function newKey(kind: KeyKind): KeyObject {
  switch (kind) {
    case 'rsa4096':
      return generateKeyPairSync('rsa', { modulusLength: 4096 }).privateKey
    case 'rsa2048':
      return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    case 'dsa':
      return generateKeyPairSync('dsa', { modulusLength: 2048, divisorLength: 256 }).privateKey
    case 'ecdsa':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    case 'ed25519':
      return generateKeyPairSync('ed25519').privateKey
  }
}
