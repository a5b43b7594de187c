// promtool of Prometheus, built from its Go module, with discovery of targets in clusters alone.
import { fileURLToPath } from 'node:url'
import { buildProgram, canHaveProgram } from '../go-program.js'

const promtool = {
  name: 'promtool',
  root: fileURLToPath(new URL('promtool', import.meta.url)),
  sources: ['go.mod', 'go.sum'],
  build: ['-ldflags', '-s -w', '-tags', 'remove_all_sd,enable_kubernetes_sd', 'github.com/prometheus/prometheus/cmd/promtool'],
}

/** Why there is no promtool here, or undefined. */
export const missingForPromtool = () => (canHaveProgram(promtool) ? undefined : 'Go is not installed, which builds promtool')

/** Builds promtool if it is not there yet, which takes minutes without Go's own cache. Returns its path. */
export const buildPromtool = () => buildProgram(promtool)
