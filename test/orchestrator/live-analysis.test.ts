/**
 * What a running service finds in a real cluster is what `pilot-discovery analyze` finds in files with the same objects (docs/analysis.md, Y4): a
 * mistake for each code, Secrets of gateways, and objects that cannot be used.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { parse, stringify } from 'yaml'
import { freePort } from '../../bench/ports.ts'
import type { FoundNow } from '../../protocols/messages/analysis.ts'
import { codes } from '../../src/analysis/finding.ts'
import { clusterType, secretType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { discoveryScript } from '../harness/commands.ts'
import { examples, mesh, service, workload } from '../harness/faulty-objects.ts'
import { pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { establish, meshDefinitions } from '../harness/mesh-definitions.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { XdsClient } from '../harness/xds-client.ts'

interface Document {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec?: { readonly template?: { readonly metadata: object; readonly spec: object } }
}

/** The codes that are not looked for here, and of what they are (docs/analysis.md, Y4). */
const ofFilesOnly = {
  IST0001: 'nothing of these objects is beyond analysis',
  IST0116: 'of templates of pods, which are not followed',
  IST0117: 'of templates of pods, which are not followed',
  MESH0001: 'of files',
  MESH0005: 'of the command',
}

const https = (tls: string) => `{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: ${tls}}`
const rule = (name: string, spec: string) => mesh('DestinationRule', `more/${name}`, spec)
const routed = (http: string) => `{hosts: [a.more], http: [${http}]}`
const toWeb = 'route: [{destination: {host: web}}]'
const sidecar = (name: string, selector = '') => mesh('Sidecar', `more/${name}`, `{${selector}egress: [{hosts: ["./*"]}]}`)
const selecting = (kind: string, name: string, spec: string) => mesh(kind, `more/${name}`, spec, '', 'security')

/** The mistakes of codes that have no example of their own. */
const more = [
  // Not the port that a route names none of.
  service('more/web', '{name: http, port: 80}'),
  service('more/two', '{name: http, port: 80}, {name: http-2, port: 81}', '{app: two}'),
  workload('Pod', 'more/web', 'labels: {app: web}'),
  ...['one', 'two'].map((name) => mesh('VirtualService', `more/${name}`, `{hosts: [web], http: [{${toWeb}}]}`)),
  mesh('VirtualService', 'more/port', '{hosts: [b.more], http: [{route: [{destination: {host: two}}]}]}'),
  mesh('VirtualService', 'more/order', routed(`{${toWeb}}, {match: [{uri: {prefix: /a}}, {uri: {prefix: /a/b}}], ${toWeb}}`)),
  mesh(
    'VirtualService',
    'more/match',
    `{hosts: [c.more], http: [{match: [{uri: {prefix: /a}}], ${toWeb}}, {match: [{uri: {prefix: /a/b}}, {uri: {prefix: /c}}], ${toWeb}}]}`,
  ),
  mesh('VirtualService', 'more/outside', `{hosts: [d.more], gateways: [plain], http: [{${toWeb}}]}`),
  mesh(
    'VirtualService',
    'more/weights',
    `{hosts: [e.more], http: [{route: [{destination: {host: web}, weight: 1}, {destination: {host: two, port: {number: 80}}, weight: 3}]}]}`,
  ),
  mesh('Gateway', 'more/plain', '{selector: {app: web}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [x.more]}]}'),
  mesh('Gateway', 'more/clash', '{selector: {app: web}, servers: [{port: {number: 80, name: tcp, protocol: TCP}, hosts: ["*"]}]}'),
  sidecar('all'),
  sidecar('rest'),
  ...['a', 'b'].map((name) => sidecar(name, 'workloadSelector: {labels: {app: web}}, ')),
  sidecar('none', 'workloadSelector: {labels: {app: nobody}}, '),
  ...['first', 'second'].map((name) => selecting('PeerAuthentication', name, '{selector: {matchLabels: {app: web}}, mtls: {mode: STRICT}}')),
  rule('unverified', '{host: f.more, trafficPolicy: {tls: {mode: SIMPLE}}}'),
  rule('port', '{host: g.more, trafficPolicy: {portLevelSettings: [{port: {number: 443}, tls: {mode: SIMPLE}}]}}'),
  ...['f', 'g'].map((name) =>
    mesh('ServiceEntry', `more/${name}`, `{hosts: [${name}.more], ports: [{number: 443, name: https, protocol: HTTPS}], resolution: DNS}`),
  ),
  mesh('ServiceEntry', 'more/tcp', '{hosts: [h.more], ports: [{number: 5432, name: tcp, protocol: TCP}], resolution: DNS}'),
  mesh('Gateway', 'more/invalid', `{selector: {app: web}, servers: [{port: {number: 444, name: https, protocol: HTTPS}, hosts: ["y.more"]}]}`),
]

