/** Analyzes the configuration in files, without a server. */
import type { Readable } from 'node:stream'
import { analyze } from '../../../src/analysis/analyze.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { type Located, located, ofDocument } from '../../../src/analysis/report.ts'
import type { AnalyzeOrder } from '../../../src/cli/analyze-order.ts'
import { readFeatures } from '../../../src/config/features.ts'
import { readOptOuts } from '../../../src/config/opt-outs.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { givenFiles } from './configuration-files.ts'

/** What was found in files. */
export interface Analysis {
  readonly findings: readonly Located[]
  /** The number of files that were read, and those that were not since their names are not those of configuration. */
  readonly read: number
  readonly ignored: readonly string[]
}

/** Reads all files, checks each object as the server does, and analyzes them together. Rejects with an Error for a path that is not there. */
export async function analyzeFiles({ paths, isCheck, domain }: AnalyzeOrder, input: Readable, environment: NodeJS.ProcessEnv): Promise<Analysis> {
  const { features } = readFeatures(environment)
  const names = meshNames(features.MESH_DOMAIN)
  const optOuts = readOptOuts(features.MESH_POLICY_OPT_OUTS)
  const mesh = new OfflineMesh({ features, names, domain, plugins: [], optOuts, lockedKeys: '', versionKey: '' })
  const [unread, ignored]: [Located[], string[]] = [[], []]
  let read = 0
  for await (const given of givenFiles(paths, input)) {
    if ('isIgnored' in given) ignored.push(given.file)
    else if ('fault' in given) unread.push(unreadable(given.file, given.fault))
    else {
      read++
      mesh.add(given.file, given.text)
    }
  }
  const checked = [
    ...unread,
    ...mesh.faults.map((fault) => ofDocument('IST0106', fault, names.domain)),
    ...mesh.warnings.map((warning) => ofDocument('IST0133', warning, names.domain)),
  ]
  const analyzed = isCheck ? [] : analyze(mesh.world())
  const found = analyzed.map((finding) => located(finding, mesh.object(finding.object)?.place ?? '', names.domain))
  return { findings: [...checked, ...found], read, ignored }
}

const unreadable = (file: string, message: string): Located => ({ code: 'IST0106', level: 'error', object: '', path: '', message, file, document: 0 })
