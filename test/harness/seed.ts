/**
 * All randomness in tests comes from one seed. It is the same in every run unless `FUZZ_SEED` sets another, so that a failure is caused by
 * the change under test. The same values find nothing new in a later run, so a run has a fifth of what runs with seeds of their own have.
 */
import fc from 'fast-check'

export const seed = Number(process.env.FUZZ_SEED ?? 20_261_121)
/** The volume of random input, as a multiple of that of a run with a seed of its own. */
export const volume = Number(process.env.FUZZ_TIMES ?? 0.2)
/** The number of random inputs of this run, where a run with a seed of its own has `full`. */
export const runs = (full: number): number => Math.ceil(full * volume)
fc.configureGlobal({ seed })
