/**
 * Measures the analysis of configuration, in this process: that of files beside reading and parsing the same files, and that of one change in a mesh
 * that was analyzed before.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { analyzeFiles } from '../../actors/discovery/analysis/analyze-files.ts'
import type { ConfigObject } from '../../protocols/data.ts'
import { Analysis } from '../../src/analysis/analysis.ts'
import type { MeshFacts } from '../../src/analysis/mesh-facts.ts'
import { OfflineMesh } from '../../src/analysis/offline-mesh.ts'
import { readFeatures } from '../../src/config/features.ts'
import { fileText } from '../../src/config/file-text.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import { analysisGoals } from '../goals.ts'
import { type Measure, progress } from '../report.ts'

/** The numbers of objects of each kind of the mesh for 1,000 services. */
const counts = { routes: 120, rules: 120, policies: 60, perFile: 50 }
const domain = 'cluster.local'

const document = (apiVersion: string, kind: string, namespace: string, name: string, rest: string): string =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata:\n  name: ${name}\n  namespace: ${namespace}\n${rest}`

const namespaceOf = (index: number): string => `team-${index % 20}`

/** The documents of a mesh with so many services, and 0.3 times as many objects. */
function documentsOf(services: number): string[] {
  const of = (count: number, made: (index: number) => string) =>
    Array.from({ length: Math.round((count * services) / 1000) }, (_, index) => made(index))
  const service = (index: number) =>
    document('v1', 'Service', namespaceOf(index), `s${index}`, `spec:\n  selector:\n    app: s${index}\n  ports:\n  - name: http\n    port: 80\n`)
  const route = (index: number) =>
    document(
      'networking.mesh.io/v1',
      'VirtualService',
      namespaceOf(index),
      `s${index}`,
      `spec:\n  hosts:\n  - s${index}\n  http:\n  - match:\n    - uri:\n        prefix: /a\n    retries:\n      attempts: 3\n    route:\n    - destination:\n        host: s${index}\n        subset: v1\n      weight: 90\n    - destination:\n        host: s${index}\n        subset: v2\n      weight: 10\n  - route:\n    - destination:\n        host: s${index}\n`,
    )
  const rule = (index: number) =>
    document(
      'networking.mesh.io/v1',
      'DestinationRule',
      namespaceOf(index),
      `s${index}`,
      `spec:\n  host: s${index}\n  trafficPolicy:\n    connectionPool:\n      tcp:\n        maxConnections: 100\n  subsets:\n  - name: v1\n    labels:\n      version: v1\n  - name: v2\n    labels:\n      version: v2\n`,
    )
  const policy = (index: number) =>
    document(
      'security.mesh.io/v1',
      'AuthorizationPolicy',
      namespaceOf(index),
      `s${index}`,
      `spec:\n  selector:\n    matchLabels:\n      app: s${index}\n  rules:\n  - from:\n    - source:\n        namespaces:\n        - team-1\n    to:\n    - operation:\n        methods:\n        - GET\n        paths:\n        - /a\n`,
    )
  return [...of(1000, service), ...of(counts.routes, route), ...of(counts.rules, rule), ...of(counts.policies, policy)]
}

/** CPU of this process meanwhile, in seconds. */
async function cpuOf(act: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await act()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1e6
}

const median = (values: readonly number[]): number => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0

/** Measures in alternation, `rounds` times each after one round that does not count. */
export async function analysis(services: number, rounds: number): Promise<Measure[]> {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-bench-analysis-'))
  try {
    const documents = documentsOf(services)
    for (let at = 0; at < documents.length; at += counts.perFile)
      writeFileSync(join(dir, `${String(at).padStart(6, '0')}.yaml`), documents.slice(at, at + counts.perFile).join('---\n'))
    return [await ofFiles(dir, rounds), ofChanges(dir, services, Math.max(rounds, 5) * 20)]
  } finally {
    rmSync(dir, { recursive: true })
  }
}

const textsOf = (dir: string): [file: string, text: string][] =>
  readdirSync(dir).map((name) => [join(dir, name), fileText(readFileSync(join(dir, name)))])

async function ofFiles(dir: string, rounds: number): Promise<Measure> {
  const names = meshNames('mesh.io')
  const order = { paths: [dir], isCheck: false, form: 'text', failOn: 'error', domain } as const
  let found = 0
  const analyze = async () => (found = (await analyzeFiles(order, process.stdin, {})).findings.length)
  const parse = () => {
    for (const [file, text] of textsOf(dir)) parseConfigFile(file, text, names)
  }
  const cpu: { analyzed: number[]; parsed: number[] } = { analyzed: [], parsed: [] }
  for (let round = 0; round <= rounds; round++) {
    const [parsed, analyzed] = [await cpuOf(parse), await cpuOf(analyze)]
    if (round === 0) continue
    cpu.analyzed.push(analyzed)
    cpu.parsed.push(parsed)
  }
  const [analyzed, parsed] = [median(cpu.analyzed), median(cpu.parsed)]
  const notes = `${found} findings; reading and parsing alone ${parsed.toFixed(3)} CPU s`
  progress(`analysis of files: ${analyzed.toFixed(3)} CPU s, ${notes}`)
  const goals = analysisGoals(analyzed / parsed, undefined)
  return { scenario: 'analysis of files', variant: '', cpu: analyzed, mib: 0, rss: 0, threads: {}, notes, goals }
}

/** Changes of routes, rules and policies in turn, and of the services that they name. */
function ofChanges(dir: string, services: number, changes: number): Measure {
  const { facts, looked } = analyzedMesh(dir)
  const kinds = ['VirtualService', 'DestinationRule', 'AuthorizationPolicy'] as const
  const times: number[] = []
  for (let change = 0; change < changes; change++) {
    const kind = kinds[change % kinds.length] as (typeof kinds)[number]
    const index = change % Math.max(1, Math.round((counts.policies * services) / 1000))
    const key = `${kind}/${namespaceOf(index)}/s${index}`
    const object = facts.subject(key) as ConfigObject
    const before = process.cpuUsage()
    facts.setObject(key, { ...object })
    looked.refresh()
    const { user, system } = process.cpuUsage(before)
    times.push((user + system) / 1000)
  }
  const [p50, last] = [median(times), Math.max(...times)]
  const notes = `${changes} changes: ${p50.toFixed(2)} ms of CPU in the median, ${last.toFixed(2)} ms at most`
  progress(`analysis of one change: ${notes}`)
  return {
    scenario: 'analysis of a change',
    variant: '',
    p50,
    last,
    cpu: p50 / 1000,
    mib: 0,
    rss: 0,
    threads: {},
    notes,
    goals: analysisGoals(undefined, last),
  }
}

function analyzedMesh(dir: string): { facts: MeshFacts; looked: Analysis } {
  const { features } = readFeatures({})
  const mesh = new OfflineMesh({ features, names: meshNames('mesh.io'), domain, plugins: [], optOuts: new Set(), lockedKeys: '', versionKey: '' })
  for (const [file, text] of textsOf(dir)) mesh.add(file, text)
  const facts = mesh.facts()
  const looked = new Analysis(facts)
  looked.refresh()
  return { facts, looked }
}
