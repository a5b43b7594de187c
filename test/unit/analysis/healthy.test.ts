/** Meshes made at random of all kinds and their features: right ones have no finding, and each planted mistake has its own and no other. */
import { expect } from 'chai'
import fc from 'fast-check'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { kinds } from '../../../src/config/kinds.ts'
import { pairValues, SiteCertificates, secretDocument } from '../../harness/gateway-secrets.ts'
import { runs, seed } from '../../harness/seed.ts'
import { testSettings } from '../../harness/settings.ts'

type Document = Readonly<Record<string, unknown>>

const flag = fc.boolean()
/** The features of a mesh. Each product of them is legal. */
const features = fc.record({
  namespaces: fc.constantFrom(['shop'], ['shop', 'bank']),
  secondPort: flag,
  subsets: flag,
  rulePort: flag,
  mutual: fc.constantFrom(undefined, 'MESH_MUTUAL'),
  strict: fc.constantFrom(undefined, 'STRICT', 'PERMISSIVE'),
  ownPeer: flag,
  matches: fc.constantFrom('none', 'prefix', 'exact', 'headers'),
  mirror: flag,
  delegate: flag,
  retries: flag,
  gateway: fc.constantFrom('none', 'HTTP', 'HTTPS', 'both'),
  sidecar: fc.constantFrom('none', 'namespace', 'workload', 'both'),
  policy: fc.constantFrom(undefined, 'ALLOW', 'DENY', 'AUDIT'),
  tokens: flag,
  entry: fc.constantFrom('none', 'DNS', 'STATIC', 'workloads'),
  exported: fc.constantFrom(undefined, ['.'], ['*'], ['shop']),
  ingress: flag,
  filter: flag,
  /** What containers declare of the ports that the Service leads to, and whether it does so by their names. */
  declares: fc.constantFrom('none', 'first', 'all', 'names'),
  callers: fc.constantFrom('namespaces', 'accounts', 'principals'),
  portMode: flag,
  /** Routes of other kinds than HTTP, in the mesh and at gateways, and how a DestinationRule adds TLS at a gateway. */
  tcp: flag,
  tls: fc.constantFrom('none', 'routes', 'origination'),
  passthrough: flag,
  gatewayTcp: flag,
  credentials: fc.constantFrom('none', 'SIMPLE', 'MUTUAL'),
  policyPort: fc.constantFrom('none', 'ports', 'notPorts', 'when'),
})
type Features = typeof features extends fc.Arbitrary<infer Value> ? Value : never

const object = (kind: string, namespace: string, name: string, spec: object): Document => ({
  apiVersion: `${kinds.get(kind)?.group}.mesh.io/${kinds.get(kind)?.versions.at(-1)}`,
  kind,
  metadata: { name, namespace },
  spec,
})
/** The values of the Secret of a site, with authorities. */
const siteValues = ((): Record<string, string> => {
  const made = new SiteCertificates()
  try {
    const root = made.authority('root')
    return pairValues(made.issue('shop.example', root), root)
  } finally {
    made.dispose()
  }
})()
const named = (kind: string, apiVersion: string, namespace: string, name: string, rest: object): Document => ({
  ...{ apiVersion, kind, metadata: { name, namespace } },
  ...rest,
})
const deployment = (namespace: string, name: string, labels: Record<string, string>, ports: readonly object[] = [{ containerPort: 8080 }]) =>
  named('Deployment', 'apps/v1', namespace, name, {
    spec: { template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'app', ports }] } } },
  })
const service = (namespace: string, name: string, ports: readonly object[], selector: object = { app: name }) =>
  named('Service', 'v1', namespace, name, { spec: { selector, ports } })

