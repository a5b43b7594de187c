/** Randomness that spreads what many do over time. */
import { randomInt } from 'node:crypto'

const steps = 1_000_000

/** Returns a random number from 0 to 1, exclusive. */
export const chance = (): number => randomInt(steps) / steps