/** What files and objects have of the mistakes: one namespace for each, and pods in the place of templates. */
function documentsOf(): Document[] {
  const texts = Object.values(examples).flatMap((of) => of.map(({ wrong }) => wrong))
  const parted = texts.flatMap((wrong, index) => wrong.map((text): Document => parse(text.replaceAll(/\bshop\b/g, `shop-${index}`))))
  const all = [...parted, ...more.map((text): Document => parse(text))].map((document) =>
    document.spec?.template && document.kind !== 'WorkloadGroup' ? podOf(document, document.spec.template) : document,
  )
  const given = new Set(all.flatMap(({ kind, metadata }) => (kind === 'Namespace' ? [metadata.name] : [])))
  const used = new Set(all.flatMap(({ metadata }) => metadata.namespace ?? []))
  const others = [...used].filter((name) => !given.has(name)).map((name): Document => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }))
  // Some examples have the same ConfigMap with different keys.
  const merged = new Map<string, Document>()
  for (const document of [...others, ...all]) {
    const key = `${document.kind}/${document.metadata.namespace}/${document.metadata.name}`
    const before = merged.get(key) as (Document & { data?: object }) | undefined
    merged.set(
      key,
      document.kind === 'ConfigMap'
        ? ({
            ...document,
            data: {
              ...(document.metadata.name === 'mesh' ? {} : { config: 'policy: enabled' }),
              ...before?.data,
              ...(document as { data?: object }).data,
            },
          } as Document)
        : document,
    )
  }
  return [...merged.values()].sort((one, other) => Number(other.kind === 'Namespace') - Number(one.kind === 'Namespace'))
}

const podOf = ({ metadata }: Document, { metadata: own, spec }: { readonly metadata: object; readonly spec: object }): Document =>
  ({ apiVersion: 'v1', kind: 'Pod', metadata: { ...own, ...metadata }, spec }) as Document

/** Pods that nobody runs. */
const applied = (document: Document): Document =>
  document.kind === 'Pod' ? ({ ...document, spec: { ...document.spec, schedulerName: 'nobody' } } as Document) : document