/** The services and routes of a namespace. */
function routesOf(namespace: string, f: Features): Document[] {
  const [first, second] = f.declares === 'names' ? ['app', 'admin'] : [8080, 8081]
  const ports = [{ name: 'http', port: 80, targetPort: first }, ...(f.secondPort ? [{ name: 'grpc-admin', port: 81, targetPort: second }] : [])]
  const declared = {
    none: [],
    first: [{ containerPort: 8080 }],
    all: [{ containerPort: 8080 }, ...(f.secondPort ? [{ containerPort: 8081 }] : [])],
    names: [
      { containerPort: 8080, name: 'app' },
      { containerPort: 8081, name: 'admin' },
    ],
  }[f.declares]
  const port = f.secondPort || f.rulePort ? { port: { number: 80 } } : {}
  const to = (subset?: string) => ({ host: 'web', ...port, ...(subset ? { subset } : {}) })
  const split = f.subsets
    ? [
        { destination: to('v1'), weight: 30 },
        { destination: to('v2'), weight: 70 },
      ]
    : [{ destination: to() }]
  const match = { none: [], prefix: [{ uri: { prefix: '/a' } }], exact: [{ uri: { exact: '/a' } }], headers: [{ headers: { x: { exact: 'z' } } }] }
  const rest = { ...(f.mirror ? { mirror: to() } : {}), ...(f.retries ? { retries: { attempts: 2 }, timeout: '5s' } : {}) }
  const matched = match[f.matches].length > 0 ? [{ match: match[f.matches], route: split }] : []
  const delegated = f.delegate ? [{ match: [{ uri: { prefix: '/d' } }], delegate: { name: 'part' } }] : []
  const exportTo = f.exported ? { exportTo: f.exported } : {}
  const subsets = ['v1', 'v2'].map((name) => ({ name, labels: { version: name } }))
  const policy = f.mutual ? { trafficPolicy: { tls: { mode: f.mutual } } } : {}
  return [
    service(namespace, 'web', ports),
    ...['v1', 'v2'].map((version) => deployment(namespace, `web-${version}`, { app: 'web', version }, declared)),
    object('VirtualService', namespace, 'web', { hosts: ['web'], http: [...matched, ...delegated, { route: split, ...rest }], ...exportTo }),
    ...(f.delegate ? [object('VirtualService', namespace, 'part', { http: [{ route: [{ destination: to() }] }] })] : []),
    object('DestinationRule', namespace, 'web', { host: 'web', ...(f.subsets ? { subsets } : {}), ...policy, ...exportTo }),
    ...(f.ingress
      ? [
          named('Ingress', 'networking.k8s.io/v1', namespace, 'in', {
            spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } } },
          }),
        ]
      : []),
  ]
}

/** The gateway of a namespace. */
function gatewayOf(namespace: string, f: Features): Document[] {
  if (f.gateway === 'none') return []
  const host = `${namespace}.example`
  const plain = { port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: [host] }
  const secured = { port: { number: 443, name: 'https', protocol: 'HTTPS' }, hosts: [host], tls: { mode: 'SIMPLE', credentialName: 'cert' } }
  const servers = f.gateway === 'both' ? [plain, secured] : f.gateway === 'HTTP' ? [plain] : [secured]
  const destination = { host: 'web', port: { number: 80 } }
  return [
    service(namespace, 'edge', [
      { name: 'http', port: 80 },
      { name: 'https', port: 443 },
    ]),
    deployment(namespace, 'edge', { app: 'edge' }, [{ containerPort: 80 }, { containerPort: 443 }]),
    JSON.parse(secretDocument(`${namespace}/cert`, siteValues)) as Document,
    object('Gateway', namespace, 'edge', { selector: { app: 'edge' }, servers }),
    object('VirtualService', namespace, 'outside', { hosts: [host], gateways: ['edge'], http: [{ route: [{ destination }] }] }),
  ]
}

