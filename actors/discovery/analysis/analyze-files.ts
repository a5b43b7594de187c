/** Analyzes the configuration in files, without a server. */
import { basename } from 'node:path'
import type { Readable } from 'node:stream'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { analyzeSubject } from '../../../src/analysis/analyze.ts'
import type { Finding } from '../../../src/analysis/finding.ts'
import type { MeshFacts } from '../../../src/analysis/mesh-facts.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { FilePositions } from '../../../src/analysis/positions.ts'
import { type Located, located, ofDocument, type PositionOf } from '../../../src/analysis/report.ts'
import { analyzeSingleSubject } from '../../../src/analysis/single-objects.ts'
import type { AnalyzeOrder, ClusterOrder } from '../../../src/cli/analyze-order.ts'
import { readFeatures } from '../../../src/config/features.ts'
import { assumedNamespace } from '../../../src/config/metadata.ts'
import { readOptOuts } from '../../../src/config/opt-outs.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { patchFaults } from '../../../src/xds/envoy-filter/patch-check.ts'
import { isConfigFile } from '../sources/files/directory-listing.ts'
import { givenFiles, settingsText, standardInput } from './configuration-files.ts'

/** What was found in files. */
export interface FileAnalysis {
  readonly findings: readonly Located[]
  /** The number of files that were read, and those that were not since their names are not those of configuration. */
  readonly read: number
  readonly ignored: readonly string[]
  /** The number of objects of a cluster; undefined: none was to be read. */
  readonly ofCluster: number | undefined
}

/**
 * Reads all files and the cluster, checks each object as the server does, and analyzes them together. Rejects with an Error for a path that is not
 * there, and for a cluster that cannot be reached.
 */
export async function analyzeFiles(
  { paths, isCheck, domain, namespace: asked, cluster, ...settings }: AnalyzeOrder,
  input: Readable,
  environment: NodeJS.ProcessEnv,
): Promise<FileAnalysis> {
  const { features } = readFeatures(environment)
  const names = meshNames(features.MESH_DOMAIN)
  const optOuts = readOptOuts(features.MESH_POLICY_OPT_OUTS)
  const ofContext = async (order: ClusterOrder) => (await import('./cluster-objects.ts')).namespaceOf(order, features, environment)
  const named = asked || (cluster && (await ofContext(cluster))) || undefined
  // What is checked by itself is read as a server reads it, for which a policy without a namespace is none.
  const namespace = isCheck ? undefined : (named ?? assumedNamespace)
  const mesh = new OfflineMesh({ features, names, domain, plugins: [], optOuts, lockedKeys: '', versionKey: '' }, patchFaults, {
    namespace,
    isGuessed: isCheck || (!named && !cluster),
  })
  const [unread, ignored]: [Located[], string[]] = [[], []]
  const texts = new Map<string, string>()
  for (const [setting, flag] of [
    ['mesh', 'meshConfig'],
    ['networks', 'networksConfig'],
  ] as const) {
    const file = settings[flag]
    if (!file) continue
    const text = await settingsText(flag, file)
    texts.set(file, text)
    mesh.addSetting(setting, file, text)
  }
  for await (const given of givenFiles(paths, input)) {
    if ('isIgnored' in given) ignored.push(given.file)
    else if ('fault' in given) unread.push(unreadable(given.file, given.fault))
    else {
      texts.set(given.file, given.text)
      mesh.add(given.file, given.text, given.file === standardInput || isConfigFile(basename(given.file)))
    }
  }
  const inCluster = cluster && (await (await import('./cluster-objects.ts')).addCluster(cluster, mesh, features, environment))
  const positionOf = positionsIn(texts, names.domain, namespace)
  const checked = [
    ...unread,
    ...(inCluster?.unread ?? []),
    ...ignored.filter((file) => /\.(ya?ml|json)[^/]*$/i.test(file)).map(notRead),
    ...mesh.faults.map((fault) => ofDocument('IST0106', fault, names.domain, positionOf)),
    ...mesh.warnings.map((warning) => ofDocument('IST0133', warning, names.domain, positionOf)),
  ]
  const analyzed = findingsOf(mesh.facts(), isCheck)
  const found = analyzed.map((finding) => {
    const held = mesh.holderOf(finding.object, finding.path)
    return located(finding, mesh.placeOf(finding.object), names.domain, (file, document) => positionOf(file, document, held.key, held.path))
  })
  const isWanted = ({ file, namespace }: Located) => !cluster?.namespace || file !== '' || namespace === undefined || namespace === cluster.namespace
  return { findings: [...checked, ...found].filter(isWanted), read: texts.size, ignored, ofCluster: inCluster?.objects }
}

/** Finds positions in texts. A file is looked at when something is found in it. */
function positionsIn(texts: ReadonlyMap<string, string>, domain: string, namespace: string | undefined): PositionOf {
  const known = new Map<string, FilePositions>()
  return (file, document, key, path) => {
    const text = texts.get(file)
    if (text === undefined) return undefined
    const positions = known.get(file) ?? new FilePositions(text, domain, namespace)
    known.set(file, positions)
    return positions.of(document, key, path)
  }
}

const unreadable = (file: string, message: string): Located => ({ code: 'IST0106', level: 'error', object: '', path: '', message, file, document: 0 })

/** A file that looks as if it should be read. Others, such as a README, are counted. */
const notRead = (file: string): Located => {
  const message = 'not read, since its name does not end in .yaml, .yml or .json: rename it, or move it elsewhere'
  return { code: 'MESH0001', level: 'warning', object: '', path: '', message, file, document: 0 }
}

function findingsOf(facts: MeshFacts, isCheck: boolean): Finding[] {
  const analysis = new Analysis(facts, isCheck ? analyzeSingleSubject : analyzeSubject)
  analysis.refresh()
  return analysis.all()
}
