/** Analyzes the configuration in files, without a server. */
import type { Readable } from 'node:stream'
import { Analysis } from '../../../src/analysis/analysis.ts'
import type { Finding } from '../../../src/analysis/finding.ts'
import type { MeshFacts } from '../../../src/analysis/mesh-facts.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { type Located, located, ofDocument } from '../../../src/analysis/report.ts'
import type { AnalyzeOrder } from '../../../src/cli/analyze-order.ts'
import { readFeatures } from '../../../src/config/features.ts'
import { readOptOuts } from '../../../src/config/opt-outs.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { messageTypes } from '../../../src/xds/envoy-filter/message-types.ts'
import { givenFiles } from './configuration-files.ts'

/** What was found in files. */
export interface FileAnalysis {
  readonly findings: readonly Located[]
  /** The number of files that were read, and those that were not since their names are not those of configuration. */
  readonly read: number
  readonly ignored: readonly string[]
}

/** Reads all files, checks each object as the server does, and analyzes them together. Rejects with an Error for a path that is not there. */
export async function analyzeFiles({ paths, isCheck, domain }: AnalyzeOrder, input: Readable, environment: NodeJS.ProcessEnv): Promise<FileAnalysis> {
  const { features } = readFeatures(environment)
  const names = meshNames(features.MESH_DOMAIN)
  const optOuts = readOptOuts(features.MESH_POLICY_OPT_OUTS)
  const mesh = new OfflineMesh({ features, names, domain, plugins: [], optOuts, lockedKeys: '', versionKey: '' }, hasEnvoyType)
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
    ...ignored.filter((file) => /\.(ya?ml|json)[^/]*$/i.test(file)).map(notRead),
    ...mesh.faults.map((fault) => ofDocument('IST0106', fault, names.domain)),
    ...mesh.warnings.map((warning) => ofDocument('IST0133', warning, names.domain)),
  ]
  const analyzed = isCheck ? [] : findingsOf(mesh.facts())
  const found = analyzed.map((finding) => located(finding, mesh.placeOf(finding.object), names.domain))
  return { findings: [...checked, ...found], read, ignored }
}

const unreadable = (file: string, message: string): Located => ({ code: 'IST0106', level: 'error', object: '', path: '', message, file, document: 0 })

/** A file that looks as if it should be read. Others, such as a README, are counted. */
const notRead = (file: string): Located => {
  const message = 'not read, since its name does not end in .yaml, .yml or .json: rename it, or move it elsewhere'
  return { code: 'MESH0001', level: 'warning', object: '', path: '', message, file, document: 0 }
}

const hasEnvoyType = (name: string): boolean => messageTypes.getMessage(name) !== undefined

function findingsOf(facts: MeshFacts): Finding[] {
  const analysis = new Analysis(facts)
  analysis.refresh()
  return analysis.all()
}
