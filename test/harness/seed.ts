/**
 * All randomness in tests comes from one seed. It is the same in every run unless `FUZZ_SEED` sets another, so that a failure is caused by
 * the change under test.
 */
import fc from 'fast-check'

export const seed = Number(process.env.FUZZ_SEED ?? 20_261_121)
fc.configureGlobal({ seed })
