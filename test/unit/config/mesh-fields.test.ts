import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { type MeshConfig, meshForm, namesOfMesh } from '../../../src/config/mesh-config.ts'
import { readMeshConfig, readMeshNetworks } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { proxyConfigShape } from '../../../src/config/proxy-config.ts'
import type { Form } from '../../../src/config/shape.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { Discovery } from '../../../src/snapshot/discovery.ts'
import { names, testSettings } from '../../harness/settings.ts'

const documents = `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: a, namespace: ns}
spec: {hosts: [a.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}, {number: 90, name: tcp}], endpoints: [{address: 10.1.0.1, serviceAccount: x}]}
---
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: dns, namespace: ns}
spec: {hosts: [dns.com], resolution: DNS, ports: [{number: 80, name: http}]}
---
apiVersion: networking.mesh.io/v1
kind: DestinationRule
metadata: {name: a, namespace: ns}
spec: {host: a, trafficPolicy: {outlierDetection: {interval: 1s}}}
---
apiVersion: networking.mesh.io/v1
kind: Gateway
metadata: {name: g, namespace: ns}
spec: {servers: [{port: {number: 443, name: h, protocol: TLS}, hosts: ['*'], tls: {mode: AUTO_PASSTHROUGH}}, {port: {number: 80, name: p, protocol: HTTP}, hosts: ['*']}]}
---
apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: v, namespace: ns}
spec: {hosts: [v.com], gateways: [g, mesh], http: [{route: [{destination: {host: a}}]}]}
---
apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: p, namespace: ns}
spec: {action: CUSTOM, provider: {name: ext}, rules: [{to: [{operation: {paths: [/x]}}], from: [{source: {ipBlocks: [1.2.3.4]}}]}]}
---
apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: q, namespace: ns}
spec: {rules: [{from: [{source: {principals: [cluster.local/ns/x/sa/y]}}]}]}
`
const mesh = `
accessLogFile: /dev/stdout
accessLogEncoding: JSON
accessLogFormat: '{"a": "b"}'
enableEnvoyAccessLogService: true
tcpKeepalive: {probes: 3, time: 10s, interval: 5s}
localityLbSetting: {distribute: [{from: r/z, to: {r/z: 100}}], enabled: true}
inboundClusterStatName: in_%SERVICE%
outboundClusterStatName: out_%SERVICE%
proxyHttpPort: 15007
extensionProviders:
- name: ext
  envoyExtAuthzHttp: {service: a.ns.svc.cluster.local, port: 80, pathPrefix: /p, failOpen: true, statusOnError: '403', includeHeadersInCheck: [x], headersToUpstreamOnAllow: [x], headersToDownstreamOnDeny: [x]}
- name: grpc
  envoyExtAuthzGrpc: {service: a.ns.svc.cluster.local, port: 80}
defaultConfig: {tracing: {sampling: 5}, gatewayTopology: {numTrustedProxies: 1, forwardClientCertDetails: SANITIZE}}
`

/** Returns the paths of the fields that are not declared unused, without those within lists. */
function usedFields(form: Form, path = ''): string[] {
  if (form.type !== 'record') return []
  return Object.entries(form.fields).flatMap(([name, field]) =>
    field.unused ? [] : [`${path}${name}`, ...usedFields(field.form, `${path}${name}.`)],
  )
}

/** Returns a proxy of `value` that records which of its fields are read. */
function recorded<T extends object>(value: T, read: Set<string>, path = ''): T {
  return new Proxy(value, {
    get(target, key) {
      const found = Reflect.get(target, key)
      if (typeof key === 'string' && !Array.isArray(target)) read.add(path + key)
      return typeof found === 'object' && found !== null && !Array.isArray(found) ? recorded(found, read, `${path}${String(key)}.`) : found
    },
  })
}