describe('the analysis of a running service of a real cluster', function () {
  this.timeout(240_000)
  let cluster: TestCluster
  let running: Service
  let port = 0
  let certificates: ServingCertificates
  const clients: XdsClient[] = []
  const documents = documentsOf()
  const namespaces = new Set(documents.flatMap(({ kind, metadata }) => (kind === 'Namespace' ? [metadata.name] : [])))

  const page = () => running.debug<FoundNow>('analysisz')
  /** What is found in the namespaces of the test, when everything has been looked at. */
  const found = async (only?: string): Promise<string[]> => {
    const { findings, due, isComplete } = await page()
    if (due > 0 || !isComplete) return []
    return findings
      .filter(({ kind, namespace, object }) =>
        only === undefined ? namespaces.has(kind === 'Namespace' ? object : namespace) || kind === 'MeshNetworks' : namespace === only,
      )
      .map(({ code, kind, namespace, object, path }) => `${code} ${kind} ${namespace === '' ? '' : `${namespace}/`}${object} ${path}`)
      .sort()
  }
  const ofFiles = (): string[] => {
    const folder = join(cluster.dir, 'faulty')
    mkdirSync(folder)
    writeFileSync(join(folder, 'all.yaml'), documents.map((document) => stringify(document)).join('---\n'))
    const { stdout, stderr } = spawnSync(process.execPath, [discoveryScript, 'analyze', '--json', folder], { encoding: 'utf8' })
    if (stdout === '') throw new Error(stderr)
    return (JSON.parse(stdout) as { code: string; object: string; path: string }[])
      .map(({ code, object, path }) => `${code} ${object === 'mesh networks' ? 'MeshNetworks ' : object} ${path}`)
      .sort()
  }
  const gateway = async (namespace: string, ...names: readonly string[]): Promise<void> => {
    const text = (name: string) => Buffer.from(certificates.text(name))
    const tls = credentials.createSsl(text('ca.pem'), text('gateway-key.pem'), text('gateway.pem'), { checkServerIdentity: () => undefined })
    const node = { id: `router~10.7.0.9~gateway.${namespace}~${namespace}.svc.cluster.local`, metadata: { NAMESPACE: namespace } }
    const client = new XdsClient(port, node, true, tls).connect()
    clients.push(client)
    await until('the first configuration', () => client.responses.has(clusterType))
    client.watch(
      secretType,
      names.map((name) => `kubernetes://${name}`),
    )
  }

  before(async () => {
    cluster = await TestCluster.start()
    establish(cluster, ...meshDefinitions().values())
    const isFirst = ({ kind }: Document) => kind === 'Namespace'
    const apply = (some: readonly Document[]) => cluster.apply(...some.map((document) => stringify(applied(document))))
    cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: edge}')
    apply(documents.filter(isFirst))
    await until('the accounts of pods', () => {
      const text = cluster.kubectl(['get', 'serviceaccounts', '--all-namespaces', '-o', 'jsonpath={range .items[*]}{.metadata.namespace} {end}'])
      return [...namespaces].every((name) => text.split(' ').includes(name))
    })
    apply(documents.filter((document) => !isFirst(document)))
    const keysOf = new Service()
    certificates = new ServingCertificates(keysOf.dir)
    certificates.authority('ca')
    certificates.issue('server', 'ca')
    certificates.workload('gateway', 'ca', ['spiffe://cluster.local/ns/edge/sa/gateway'])
    port = await freePort()
    const flags = ['--registries', 'Orchestrator', '--orchconfig', cluster.adminConfig, '--configDir', '', '--networksConfig', '', '--writers', '1']
    running = new Service({
      env: { PILOT_ENABLE_ANALYSIS: 'true' },
      flags: [...flags, '--secureGRPCAddr', `127.0.0.1:${port}`, ...certificates.servingFlags()],
    })
    await running.start()
  })
  after(async () => {
    for (const client of clients) client.close()
    await running?.dispose()
    await cluster?.dispose()
  })

  it('finds what the command finds in files with the same objects, every code among it', async () => {
    const expected = ofFiles()
    let last: string[] = []
    await until('the same findings', async () => {
      last = await found()
      return last.join('\n') === expected.join('\n')
    }).catch(() => expect(last).to.deep.equal(expected))
    const told = new Set(last.map((line) => line.split(' ')[0]))
    expect(Object.keys(codes).filter((code) => !told.has(code))).to.deep.equal(Object.keys(ofFilesOnly))
  })

  it('finds a Secret that a gateway needs and that is not there or lacks a key, where Secrets are read', async () => {
    const made = new SiteCertificates()
    const authority = made.authority('root')
    const site = made.issue('site.example', authority)
    made.dispose()
    const at = 'Gateway edge/g spec.servers[0].tls.credentialName'
    const messages = async () =>
      (await page()).findings.filter(({ namespace }) => namespace === 'edge').map(({ code, message }) => `${code} ${message}`)
    const says = (text: string) => until(text, async () => (await messages()).some((line) => line.includes(text)))
    const apply = (values: Record<string, string>, type?: string) => {
      cluster.kubectl(['delete', 'secret', '-n', 'edge', 'site', '--ignore-not-found'])
      cluster.apply(secretDocument('edge/site', values, type, null))
    }
    cluster.apply(mesh('Gateway', 'edge/g', `{servers: [${https('{mode: MUTUAL, credentialName: site}')}]}`))
    cluster.apply(mesh('Sidecar', 'edge/s', '{egress: [{hosts: ["gone/*"]}]}'))
    // Nothing is known of Secrets before a gateway wants one.
    await until('what stands beside it', async () => (await found('edge')).join() === 'IST0101 Sidecar edge/s spec.egress[0].hosts[0]')
    await gateway('edge', 'site', 'site-cacert')
    await until('the Secret to be missing', async () => (await found('edge')).includes(`IST0101 ${at}`))
    await says('there is no Secret site in the namespace edge')
    apply({ 'ca.crt': authority.chain }, 'Opaque')
    await says('the Secret site in the namespace edge has no certificate with its key')
    apply(pairValues(site))
    await says('neither the Secret site-cacert nor site in the namespace edge has authorities')
    apply(pairValues(site, authority))
    await until('nothing to say of it', async () => !(await found('edge')).includes(`IST0101 ${at}`))
  })

  it('has what cannot be used in its status, tells it once, and no longer when it is mended', async () => {
    const object = () => JSON.parse(cluster.kubectl(['get', 'gateways.networking.mesh.io', '-n', 'more', 'invalid', '-o', 'json']))
    const codesOf = () => (object().status?.validationMessages ?? []).map((each: { type: { code: string } }) => each.type.code)
    await until('the status', () => codesOf().includes('IST0106'))
    const [said] = object().status.validationMessages
    expect([said.message, said.documentation_url]).to.deep.equal(['spec.servers[0].tls: required for protocol HTTPS', 'docs/analysis.md#codes'])
    const told = 'Gateway/more/invalid, field'
    await running.output.says(told)
    // Whoever writes a status has the object read again.
    cluster.kubectl([
      'patch',
      'gateways.networking.mesh.io',
      '-n',
      'more',
      'invalid',
      '--subresource',
      'status',
      '--type',
      'merge',
      '-p',
      '{"status": {"conditions": [{"type": "Mine", "status": "True"}]}}',
    ])
    cluster.apply(mesh('Gateway', 'more/after', '{servers: [{port: {number: 445, name: https, protocol: HTTPS}, hosts: ["z.more"]}]}'))
    await running.output.says('Gateway/more/after, field')
    await running.output.says(told, 1, 1)
    cluster.apply(
      mesh('Gateway', 'more/invalid', '{selector: {app: web}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [y.more]}]}'),
    )
    await until('the fault to be gone', async () => !(await found()).some((line) => line.startsWith('IST0106 Gateway more/invalid')))
    await until('the status without it', () => !codesOf().includes('IST0106'))
  })
})
