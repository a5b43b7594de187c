/** The definitions of the mesh's kinds in manifests/crds/: a real API server takes them, and with them what the parser takes (docs/operation.md, F16). */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parseAllDocuments } from 'yaml'
import { kinds } from '../../src/config/kinds.ts'
import { parseConfigDocument } from '../../src/config/parse.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import { TestCluster } from '../harness/cluster.ts'
import { establish, meshDefinitions } from '../harness/mesh-definitions.ts'
import { until } from '../harness/until.ts'
import { wholeSpecs } from '../harness/whole-documents.ts'

interface Document {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Record<string, unknown>
  readonly spec: unknown
}

const names = meshNames('mesh.io')
const read = (document: unknown) => parseConfigDocument('test', document, names, { optOuts: new Set() })
/** What the parser makes of a document, and its faults without their texts. */
const specOf = (document: unknown) => read(document).objects[0]?.spec

/** The documents of the goldens that are valid, in the namespace `default` and under names of their own. */
function goldenDocuments(): Document[] {
  const root = fileURLToPath(new URL('../golden/', import.meta.url))
  const all = globSync('*/*/in.yaml', { cwd: root }).flatMap((file) =>
    parseAllDocuments(readFileSync(join(root, file), 'utf8')).map((document) => document.toJS() as Document | null),
  )
  return all.flatMap((document) => (document?.kind && kinds.has(document.kind) ? [document] : []))
}