/** Routes of TCP and TLS of a namespace. */
function otherRoutesOf(namespace: string, f: Features): Document[] {
  const host = `tls.${namespace}.example`
  const at = (number: number) => [{ destination: { host, port: { number } } }]
  const servers = [
    ...(f.passthrough ? [{ port: { number: 8443, name: 'tls', protocol: 'TLS' }, hosts: [host], tls: { mode: 'PASSTHROUGH' } }] : []),
    ...(f.gatewayTcp ? [{ port: { number: 5432, name: 'tcp', protocol: 'TCP' }, hosts: ['*'] }] : []),
  ]
  const entry = { hosts: [host], ports: [{ number: 443, name: 'tls', protocol: 'TLS' }], resolution: 'DNS' }
  const sniHosts = [host]
  const given: readonly (Document | false)[] = [
    f.tcp && service(namespace, 'db', [{ name: 'tcp', port: 5432 }], {}),
    f.tcp &&
      object('VirtualService', namespace, 'db', { hosts: ['db'], tcp: [{ match: [{ port: 5432 }], route: [{ destination: { host: 'db' } }] }] }),
    object('ServiceEntry', namespace, 'tls', entry),
    f.tls === 'routes' && object('VirtualService', namespace, 'tls', { hosts: [host], tls: [{ match: [{ port: 443, sniHosts }], route: at(443) }] }),
    f.tls === 'origination' && object('VirtualService', namespace, 'tls', { hosts: [host], http: [{ timeout: '5s', route: at(443) }] }),
    f.credentials !== 'none' &&
      object('DestinationRule', namespace, 'tls', { host, trafficPolicy: { tls: { mode: f.credentials, credentialName: 'kubernetes://client' } } }),
    f.credentials !== 'none' && (JSON.parse(secretDocument(`${namespace}/client`, siteValues)) as Document),
    f.credentials !== 'none' &&
      (JSON.parse(secretDocument(`${namespace}/client-cacert`, { 'ca.crt': siteValues['ca.crt'] ?? '' }, 'Opaque')) as Document),
    servers.length > 0 && object('Gateway', namespace, 'other', { selector: { app: `egress-${namespace}` }, servers }),
    servers.length > 0 && deployment(namespace, 'egress', { app: `egress-${namespace}` }, []),
    f.passthrough &&
      object('VirtualService', namespace, 'passed', {
        ...{ hosts: [host], gateways: ['other'] },
        tls: [{ match: [{ port: 8443, sniHosts }], route: at(443) }],
      }),
    f.gatewayTcp &&
      object('VirtualService', namespace, 'tcp', {
        hosts: [`db.${namespace}.example`],
        gateways: ['other'],
        tcp: [{ match: [{ port: 5432 }], route: at(443) }],
      }),
  ]
  return given.filter((each) => each !== false)
}

/** Callers that exist. */
const sourceOf = (namespace: string, f: Features): object =>
  f.callers === 'namespaces'
    ? { namespaces: f.namespaces }
    : f.callers === 'accounts'
      ? { serviceAccounts: ['web', `${namespace}/other`] }
      : { principals: [`cluster.local/ns/${namespace}/sa/web`, `*/ns/${namespace}/sa/other`], ...(f.tokens ? { requestPrincipals: ['*'] } : {}) }

const portRule = {
  none: {},
  ports: { to: [{ operation: { ports: ['8080'] } }] },
  notPorts: { to: [{ operation: { methods: ['GET'], notPorts: ['8080'] } }] },
  when: { when: [{ key: 'destination.port', values: ['8080'] }] },
}

/** The policies, entries and settings of a namespace. */
function policiesOf(namespace: string, f: Features): Document[] {
  const selector = { matchLabels: { app: 'web' } }
  const egress = [{ hosts: ['./*', `${namespace}/web.${namespace}.svc.cluster.local`] }]
  const entry = { hosts: [`api.${namespace}.example`], ports: [{ number: 443, name: 'https', protocol: 'HTTPS' }] }
  const mutual = (mode: string) => ({ mtls: { mode } })
  const given: readonly (Document | false)[] = [
    f.strict !== undefined && object('PeerAuthentication', namespace, 'default', mutual(f.strict)),
    f.ownPeer &&
      object('PeerAuthentication', namespace, 'web', {
        ...{ selector, ...mutual('PERMISSIVE') },
        ...(f.portMode ? { portLevelMtls: { 8080: { mode: 'PERMISSIVE' } } } : {}),
      }),
    f.policy !== undefined &&
      object('AuthorizationPolicy', namespace, 'p', {
        selector,
        action: f.policy,
        rules: [{ from: [{ source: sourceOf(namespace, f) }], ...portRule[f.policyPort] }],
      }),
    f.tokens && object('RequestAuthentication', namespace, 't', { selector, jwtRules: [{ issuer: 'i', jwksUri: 'https://i.example/keys' }] }),
    ['namespace', 'both'].includes(f.sidecar) && object('Sidecar', namespace, 'all', { egress }),
    ['workload', 'both'].includes(f.sidecar) && object('Sidecar', namespace, 'web', { workloadSelector: { labels: { app: 'web' } }, egress }),
    f.entry === 'DNS' && object('ServiceEntry', namespace, 'api', { ...entry, resolution: 'DNS' }),
    f.entry === 'STATIC' && object('ServiceEntry', namespace, 'api', { ...entry, resolution: 'STATIC', endpoints: [{ address: '192.0.2.1' }] }),
    f.entry === 'workloads' &&
      object('ServiceEntry', namespace, 'api', {
        ...entry,
        resolution: 'STATIC',
        location: 'MESH_INTERNAL',
        workloadSelector: { labels: { app: 'vm' } },
      }),
    f.entry === 'workloads' && object('WorkloadEntry', namespace, 'vm', { address: '192.0.2.2', labels: { app: 'vm' } }),
    f.entry === 'workloads' && object('WorkloadGroup', namespace, 'vm', { metadata: { labels: { app: 'vm' } }, template: { serviceAccount: 'vm' } }),
    f.filter && object('EnvoyFilter', namespace, 'f', { workloadSelector: { labels: { app: 'web' } }, configPatches: [] }),
  ]
  return given.filter((each) => each !== false)
}

