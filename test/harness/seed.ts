/** What is random in tests comes from one seed, the same in every run unless `FUZZ_SEED` gives another: a change is refused for what it did. */
import fc from 'fast-check'

export const seed = Number(process.env.FUZZ_SEED ?? 20_261_121)
fc.configureGlobal({ seed })
