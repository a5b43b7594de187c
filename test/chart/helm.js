// Helm, built from its Go module.
import { fileURLToPath } from 'node:url'
import { buildProgram, canHaveProgram } from '../go-program.js'

const helm = {
  name: 'helm',
  root: fileURLToPath(new URL('helm', import.meta.url)),
  sources: ['go.mod', 'go.sum'],
  build: ['-ldflags', '-s -w', 'helm.sh/helm/v4/cmd/helm'],
}

/** Why there is no Helm here, or undefined. */
export const missingForHelm = () => (canHaveProgram(helm) ? undefined : 'Go is not installed, which builds Helm')

/** Builds Helm if it is not there yet, which takes minutes without Go's own cache. Returns its path. */
export const buildHelm = () => buildProgram(helm)
