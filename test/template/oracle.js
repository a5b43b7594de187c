// The program that asks Go's own libraries.
import { fileURLToPath } from 'node:url'
import { buildProgram, canHaveProgram } from '../go-program.js'

const oracle = {
  name: 'oracle',
  root: fileURLToPath(new URL('oracle', import.meta.url)),
  sources: ['go.mod', 'go.sum', 'main.go'],
  build: ['.'],
}

/** Why Go cannot be asked here, or undefined. */
export const missingForOracle = () => (canHaveProgram(oracle) ? undefined : 'Go is not installed, whose text/template is compared with ours')

/** Builds the program if it is not there yet, which takes about a minute. Returns its path. */
export const buildOracle = () => buildProgram(oracle)