function meshOf(f: Features): Document[] {
  const labels = { 'mesh-injection': 'enabled' }
  return f.namespaces.flatMap((namespace) => [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
    ...routesOf(namespace, f),
    ...gatewayOf(namespace, f),
    ...policiesOf(namespace, f),
    ...otherRoutesOf(namespace, f),
  ])
}

/** Everything that is told of a mesh, `<code> <object> <path>`. */
function told(documents: readonly Document[]): string[] {
  const mesh = new OfflineMesh(testSettings())
  mesh.add('all.yaml', documents.map((each) => JSON.stringify(each)).join('\n---\n'))
  const analysis = new Analysis(mesh.facts())
  analysis.refresh()
  return [
    ...mesh.faults.map(({ key, path, reason }) => `fault ${key} ${path}: ${reason}`),
    ...mesh.warnings.map(({ key, path, reason }) => `warning ${key} ${path}: ${reason}`),
    ...analysis.all().map(({ code, object: key, path }) => `${code} ${key} ${path}`),
  ]
}

const virtual = (spec: object) => object('VirtualService', 'shop', 'x', { hosts: ['x.example'], ...spec })
const route = (destination: object, ...others: object[]) =>
  virtual({ http: [{ route: [{ destination: { host: 'web', port: { number: 80 }, ...destination } }] }, ...others] })
const annotated = (document: Document, annotations: object): Document => ({
  ...document,
  metadata: { ...(document.metadata as object), annotations },
})
const at = 'spec.http[0].route[0].destination'
const peer = (labels: object) => object('PeerAuthentication', 'shop', 'x', { selector: { matchLabels: labels }, mtls: { mode: 'UNSET' } })
const server = (number: number, protocol: string, tls?: object) => ({
  port: { number, name: `${protocol}-${number}`.toLowerCase(), protocol },
  hosts: ['x.example'],
  tls,
})

const http = { name: 'http', port: 80 }
/** A Service of workloads of its own, which declare the ports 9000 and `admin`. */
const serviceOfOwn = (port: object) => [
  service('shop', 'own', [{ name: 'http', ...port }]),
  deployment('shop', 'own', { app: 'own' }, [{ containerPort: 9000 }, { containerPort: 9001, name: 'admin' }]),
]
const rightOwn = [...serviceOfOwn({ port: 80, targetPort: 9000 }), service('shop', 'admin', [{ ...http, targetPort: 'admin' }], { app: 'own' })]
const database = [
  service('shop', 'data', [{ name: 'tcp', port: 5432 }], {}),
  object('VirtualService', 'shop', 'x', { hosts: ['data'], http: [{ route: [{ destination: { host: 'data' } }] }] }),
]
/** Routes at a Gateway with one server. */
const boundTo = (server: object, routes: object) => [
  object('Gateway', 'shop', 'y', { servers: [{ ...server, hosts: ['x.example'] }] }),
  virtual({ gateways: ['y'], ...routes }),
]
const toData = [{ destination: { host: 'web', port: { number: 80 } } }]
const byName = { tls: [{ match: [{ sniHosts: ['x.example'] }], route: toData }] }
const originated = (mode: string) => [
  object('ServiceEntry', 'shop', 'x', { hosts: ['x.example'], ports: [{ number: 443, name: 'tls', protocol: 'TLS' }], resolution: 'DNS' }),
  object('DestinationRule', 'shop', 'x', { host: 'x.example', trafficPolicy: { tls: { mode, credentialName: 'lost' } } }),
  named('Secret', 'v1', 'shop', 'other', { type: 'Opaque' }),
]
const own = { selector: { matchLabels: { app: 'own' } } }
const ruleOf = (rule: object) => [...rightOwn, object('AuthorizationPolicy', 'shop', 'x', { ...own, rules: [rule] })]