describe('fields of the mesh configuration', () => {
  it('are read by some code unless they are declared as without effect', () => {
    const read = new Set<string>()
    for (const content of [mesh, mesh.replace('distribute: [{from: r/z, to: {r/z: 100}}], ', '')]) {
      const given = readMeshConfig(content)
      if ('error' in given) throw new Error(given.error)
      expect(given.warnings).to.deep.equal([])
      namesOfMesh(recorded<MeshConfig>(given.value, read))
      new Discovery(names, recorded<MeshConfig>(given.value, read)).covers('ns', '')
      const planner = new Planner(testSettings())
      planner.state.setMesh(given.value)
      const { objects, faults } = parseConfigFile('f', documents, names)
      expect(faults).to.deep.equal([])
      for (const object of objects) planner.state.setConfig(configKey(object), object)
      // Installed after the comparison of whole mesh configurations, so that only the reads of generators are recorded.
      const build = planner.state.take.bind(planner.state)
      planner.state.take = (now) => {
        const { snapshot, changes } = build(now)
        return { snapshot: { ...snapshot, mesh: recorded<MeshConfig>(snapshot.mesh, read) }, changes }
      }
      planner.advance()
      const connect = (id: string, metadata = {}) =>
        planner.connect(id, readNode({ id, metadata, locality: { region: 'r', zone: 'z', subZone: '' } }, names, false))
      const certificates = Object.fromEntries(
        ['CLIENT', 'SERVER'].flatMap((side) => ['KEY', 'CERT_CHAIN', 'ROOT_CERT'].map((file) => [`TLS_${side}_${file}`, 'f'])),
      )
      connect('sidecar~10.1.0.1~p.ns~ns.svc.cluster.local', certificates)
      connect('sidecar~10.1.0.1~q.ns~ns.svc.cluster.local', { INTERCEPTION_MODE: 'NONE' })
      connect('router~10.1.0.2~g.ns~ns.svc.cluster.local')
      expect(planner.faults.all()).to.deep.equal([])
    }
    // Read by injection.
    read.add('enablePrometheusMerge')
    // The remaining fields of a proxy's own configuration are read by the agent.
    const ofProxies = proxyConfigShape.form
    expect(usedFields(meshForm).filter((field) => !read.has(field))).to.deep.equal(
      usedFields(ofProxies, 'defaultConfig.').filter((field) => !read.has(field)),
    )
  })

  it('give a warning if they have no effect', () => {
    const fields = 'thriftConfig: {rateLimitUrl: a:1}\ndefaultConfig: {statNameLength: 5}\n'
    const read = readMeshConfig(fields)
    expect('warnings' in read && read.warnings).to.deep.equal(
      Object.entries({
        thriftConfig: 'Thrift calls are not limited yet',
        'defaultConfig.statNameLength': 'not implemented',
      }).map(([field, reason]) => `field ${field}: has no effect yet: ${reason}`),
    )
  })

  it('with tags of spans need a name and exactly one source, which proxies would refuse otherwise', () => {
    const read = (customTags: string) => readMeshConfig(`defaultConfig: {tracing: {customTags: ${customTags}}}\n`)
    for (const tags of ['{a: {}}', '{a: {literal: {value: x}, header: {name: x}}}', '{"": {literal: {value: x}}}', '{a: {header: {name: "x y"}}}'])
      expect(read(tags), tags).to.have.property('error').that.includes('customTags')
    expect(read('{a: {literal: {value: ""}}}')).to.have.property('error')
    expect(read('{a: {environment: {name: X}}}')).to.not.have.property('error')
  })

  it('are rejected with fields that exclude each other, which the reason names', () => {
    for (const [content, reason] of [
      [
        'extensionProviders: [{name: a, envoyExtAuthzGrpc: {service: a, port: 1}, envoyExtAuthzHttp: {service: a, port: 1}}]',
        'extensionProviders[0].envoyExtAuthzGrpc: excluded by envoyExtAuthzHttp',
      ],
      ['extensionProviders: [{name: a, zipkin: {}, datadog: {}}]', 'extensionProviders[0].datadog: excluded by zipkin'],
      ['defaultConfig: {tracing: {datadog: {}, zipkin: {}}}', 'defaultConfig.tracing.datadog: excluded by zipkin'],
    ] as const)
      expect(readMeshConfig(content)).to.deep.equal({ error: `field ${reason}` })
    for (const [content, reason] of [
      ['endpoints: [{fromCidr: 10.0.0.0/8, fromRegistry: a}]', 'endpoints[0].fromRegistry: excluded by fromCidr'],
      ['gateways: [{address: 10.0.0.1, registryServiceName: a}]', 'gateways[0].registryServiceName: excluded by address'],
    ] as const)
      expect(readMeshNetworks(`networks: {far: {${content}}}`)).to.deep.equal({ error: `field networks[far].${reason}` })
  })

  it('with trust domains are normalised to the form of identities, and rejected if that is impossible', () => {
    const read = readMeshConfig('trustDomain: My-Project@Example.com\ntrustDomainAliases: [Old]\n')
    if ('error' in read) throw new Error(read.error)
    expect(namesOfMesh(read.value)).to.deep.equal({
      type: 'MeshNamesChanged',
      trustDomain: 'my-project.example.com',
      trustDomainAliases: ['old'],
      rootNamespace: 'mesh-system',
      discoveryAddress: 'meshd.mesh-system.svc:15012',
      ingress: { mode: 'STRICT', className: 'mesh', service: 'mesh-ingressgateway', selector: '' },
    })
    for (const [content, field] of [
      ["trustDomain: ''", 'trustDomain'],
      ['trustDomain: a/b', 'trustDomain'],
      ['trustDomainAliases: [a, b c]', 'trustDomainAliases[1]'],
    ] as const)
      expect(readMeshConfig(content), content)
        .to.have.property('error')
        .that.matches(new RegExp(`^field ${field.replace(/[[\]]/g, '\\$&')}: .* is not a trust domain`))
  })

  it('with namespaces to export to are rejected unless each is *, ., ~ or a valid name', () => {
    for (const kind of ['Service', 'VirtualService', 'DestinationRule']) {
      expect(readMeshConfig(`default${kind}ExportTo: ['*', ., '~', shop]\n`)).to.have.property('value')
      expect(readMeshConfig(`default${kind}ExportTo: [., 'n|ipv4']\n`))
        .to.have.property('error')
        .that.includes(`field default${kind}ExportTo[1]: "n|ipv4" is neither a namespace nor one of * . ~`)
    }
  })

  it('are rejected if the document is larger than 1 MiB', () => {
    expect(readMeshConfig(`rootNamespace: a # ${'x'.repeat(1024 * 1024)}`)).to.deep.equal({ error: 'larger than 1 MiB' })
  })
})