describe('the definitions of the kinds of the mesh', () => {
  let cluster: TestCluster
  before(async () => {
    cluster = await TestCluster.start()
    establish(cluster, ...meshDefinitions().values())
  })
  after(async () => cluster?.dispose())

  /** What the server would store of documents, in their order. */
  const stored = (documents: readonly Document[]): Document[] => {
    const text = cluster.kubectl(
      ['create', '--dry-run=server', '--validate=ignore', '-o', 'json', '-f', '-'],
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: documents }),
    )
    return text.split(/^(?=\{)/m).map((each) => JSON.parse(each) as Document)
  }
  const document = (kind: string, spec: unknown, index = 0, version?: string): Document => {
    const { group, versions } = kinds.get(kind) as { group: string; versions: readonly string[] }
    return {
      apiVersion: `${group}.mesh.io/${version ?? versions.at(-1)}`,
      kind,
      metadata: { name: `${kind.toLowerCase()}-${index}`, namespace: 'default' },
      spec,
    }
  }

  it('are those of all kinds, in all versions, with a status of their own', () => {
    for (const { name, group, plural, versions } of kinds.values()) {
      const { spec, status } = JSON.parse(cluster.kubectl(['get', 'crd', `${plural}.${group}.mesh.io`, '-o', 'json']))
      expect(spec.versions.map((each: { name: string }) => each.name)).to.deep.equal(versions)
      for (const each of spec.versions) expect([each.served, each.subresources]).to.deep.equal([true, { status: {} }])
      expect(status.conditions.filter((each: { status: string }) => each.status !== 'True').map((each: { type: string }) => each.type)).to.deep.equal(
        [],
      )
      expect(spec.names.kind).to.equal(name)
    }
    expect(cluster.kubectl(['explain', 'virtualservice.spec.http.timeout']).replace(/\s+/g, ' ')).to.contain('A duration, such as 1h, 5s or 100ms.')
    expect(cluster.kubectl(['get', 'dr,ap', '-A'])).to.equal('')
  })

  it('keep all that the parser reads of documents with a value in every field', () => {
    const given = wholeSpecs().map(({ kind, spec }, index) => document(kind, spec, index))
    expect(new Set(given.map(({ kind }) => kind)).size).to.be.greaterThan(8)
    const back = stored(given)
    for (const [index, each] of given.entries()) expect(back[index]?.spec, JSON.stringify(each)).to.deep.equal(each.spec)
  })

  it('keep all that the parser reads of the documents of the goldens', () => {
    const given = goldenDocuments()
      .filter((each) => read(each).faults.length === 0)
      .map((each, index) => ({ ...each, metadata: { ...each.metadata, name: `g-${index}`, namespace: 'default' } }))
    expect(given.length).to.be.greaterThan(100)
    const back = stored(given)
    for (const [index, each] of given.entries()) expect(specOf(back[index]), JSON.stringify(each)).to.deep.equal(specOf(each))
  })

  it('take objects of kinds whose fields are not declared as they are', () => {
    for (const { name, spec } of kinds.values()) {
      if (spec.form.type !== 'map') continue
      const given = { a: { b: [1, 'c', { d: null }] } }
      expect(stored([document(name, given)])[0]?.spec, name).to.deep.equal(given)
    }
  })

  for (const [kind, spec, said] of [
    ['VirtualService', { hosts: 'a' }, 'spec.hosts'],
    ['VirtualService', { hosts: ['a'], http: [{ timeout: 5 }] }, 'spec.http[0].timeout'],
    ['DestinationRule', { trafficPolicy: {} }, 'spec.host: Required value'],
    ['DestinationRule', { host: 'a', trafficPolicy: { loadBalancer: { simple: 'FASTEST' } } }, 'Unsupported value: "FASTEST"'],
    ['Gateway', { servers: [{ port: { number: 70_000, name: 'a', protocol: 'HTTP' }, hosts: ['a'] }] }, 'spec.servers[0].port.number'],
    ['ServiceEntry', { hosts: ['a b'] }, 'spec.hosts[0]'],
    ['AuthorizationPolicy', { rules: [{ from: [{ source: { principals: 'a' } }] }] }, 'spec.rules[0].from[0].source.principals'],
    ['PeerAuthentication', { mtls: { mode: 'STRIKT' } }, 'Unsupported value: "STRIKT"'],
    ['RequestAuthentication', { jwtRules: [{ issuer: 5 }] }, 'spec.jwtRules[0].issuer'],
    ['EnvoyFilter', { configPatches: [{ applyTo: 'CLUSTER' }] }, 'spec.configPatches[0].patch: Required value'],
    ['WorkloadEntry', { address: '10.0.0.1', weight: -1 }, 'spec.weight'],
    ['Telemetry', [], 'spec'],
  ] as const)
    it(`refuse a ${kind} with ${JSON.stringify(spec)}`, () => {
      expect(() => stored([document(kind, spec)])).to.throw(said)
    })

  it('leave out unknown fields where the parser does, and keep those of policies, which the parser refuses', () => {
    const [rule] = stored([document('DestinationRule', { host: 'a', hots: 'b' })])
    expect(rule?.spec).to.deep.equal({ host: 'a' })
    const spec = { rules: [{ form: [] }], selector: { matchLabels: { a: 'b' }, labels: {} } }
    const [policy] = stored([{ ...document('AuthorizationPolicy', spec), mtls: {} } as Document])
    expect(policy).to.deep.include({ spec, mtls: {} })
    expect(read(policy).faults.map(({ path }) => path)).to.have.members(['mtls', 'spec.rules[0].form', 'spec.selector.labels'])
  })

  it('change nothing when a status is written, and no status when a spec is', async () => {
    cluster.apply(JSON.stringify(document('WorkloadEntry', { address: '10.0.0.1' })))
    const at = ['workloadentry', 'workloadentry-0', '-n', 'default']
    cluster.kubectl([
      'patch',
      ...at,
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"conditions":[{"type":"Healthy","status":"True"}]},"spec":{"weight":9}}',
    ])
    await until('the status', () => {
      const { metadata, spec, status } = JSON.parse(cluster.kubectl(['get', ...at, '-o', 'json']))
      expect([metadata.generation, spec]).to.deep.equal([1, { address: '10.0.0.1' }])
      return status.conditions[0].type === 'Healthy'
    })
    cluster.kubectl(['delete', ...at])
  })
})
