/** The functions of injection templates besides those of Go and of injection: those of sprig (docs/injection.md, N5; docs/templates.md, T8). */
import { randomBytes } from 'node:crypto'
import type { Functions } from '../../../src/template/function.ts'
import { sprigFunctions } from '../../../src/template/sprig/sprig.ts'
import { wallClockMs } from '../../runtime/clock.ts'

/** Returns the functions by name. */
export const templateLibrary = (): Functions =>
  sprigFunctions({ clock: () => BigInt(Math.floor(wallClockMs())) * 1_000_000n, random: (count) => randomBytes(count) })
