// The programs that Go builds for tests. Run by itself it builds those that can be built, so that `.ci/run` has it done beside what waits for the network.
import { fileURLToPath } from 'node:url'
import { buildHelm, missingForHelm } from './chart/helm.js'
import { buildCluster, missingForCluster } from './cluster/build.js'
import { buildPromtool, missingForPromtool } from './monitoring/promtool.js'
import { buildOracle, missingForOracle } from './template/oracle.js'

/** The layers that need them, what they are, why they cannot be had here (or undefined), and what builds them. */
export const goPrograms = [
  { layer: 'orchestrator', what: 'the programs of the test cluster', missing: missingForCluster, build: buildCluster },
  { layer: 'template', what: 'the program that asks Go', missing: missingForOracle, build: buildOracle },
  { layer: 'chart', what: 'Helm', missing: missingForHelm, build: buildHelm },
  { layer: 'monitoring', what: 'promtool', missing: missingForPromtool, build: buildPromtool },
]

if (process.argv[1] === fileURLToPath(import.meta.url)) for (const { missing, build } of goPrograms) if (missing() === undefined) build()
