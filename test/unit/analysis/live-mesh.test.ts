/** Analysis after any history of changes must find what analysis of the final state finds. */
import { expect } from 'chai'
import fc from 'fast-check'
import { parse } from 'yaml'
import type { ConfigObject, Service } from '../../../protocols/data.ts'
import type { FaultFound, InForceEvent, SecretFacts, SeenEvent } from '../../../protocols/messages/analysis.ts'
import type { Finding } from '../../../src/analysis/finding.ts'
import { LiveMesh } from '../../../src/analysis/live-mesh.ts'
import { backendsOf, resourceOf, workloadOf } from '../../../src/analysis/resources.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { defaultMeshConfig } from '../../../src/config/mesh-config.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { runs } from '../../harness/seed.ts'
import { names } from '../../harness/settings.ts'

const document = (kind: string, path: string, spec: string, group = 'networking') => {
  const [namespace, name] = path.split('/')
  return `apiVersion: ${group}.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}`
}
const pod = (path: string, labels: string) => {
  const [namespace, name] = path.split('/')
  return `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: ${namespace}, labels: ${labels}}\nstatus: {podIP: 10.0.0.9}`
}
const space = (name: string, labels: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}, labels: ${labels}}`

/** Documents that depend on one another in many ways; those with one name replace each other. */
const documents = [
  ...['web', 'wbe', '"*.example"'].map((host) =>
    document('VirtualService', 'a/v', `{hosts: [web], http: [{route: [{destination: {host: ${host}, subset: v1}}]}]}`),
  ),
  document('VirtualService', 'b/v', '{hosts: [web.a.svc.cluster.local], gateways: [mesh, a/g], http: [{route: [{destination: {host: x.example}}]}]}'),
  document('VirtualService', 'b/v', '{hosts: [web.a.svc.cluster.local], exportTo: ["."], http: [{delegate: {name: d}}]}'),
  document('VirtualService', 'b/d', '{http: [{route: [{destination: {host: web.a.svc.cluster.local, port: {number: 81}}}]}]}'),
  document('DestinationRule', 'a/d', '{host: web, subsets: [{name: v1, labels: {version: v1}}]}'),
  document('DestinationRule', 'a/d', '{host: web, trafficPolicy: {tls: {mode: DISABLE}}}'),
  document(
    'DestinationRule',
    'a/e',
    '{host: web.a.svc.cluster.local, trafficPolicy: {tls: {mode: DISABLE}}, subsets: [{name: v1, labels: {version: v2}}]}',
  ),
  document('DestinationRule', 'a/e', '{host: x.example, trafficPolicy: {tls: {mode: MUTUAL, credentialName: cert}}}'),
  document(
    'VirtualService',
    'b/d',
    '{hosts: [x.example], gateways: [a/g], tls: [{match: [{port: 80, sniHosts: [x.example]}], route: [{destination: {host: x.example}}]}]}',
  ),
  document('DestinationRule', 'mesh-system/all', '{host: "*.example", subsets: [{name: v1, labels: {a: b}}]}'),
  ...['SIMPLE', 'MUTUAL'].map((mode) =>
    document(
      'Gateway',
      'a/g',
      `{selector: {app: web}, servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [x.example], tls: {mode: ${mode}, credentialName: cert}}]}`,
    ),
  ),
  document('Gateway', 'a/g', '{selector: {app: web}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*/*.example"]}]}'),
  document('ServiceEntry', 'a/s', '{hosts: ["*.example"], ports: [{number: 80, name: http}], endpoints: [{address: 127.0.0.1}], resolution: STATIC}'),
  document('ServiceEntry', 'b/s', '{hosts: [x.example], ports: [{number: 80, name: http}], resolution: DNS}'),
  document('ServiceEntry', 'c/s', '{hosts: [x.example], exportTo: ["."], ports: [{number: 5432, name: db, protocol: TCP}], resolution: DNS}'),
  document('Sidecar', 'a/s', '{egress: [{hosts: ["b/*", "./web.a.svc.cluster.local"]}]}'),
  document('Sidecar', 'a/t', '{egress: [{hosts: ["*/x.example"]}]}'),
  document('AuthorizationPolicy', 'a/p', '{selector: {matchLabels: {app: web}}, rules: [{from: [{source: {namespaces: [b]}}]}]}', 'security'),
  document('AuthorizationPolicy', 'a/q', '{action: CUSTOM, provider: {name: asker}, rules: [{}]}', 'security'),
  document('PeerAuthentication', 'a/p', '{mtls: {mode: STRICT}}', 'security'),
  document('PeerAuthentication', 'a/q', '{selector: {matchLabels: {app: web}}, portLevelMtls: {80: {mode: STRICT}, 81: {mode: STRICT}}}', 'security'),
  document(
    'AuthorizationPolicy',
    'a/r',
    '{selector: {matchLabels: {app: web}}, rules: [{from: [{source: {principals: [cluster.local/ns/b/sa/x], requestPrincipals: ["*"]}}], to: [{operation: {paths: [/a]}}]}]}',
    'security',
  ),
  document('PeerAuthentication', 'a/p', '{mtls: {mode: DISABLE}}', 'security'),
  document('RequestAuthentication', 'b/t', '{jwtRules: [{issuer: "https://i.example"}]}', 'security'),
  document('WorkloadEntry', 'a/w', '{address: 10.0.0.1, labels: {app: web, version: v2}}'),
  ...['{app: web, version: v1}', '{app: web, sidecar.mesh.io/inject: "true"}'].map((labels) => pod('a/w-1', labels)),
  pod('a/w-2', '{app: web}'),
  pod('b/w-1', '{app: web}'),
  ...['{}', '{mesh-injection: enabled}'].map((labels) => space('a', labels)),
  space('b', '{}'),
].map((text) => parseConfigFile('a.yaml', text, names).objects[0] as ConfigObject)

const web = (ports: readonly number[]): Service => ({
  ...{ hostname: 'web.a.svc.cluster.local', namespace: 'a', name: 'web', provider: 'Orchestrator', cluster: 'c', addresses: [], external: false },
  ...{ exportTo: [], serviceAccounts: [], selector: { app: 'web' }, createdAt: 0, resolution: 'static' },
  ports: ports.map((number) => ({ number, name: `p-${number}`, protocol: 'unknown', targetPort: 0 })),
})
/** A Service whose one port leads to another of its workloads. */
const leading = (target: number | string): Service => {
  const service = web([80])
  const port = typeof target === 'string' ? { targetPort: 0, targetName: target } : { targetPort: target }
  return { ...service, ports: service.ports.map((each) => ({ ...each, ...port })) }
}
const external = (host: string): Service => ({
  ...web([443]),
  hostname: host,
  name: host,
  namespace: 'b',
  provider: 'ServiceEntry',
  selector: undefined,
  external: true,
})
const meshes = [
  '{}',
  'extensionProviders: [{name: asker, envoyExtAuthzGrpc: {service: a.b, port: 1}}]',
  'rootNamespace: a',
  'defaultVirtualServiceExportTo: ["."]',
]

const config = fc.constantFrom(...documents)
const inForce = (object: ConfigObject, isThere: boolean): InForceEvent => ({
  type: 'ObjectInForce',
  key: configKey(object),
  object: isThere ? object : undefined,
})
const servicesOf = (host: string, ...services: Service[]): InForceEvent => ({ type: 'ServicesInForce', host, services })
/** What the watcher of a cluster tells of an object. */
const seen = (text: string, isThere = true): SeenEvent => {
  const value = parse(text)
  const resource = resourceOf(value, 'cluster c')
  if (!resource) throw new Error(text)
  const whole = value.kind === 'Ingress' ? { ...resource, backends: backendsOf(value) } : (workloadOf(value, resource) ?? resource)
  return { type: 'ResourceSeen', key: configKey(resource), resource: isThere ? whole : undefined }
}
const secretsSeen = (namespace: string, secrets: readonly SecretFacts[] | undefined, cluster = 'c'): SeenEvent => ({
  ...{ type: 'SecretsSeen', cluster, namespace, secrets },
})
const pair = ['tls.crt', 'tls.key']
const resources = [
  pod('a/w-1', '{app: web}'),
  `${pod('a/w-1', '{app: web, version: v1}')}\nspec: {containers: [{name: mesh-proxy, image: mesh/old}, {name: web, image: web, ports: [{containerPort: 80, name: http}]}]}`,
  `${pod('a/w-1', '{app: other}')}\nspec: {containers: [{name: web, image: web, ports: [{containerPort: 81, name: admin}]}]}`,
  `${pod('a/w-2', '{app: web}')}\nspec: {containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}`,
  pod('b/w-1', '{app: web}').replace('labels:', 'annotations: {sidecar.mesh.io/inject: "maybe", proxy.mesh.io/confg: a}, labels:'),
  space('a', '{mesh-injection: enabled, mesh.io/rev: canary}').replace('labels:', 'annotations: {sidecar.mesh.io/proxyCPU: 1m}, labels:'),
  space('b', '{}'),
  'apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: a, annotations: {networking.mesh.io/exportTo: "nowhere"}}',
  'apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, namespace: a}\nspec: {defaultBackend: {service: {name: web, port: {number: 81}}}}',
]

const event: fc.Arbitrary<InForceEvent | SeenEvent> = fc.oneof(
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...resources), fc.boolean()).map(([text, isThere]) => seen(text, isThere)) },
  fc.constantFrom(
    ...['a', 'b'].flatMap((namespace) => [
      secretsSeen(namespace, undefined),
      secretsSeen(namespace, []),
      secretsSeen(namespace, [{ name: 'cert', keys: pair }]),
      secretsSeen(namespace, [{ name: 'cert', keys: ['tls.crt'] }]),
      secretsSeen(namespace, [{ name: 'cert', keys: [...pair, 'ca.crt'] }], 'd'),
      secretsSeen(namespace, undefined, 'd'),
    ]),
    ...([undefined, 'global: {proxy: {image: mesh/new}}'] as const).map((values): SeenEvent => ({ type: 'InjectorSeen', values })),
  ),
  { weight: 6, arbitrary: config.map((object) => inForce(object, true)) },
  { weight: 3, arbitrary: config.map((object) => inForce(object, false)) },
  fc.constantFrom(
    servicesOf('web.a.svc.cluster.local'),
    servicesOf('web.a.svc.cluster.local', web([80])),
    servicesOf('web.a.svc.cluster.local', web([80, 81])),
    ...[8080, 80, 'admin', 'http'].map((target) => servicesOf('web.a.svc.cluster.local', leading(target))),
    servicesOf('x.example', external('x.example')),
    servicesOf('x.example'),
    servicesOf('*.example', external('*.example')),
    servicesOf('*.example'),
  ),
  fc.constantFrom(...meshes).map((text): InForceEvent => {
    const read = readMeshConfig(text)
    return { type: 'MeshInForce', mesh: 'value' in read ? read.value : {}, networks: {} }
  }),
)

const keyOf = (event: InForceEvent | SeenEvent): string => {
  const of = 'key' in event ? event.key : 'host' in event ? event.host : 'namespace' in event ? `${event.cluster}/${event.namespace}` : ''
  return `${event.type} ${of}`
}
const features = { POD_NAMESPACE: 'mesh-system', CLUSTER_ID: 'c', PILOT_SCOPE_GATEWAY_TO_NAMESPACE: false, PILOT_JWKS_ALLOWED_ADDRESSES: '' }
const live = () => new LiveMesh({ domain: 'cluster.local', names, patchFaults: () => [], features })

/** All findings, without their places, which no change of an object has to repeat. */
const found = (mesh: LiveMesh): Finding[] => mesh.all().map(({ place: _place, ...finding }) => finding)

describe('the analysis of a running service', () => {
  it('finds after any changes what it finds in the final state', () => {
    fc.assert(
      fc.property(fc.array(fc.array(event, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 8 }), (turns) => {
        const mesh = live()
        const last = new Map<string, InForceEvent | SeenEvent>()
        const known = new Map<string, string>()
        for (const turn of turns) {
          for (const each of turn) {
            mesh.apply(each)
            last.set(keyOf(each), each)
          }
          // What is told of changes adds up to what there is.
          for (const [key, findings] of mesh.refresh()) known.set(key, JSON.stringify(findings))
        }
        const fresh = live()
        for (const each of last.values()) fresh.apply(each)
        fresh.refresh()
        expect(found(mesh)).to.deep.equal(found(fresh))
        const told = [...known.values()].flatMap((text) => JSON.parse(text)).map((finding) => JSON.stringify(finding))
        expect(told.sort()).to.deep.equal(
          found(mesh)
            .map((finding) => JSON.stringify(finding))
            .sort(),
        )
      }),
      { numRuns: runs(1000) },
    )
  })

  it('has the first findings of an object for its status, and none for what is not there', () => {
    const mesh = live()
    const [object] = parseConfigFile('a.yaml', document('Sidecar', 'a/s', '{egress: [{hosts: ["*/x.a", "*/y.a", "*/z.a"]}]}'), names).objects
    mesh.apply(inForce(object as ConfigObject, true))
    mesh.refresh()
    expect(mesh.all()).to.have.length(3)
    expect(mesh.findingsOf('Sidecar/a/s')?.map(({ code, path }) => `${code} ${path}`)).to.deep.equal(
      [0, 1, 2].map((index) => `IST0101 spec.egress[0].hosts[${index}]`),
    )
    expect(mesh.findingsOf('Sidecar/a/t')).to.equal(undefined)
    const hosts = Array.from({ length: 40 }, (_, index) => `"*/x${index}.a"`)
    const [many] = parseConfigFile('a.yaml', document('Sidecar', 'a/s', `{egress: [{hosts: [${hosts}]}]}`), names).objects
    mesh.apply(inForce(many as ConfigObject, true))
    mesh.refresh()
    expect(mesh.findingsOf('Sidecar/a/s')).to.have.length(20)
  })

  it('has the faults of what cannot be used, of each source, with their places', () => {
    const mesh = live()
    const fault = (object: string, path: string): FaultFound => ({
      code: 'IST0106',
      object,
      path,
      message: 'required, but missing',
      place: 'cluster c',
    })
    const told = (name: string, ...faults: FaultFound[]) => mesh.apply({ type: 'FaultsSeen', name, faults })
    const key = 'Sidecar/a/s'
    told('orch:// sidecars a/s', fault(key, 'spec.egress'), fault(key, 'spec.ingress'))
    told('files a.yaml', fault('', ''))
    expect([mesh.due > 0, [...mesh.refresh().keys()].includes(key), mesh.due]).to.deep.equal([true, true, 0])
    expect(mesh.all().map(({ object, path, place }) => [object, path, place])).to.deep.equal([
      ['', '', 'cluster c'],
      [key, 'spec.egress', 'cluster c'],
      [key, 'spec.ingress', 'cluster c'],
    ])
    expect([mesh.findingsOf(key)?.map(({ path }) => path), mesh.keys(), mesh.size]).to.deep.equal([['spec.egress', 'spec.ingress'], [key], 3])
    told('orch:// sidecars a/s')
    expect([[...mesh.refresh().keys()], mesh.findingsOf(key), mesh.size]).to.deep.equal([[key], undefined, 1])
  })

  it('says of what refers to an object that cannot be used that it is invalid, as long as it is', () => {
    const mesh = live()
    mesh.apply(documentsOf(document('VirtualService', 'a/v', '{hosts: [x.example], gateways: [g], http: [{directResponse: {status: 200}}]}')))
    const told = (...faults: FaultFound[]) => {
      mesh.apply({ type: 'FaultsSeen', name: 'orch:// gateways a/g', faults })
      mesh.refresh()
      return mesh.all().flatMap(({ object, message }) => (object === 'VirtualService/a/v' ? [message.slice(0, 26)] : []))
    }
    expect(told()).to.deep.equal(['there is no Gateway a/g, s'])
    expect(told({ code: 'IST0106', object: 'Gateway/a/g', path: 'spec', message: 'required', place: 'c' })).to.deep.equal([
      'the Gateway a/g is invalid',
    ])
    expect(told()).to.deep.equal(['there is no Gateway a/g, s'])
  })

  it('finds Services that lead to no port of their pods, and those without pods, where the containers of all of them are known', () => {
    const mesh = live()
    const says = (...events: (InForceEvent | SeenEvent)[]) => {
      for (const each of events) mesh.apply(each)
      mesh.refresh()
      return found(mesh).flatMap(({ code, path }) => (code === 'IST0118' ? [] : [`${code} ${path}`]))
    }
    const [first, second] = ['a/w-1', 'a/w-2'].map((path) => {
      const [object] = parseConfigFile('a.yaml', pod(path, '{app: web}'), names).objects
      return object as ConfigObject
    }) as [ConfigObject, ConfigObject]
    const contained = (path: string, port: number) =>
      seen(`${pod(path, '{app: web}')}\nspec: {containers: [{name: web, image: web, ports: [{containerPort: ${port}, name: p-${port}}]}]}`)
    expect(says(servicesOf('web.a.svc.cluster.local', web([80])), inForce(first, true))).to.deep.equal([])
    expect(says(contained('a/w-1', 8080))).to.deep.equal(['MESH0008 spec.ports[0].port'])
    expect(says(servicesOf('web.a.svc.cluster.local', leading('p-81')))).to.deep.equal(['IST0101 spec.ports[0].targetPort'])
    // Of the second pod only the labels are known, as in another cluster.
    expect(says(inForce(second, true))).to.deep.equal([])
    expect(says(contained('a/w-2', 81))).to.deep.equal([])
    expect(says(servicesOf('web.a.svc.cluster.local', { ...leading(80), selector: { app: 'wbe' } }))).to.deep.equal(['IST0127 spec.selector'])
    expect(says(inForce(first, false), inForce(second, false))).to.deep.equal([])
  })

  it('says what the gateway of a network does not pass on while there is another cluster', () => {
    const mesh = live()
    const service = (name: string, outside?: Service['outside']): Service => ({
      ...{ ...web([outside ? 15_443 : 80]), hostname: `${name}.a.svc.cluster.local`, name, selector: { app: name } },
      ...(outside ? { outside } : {}),
    })
    const gateway = service('gw', { addresses: ['192.0.2.1'], ports: {}, gateway: { network: 'first', port: 15_443 } })
    const passing =
      '{selector: {app: gw}, servers: [{port: {number: 15443, name: tls, protocol: TLS}, hosts: ["b/*"], tls: {mode: AUTO_PASSTHROUGH}}]}'
    const texts = [document('Gateway', 'a/g', passing), pod('a/gw-1', '{app: gw}'), pod('a/ledger-1', '{app: ledger}')]
    const [ofMesh, ...pods] = texts.map((text) => parseConfigFile('a.yaml', text, names).objects[0] as ConfigObject)
    const space = (cluster: string, isThere: boolean) =>
      inForce({ ...(pods[0] as ConfigObject), kind: 'Namespace', namespace: '', name: 'b', cluster }, isThere)
    const says = (...events: InForceEvent[]) => {
      for (const each of events) mesh.apply(each)
      mesh.refresh()
      return found(mesh).flatMap(({ code, object }) => (code === 'MESH0016' ? [object] : []))
    }
    const services = [gateway, service('ledger')].map((each) => servicesOf(each.hostname, each))
    expect(says(...services, ...[ofMesh as ConfigObject, ...pods].map((each) => inForce(each, true)), space('c', true))).to.deep.equal([])
    expect(says(space('west', true))).to.deep.equal(['Service/a/gw'])
    expect(says(space('west', false))).to.deep.equal([])
  })

  it('takes both spellings of the labels of the mesh for one in pods, as their source has read them', () => {
    const given = pod('a/p', '{service.istio.io/canonical-name: web}')
    const said = (label: string) => {
      const mesh = live()
      const policy = document('AuthorizationPolicy', 'a/q', `{selector: {matchLabels: {service.istio.io/${label}: web}}, rules: [{}]}`, 'security')
      for (const object of parseConfigFile('f', policy, names).objects) mesh.apply(inForce(object, true))
      mesh.apply(seen(given))
      const [entry] = parseConfigFile('f', document('Sidecar', 'a/p', '{}'), names).objects
      mesh.apply({ type: 'ObjectInForce', key: 'Pod/a/p', object: { ...(entry as ConfigObject), kind: 'Pod', spec: {} } })
      mesh.refresh()
      return found(mesh).map(({ code, path }) => `${code} ${path}`)
    }
    expect(said('canonical-name')).to.deep.equal([])
    expect(said('canonical-revision')).to.deep.equal(['IST0127 spec.selector.matchLabels'])
  })

  it('has what is wrong with the networks of the mesh in force', () => {
    const mesh = live()
    const networks = (fromRegistry: string) => ({ networks: { net: { endpoints: [{ fromRegistry }] } } })
    const told = (fromRegistry: string) => {
      mesh.apply({ type: 'MeshInForce', mesh: defaultMeshConfig(), networks: networks(fromRegistry) })
      mesh.refresh()
      return found(mesh).map(({ code, object, path }) => `${code} ${object} ${path}`)
    }
    expect(told('nowhere')).to.deep.equal(['IST0126 MeshNetworks// networks.net.endpoints[0].fromRegistry'])
    expect(told('c')).to.deep.equal([])
  })

  it('says nothing of Secrets that it does not know, and that one is missing, or lacks what is needed, where it knows them', () => {
    const gateway = (mode: string) =>
      documentsOf(
        document(
          'Gateway',
          'a/g',
          `{servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: [x.example], tls: {mode: ${mode}, credentialName: cert}}]}`,
        ),
      )
    const says = (mode: string, ...secrets: SeenEvent[]) => {
      const mesh = live()
      for (const each of [gateway(mode), ...secrets]) mesh.apply(each)
      mesh.refresh()
      return found(mesh).map(({ code, message }) => `${code} ${message.slice(0, message.indexOf(' in the namespace'))}`)
    }
    const cert = (...keys: string[]) => [{ name: 'cert', keys }]
    expect(says('SIMPLE')).to.deep.equal([])
    expect(says('SIMPLE', secretsSeen('b', []))).to.deep.equal([])
    expect(says('SIMPLE', secretsSeen('a', []))).to.deep.equal(['IST0101 there is no Secret cert'])
    expect(says('SIMPLE', secretsSeen('a', []), secretsSeen('a', undefined))).to.deep.equal([])
    expect(says('SIMPLE', secretsSeen('a', []), secretsSeen('a', cert(...pair), 'd'))).to.deep.equal([])
    expect(says('SIMPLE', secretsSeen('a', cert('tls.crt')))).to.deep.equal(['IST0101 the Secret cert'])
    expect(says('SIMPLE', secretsSeen('a', cert(...pair)))).to.deep.equal([])
    expect(says('MUTUAL', secretsSeen('a', cert(...pair)))).to.deep.equal(['IST0101 neither the Secret cert-cacert nor cert'])
    expect(says('MUTUAL', secretsSeen('a', cert(...pair, 'ca.crt')))).to.deep.equal([])
    expect(says('MUTUAL', secretsSeen('a', [...cert(...pair), { name: 'cert-cacert', keys: ['cacert'] }]))).to.deep.equal([])
  })

  it('looks at the objects only that a change concerns', () => {
    const mesh = live()
    const object = (name: string, host: string) =>
      documentsOf(document('VirtualService', `a/${name}`, `{hosts: [${name}.a], http: [{route: [{destination: {host: ${host}}}]}]}`))
    for (let number = 0; number < 100; number++) mesh.apply(object(`v${number}`, `s${number % 10}`))
    mesh.refresh()
    expect(mesh.all()).to.have.length(100)
    const service = { ...web([80]), hostname: 's3.a.svc.cluster.local', name: 's3' }
    mesh.apply(servicesOf('s3.a.svc.cluster.local', service))
    expect([...mesh.refresh().keys()].filter((key) => key.startsWith('VirtualService'))).to.have.length(10)
    expect(mesh.all().filter(({ code }) => code === 'IST0101')).to.have.length(90)
  })
})

function documentsOf(text: string): InForceEvent {
  const [object] = parseConfigFile('a.yaml', text, names).objects
  if (!object) throw new Error(text)
  return inForce(object, true)
}