/** Objects with one mistake, and what is told of it. */
const mistakes: readonly (readonly [Document[], string])[] = [
  [
    [object('AuthorizationPolicy', 'shop', 'x', { rules: [{ from: [{ source: { notPrincipals: ['spiffe://cluster.local/ns/shop/sa/web'] } }] }] })],
    'MESH0011 AuthorizationPolicy/shop/x spec.rules[0].from[0].source.notPrincipals[0]',
  ],
  [
    [object('AuthorizationPolicy', 'shop', 'x', { rules: [{ when: [{ key: 'source.principal', values: ['cluster.local/ns/nowhere/sa/web'] }] }] })],
    'IST0101 AuthorizationPolicy/shop/x spec.rules[0].when[0].values[0]',
  ],
  [
    [
      ...rightOwn,
      object('PeerAuthentication', 'shop', 'x', { ...own, mtls: { mode: 'DISABLE' } }),
      object('AuthorizationPolicy', 'shop', 'x', { ...own, rules: [{ from: [{ source: { namespaces: ['shop'] } }] }] }),
    ],
    'MESH0011 AuthorizationPolicy/shop/x spec.rules[0].from[0].source.namespaces',
  ],
  [
    [
      service('shop', 'own', [{ name: 'tcp', port: 80, targetPort: 9000 }]),
      deployment('shop', 'own', { app: 'own' }, [{ containerPort: 9000 }]),
      object('AuthorizationPolicy', 'shop', 'x', { ...own, rules: [{ to: [{ operation: { paths: ['/a'] } }] }] }),
    ],
    'MESH0011 AuthorizationPolicy/shop/x spec.rules[0].to[0].operation.paths',
  ],
  [database, 'MESH0009 VirtualService/shop/x spec.http'],
  [
    boundTo({ port: { number: 9443, name: 's', protocol: 'TLS' }, tls: { mode: 'PASSTHROUGH' } }, { http: [{ route: toData }] }),
    'MESH0009 VirtualService/shop/x spec.http',
  ],
  [boundTo({ port: { number: 9080, name: 's', protocol: 'HTTP' } }, byName), 'MESH0009 VirtualService/shop/x spec.tls'],
  [boundTo({ port: { number: 9080, name: 's', protocol: 'HTTP' } }, { tcp: [{ route: toData }] }), 'MESH0009 VirtualService/shop/x spec.tcp'],
  [
    boundTo({ port: { number: 9080, name: 's', protocol: 'HTTP' } }, { http: [{ match: [{ port: 80 }], route: toData }] }),
    'IST0101 VirtualService/shop/x spec.http[0].match[0].port',
  ],
  ...['SIMPLE', 'MUTUAL'].map(
    (mode) => [originated(mode), 'IST0101 DestinationRule/shop/x spec.trafficPolicy.tls.credentialName'] as [Document[], string],
  ),
  [
    [object('RequestAuthentication', 'shop', 'x', { jwtRules: [{ issuer: 'https://metadata.google.internal' }] })],
    'MESH0010 RequestAuthentication/shop/x spec.jwtRules[0].issuer',
  ],
  [[service('shop', 'x', [http], { app: 'wbe' })], 'IST0127 Service/shop/x spec.selector'],
  [serviceOfOwn({ port: 80, targetPort: 9002 }), 'MESH0008 Service/shop/own spec.ports[0].targetPort'],
  [serviceOfOwn({ port: 80 }), 'MESH0008 Service/shop/own spec.ports[0].port'],
  [serviceOfOwn({ port: 80, targetPort: 'admn' }), 'IST0101 Service/shop/own spec.ports[0].targetPort'],
  [
    [...rightOwn, object('PeerAuthentication', 'shop', 'x', { ...own, portLevelMtls: { 80: { mode: 'STRICT' }, 9001: { mode: 'STRICT' } } })],
    'MESH0008 PeerAuthentication/shop/x spec.portLevelMtls[80]',
  ],
  [ruleOf({ to: [{ operation: { ports: ['9000', '80'] } }] }), 'MESH0008 AuthorizationPolicy/shop/x spec.rules[0].to[0].operation.ports[1]'],
  [ruleOf({ to: [{ operation: { notPorts: ['9003'] } }] }), 'MESH0008 AuthorizationPolicy/shop/x spec.rules[0].to[0].operation.notPorts[0]'],
  [ruleOf({ when: [{ key: 'destination.port', notValues: ['80'] }] }), 'MESH0008 AuthorizationPolicy/shop/x spec.rules[0].when[0].notValues[0]'],
  [[route({ host: 'wbe' })], `IST0101 VirtualService/shop/x ${at}.host`],
  [[route({ port: { number: 82 } })], `IST0101 VirtualService/shop/x ${at}.port.number`],
  [[route({ subset: 'v3' })], `IST0101 VirtualService/shop/x ${at}.subset`],
  [[route({}, { route: [{ destination: { host: 'web', port: { number: 80 } } }] })], 'IST0130 VirtualService/shop/x spec.http[1]'],
  [[virtual({ gateways: ['egde'], http: [{ redirect: { uri: '/' } }] })], 'IST0101 VirtualService/shop/x spec.gateways[0]'],
  [[virtual({ http: [{ delegate: { name: 'nobody' } }] })], 'IST0101 VirtualService/shop/x spec.http[0].delegate'],
  [[virtual({ exportTo: ['nowhere'], http: [{ redirect: { uri: '/' } }] })], 'IST0101 VirtualService/shop/x spec.exportTo[0]'],
  [
    [virtual({ http: [{ route: [1, 2].map((weight) => ({ destination: { host: 'web', port: { number: 80 } }, weight })) }] })],
    'IST0133 VirtualService/shop/x spec.http[0].route',
  ],
  [[object('DestinationRule', 'shop', 'x', { host: 'nobody' })], 'IST0101 DestinationRule/shop/x spec.host'],
  [
    [
      object('Gateway', 'shop', 'x', { servers: [server(443, 'HTTPS', { mode: 'SIMPLE', credentialName: 'lost' })] }),
      named('Secret', 'v1', 'shop', 'other', { type: 'Opaque' }),
    ],
    'IST0101 Gateway/shop/x spec.servers[0].tls.credentialName',
  ],
  [[object('Gateway', 'shop', 'x', { servers: [server(80, 'HTTP'), server(80, 'TCP')] })], 'MESH0006 Gateway/shop/x spec.servers[1].port'],
  [[object('Gateway', 'nowhere', 'x', { servers: [server(80, 'HTTP')] })], 'IST0101 Gateway/nowhere/x metadata.namespace'],
  [[peer({ app: 'nobody' })], 'IST0127 PeerAuthentication/shop/x spec.selector.matchLabels'],
  [
    [peer({ version: 'v1' }), { ...peer({ version: 'v1' }), metadata: { name: 'y', namespace: 'shop' } }],
    'MESH0007 PeerAuthentication/shop/y spec.selector.matchLabels',
  ],
  [
    [object('AuthorizationPolicy', 'shop', 'x', { rules: [{ from: [{ source: { namespaces: ['nowhere'] } }] }] })],
    'IST0101 AuthorizationPolicy/shop/x spec.rules[0].from[0].source.namespaces[0]',
  ],
  [
    [named('Ingress', 'networking.k8s.io/v1', 'shop', 'x', { spec: { defaultBackend: { service: { name: 'wbe', port: { number: 80 } } } } })],
    'IST0101 Ingress/shop/x spec.defaultBackend.service.name',
  ],
  [
    [annotated(virtual({ http: [{ redirect: { uri: '/' } }] }), { 'sidecar.mesh.io/injct': 'true' })],
    'IST0108 VirtualService/shop/x metadata.annotations[sidecar.mesh.io/injct]',
  ],
  ...['Telemetry', 'ProxyConfig', 'WasmPlugin', 'TrafficExtension'].map((kind): [Document[], string] => [
    [object(kind, 'shop', 'x', {})],
    `IST0133 ${kind}/shop/x `,
  ]),
  [
    [object('DestinationRule', 'shop', 'x', { host: 'web', workloadSelector: { matchLabels: { app: 'web' } } })],
    'IST0133 DestinationRule/shop/x spec.workloadSelector',
  ],
]

describe('meshes that are made at random', () => {
  it('are right without a finding, whatever features they have', () => {
    fc.assert(
      fc.property(features, (f) => {
        expect(told(meshOf(f)).join('\n')).to.equal('')
      }),
      { seed, numRuns: runs(1000) },
    )
  })

  it('have a planted mistake told, and nothing else', () => {
    fc.assert(
      fc.property(features, fc.constantFrom(...mistakes), (f, [planted, finding]) => {
        expect(told([...meshOf(f), ...planted]).join('\n')).to.equal(finding)
      }),
      { seed, numRuns: runs(1500) },
    )
  })
})
