// `npm run test:long`: all tests with a seed of their own and fifty times the random volume of `npm test`, for a nightly run. Takes hours.
// `FUZZ_SEED` repeats a run. Arguments are handed to mocha, as with `npm test`; files are named with `FUZZ_TIMES=10 npx mocha <files>`.
import { randomInt } from 'node:crypto'

process.env.FUZZ_SEED ??= String(randomInt(2 ** 31))
process.env.FUZZ_TIMES ??= '10'
console.log(`FUZZ_SEED=${process.env.FUZZ_SEED} FUZZ_TIMES=${process.env.FUZZ_TIMES}`)
// A test with a fiftyfold volume has as much more time, and so has the process that runs it.
process.env.TEST_PATIENCE ??= '50'
await import('./run.js')
