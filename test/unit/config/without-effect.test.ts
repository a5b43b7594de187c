import { expect } from 'chai'
import type { ConfigObject } from '../../../protocols/data.ts'
import { configKey, kinds } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { EffectLog, effectRows, withoutEffect } from '../../../src/config/without-effect.ts'
import { Faults } from '../../../src/model/faults.ts'
import { MeshState } from '../../../src/snapshot/state.ts'
import { names, testSettings } from '../../harness/settings.ts'

function object(kind: string, spec: string, name = 'x'): ConfigObject {
  const { group, versions } = kinds.get(kind) ?? { group: '', versions: [] }
  const text = `apiVersion: ${group}.istio.io/${versions.at(-1)}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`
  const { objects, faults, warnings } = parseConfigFile('f.yaml', text, names)
  expect([faults, warnings], kind).to.deep.equal([[], []])
  return objects[0] as ConfigObject
}
const paths = (kind: string, spec: string) => withoutEffect(object(kind, spec), 'mesh.io').map(({ path }) => path)

describe('settings without effect', () => {
  it('are found at any depth in an object, and only those', () => {
    const policy = '{tunnel: {targetHost: a, targetPort: 1}, loadBalancer: {simple: RANDOM, zoneAwareLbSetting: {}}}'
    expect(
      paths('DestinationRule', `{host: a, trafficPolicy: ${policy}, subsets: [{name: v1}, {name: v2, traffic_policy: ${policy}}]}`),
    ).to.deep.equal([
      'spec.trafficPolicy.loadBalancer.zoneAwareLbSetting',
      'spec.trafficPolicy.tunnel',
      'spec.subsets[1].trafficPolicy.loadBalancer.zoneAwareLbSetting',
      'spec.subsets[1].trafficPolicy.tunnel',
    ])
    expect(
      paths(
        'DestinationRule',
        `{host: a, trafficPolicy: {
          retryBudget: {percent: 20, minRetryConcurrency: 3, budgetInterval: 5s}, proxyProtocol: {version: V2}, tls: {mode: SIMPLE, caCrl: /etc/crl},
          outlierDetection: {outlierDetectionHttpErrorCodes: []},
          loadBalancer: {localityLbSetting: {failoverPriority: [a]}, zoneAwareLbSetting: {}, warmup: {duration: 5s, minimumPercent: 10, aggression: 1.5}},
          connectionPool: {tcp: {maxConnectionDuration: 5s}, http: {http2KeepAlive: {interval: 5s, timeout: 1s}}}}}`,
      ).map((path) => path.slice('spec.trafficPolicy.'.length)),
    ).to.have.members([
      'retryBudget.budgetInterval',
      'tls.caCrl',
      'outlierDetection.outlierDetectionHttpErrorCodes',
      'loadBalancer.localityLbSetting.failoverPriority',
      'loadBalancer.zoneAwareLbSetting',
    ])
    expect(paths('DestinationRule', '{host: a}')).to.deep.equal([])
    expect(paths('DestinationRule', '{host: a, workloadSelector: {matchLabels: {app: client}}}')).to.deep.equal(['spec.workloadSelector'])
    const peers = (...settings: string[]) => settings.map((tls, index) => `{port: {number: ${index + 1}}, tls: {${tls}, caCrl: /crl}}`).join()
    expect(
      paths(
        'DestinationRule',
        `{host: a, trafficPolicy: {portLevelSettings: [${peers('mode: SIMPLE, caCertificates: /ca', 'mode: SIMPLE', 'mode: SIMPLE, caCertificates: /ca, insecureSkipVerify: true', 'mode: ISTIO_MUTUAL')}]}}`,
      ),
    ).to.deep.equal([1, 2, 3].map((index) => `spec.trafficPolicy.portLevelSettings[${index}].tls.caCrl`))
    const own = 'serverCertificate: /a, privateKey: /b'
    const servers = [`mode: MUTUAL, ${own}, caCertificates: /ca`, `mode: SIMPLE, ${own}, caCertificates: /ca`, 'mode: MUTUAL, credentialName: a']
      .map((tls, index) => `{port: {number: 443, name: p${index}, protocol: HTTPS}, hosts: [a], tls: {${tls}, caCrl: /crl}}`)
      .join()
    expect(paths('Gateway', `{servers: [${servers}]}`)).to.deep.equal([1, 2].map((index) => `spec.servers[${index}].tls.caCrl`))
    const patch = '{operation: MERGE, value: {}}'
    expect(
      paths(
        'EnvoyFilter',
        `{strict: true, targetRefs: [{group: '', kind: Service, name: a}], configPatches: [{applyTo: CLUSTER, patch: ${patch}}, {applyTo: BOOTSTRAP, patch: ${patch}}]}`,
      ),
    ).to.deep.equal(['spec.strict', 'spec.configPatches[1]', 'spec.targetRefs[0]'])
    expect(
      paths('Sidecar', '{ingress: [{port: {number: 443}}, {port: {number: 8443}, tls: {mode: MUTUAL, serverCertificate: /a, privateKey: /b}}]}'),
    ).to.deep.equal(['spec.ingress[1].tls'])
    const route = '[{destination: {host: a}, headers: {request: {remove: [x-a]}}}]'
    expect(
      paths(
        'VirtualService',
        `{hosts: [a], http: [{route: ${route}}], tls: [{match: [{sniHosts: [a]}], route: ${route}}], tcp: [{route: ${route}}]}`,
      ),
    ).to.deep.equal(['spec.tls[0].route[0].headers', 'spec.tcp[0].route[0].headers'])
  })

  it('are settings of a rule that port-level settings beside them, or a retry budget, replace', () => {
    const ports = (...numbers: number[]) => `portLevelSettings: [${numbers.map((number) => `{port: {number: ${number}}, tls: {mode: DISABLE}}`)}]`
    const found = (spec: string) =>
      withoutEffect(object('DestinationRule', `{host: a, ${spec}}`), 'mesh.io').map(({ path, reason }) => `${path} ${reason}`)
    expect(found(`trafficPolicy: {proxyProtocol: {}, retryBudget: {}}, subsets: [{name: v1, trafficPolicy: {${ports(80)}}}]`)).to.deep.equal([])
    expect(found(`trafficPolicy: {proxyProtocol: {}, retryBudget: {}, ${ports(80, 81, 80)}}`)).to.deep.equal([
      'spec.trafficPolicy.proxyProtocol has no effect on ports that portLevelSettings name: 80, 81',
      'spec.trafficPolicy.retryBudget has no effect on ports that portLevelSettings name: 80, 81',
    ])
    const many = Array.from({ length: 12 }, (_, index) => index + 1)
    expect(found(`subsets: [{name: v1}, {name: v2, trafficPolicy: {proxyProtocol: {}, ${ports(...many)}}}]`)).to.deep.equal([
      'spec.subsets[1].trafficPolicy.proxyProtocol has no effect on ports that portLevelSettings name: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more',
    ])
    const retries = 'connectionPool: {http: {maxRetries: 2}}'
    const onPorts = `portLevelSettings: [{port: {number: 80}, ${retries}}, {port: {number: 81}, ${retries}}]`
    const rule = `retryBudget: {}, portLevelSettings: [{port: {number: 81}, ${retries}}]`
    expect(
      found(`trafficPolicy: {${rule}, ${retries}}, subsets: [{name: v1, trafficPolicy: {${retries}}}, {name: v2, trafficPolicy: {${onPorts}}}]`),
    ).to.deep.equal([
      'spec.trafficPolicy.retryBudget has no effect on ports that portLevelSettings name: 81',
      ...['trafficPolicy', 'subsets[0].trafficPolicy', 'subsets[1].trafficPolicy.portLevelSettings[0]'].map(
        (path) => `spec.${path}.connectionPool.http.maxRetries has no effect: retryBudget takes its place`,
      ),
    ])
    expect(found(`trafficPolicy: {${retries}}, subsets: [{name: v1, trafficPolicy: {${retries}}}]`)).to.deep.equal([])
  })

  it('include all objects of some kinds, which cause no push', () => {
    const state = new MeshState(testSettings(), new Faults())
    for (const [kind, spec] of [
      ['Telemetry', '{accessLogging: [{providers: [{name: envoy}]}]}'],
      ['ProxyConfig', '{concurrency: 0}'],
      ['WasmPlugin', '{url: oci://x}'],
      ['TrafficExtension', '{lua: {inlineCode: x}}'],
    ] as const) {
      const one = object(kind, spec)
      expect(withoutEffect(one, 'mesh.io').map(({ path, reason }) => [path, reason.startsWith('has no effect yet: ')])).to.deep.equal([['', true]])
      expect(state.setConfig(configKey(one), one), kind).to.equal(false)
      expect(state.objects.get(configKey(one))?.kind).to.equal(kind)
    }
  })

  it('are logged once for each object and field while they exist', () => {
    const log = new EffectLog()
    const rule = (fields: string) => object('DestinationRule', `{host: a, trafficPolicy: {${fields}}}`)
    const say = (given: ConfigObject | undefined) =>
      log.lines('DestinationRule/ns/x', given, 'mesh.io').map((line) => line.replace(/: has no .*/, ''))
    const tunnel = 'DestinationRule/ns/x (f.yaml, document 1): field spec.trafficPolicy.tunnel'
    expect(say(rule('tunnel: {}'))).to.deep.equal([tunnel])
    expect(say(rule('tunnel: {a: b}'))).to.deep.equal([])
    expect(say(rule('tunnel: {}, tls: {mode: SIMPLE, caCrl: /crl}'))).to.deep.equal([
      'DestinationRule/ns/x (f.yaml, document 1): field spec.trafficPolicy.tls.caCrl',
    ])
    expect(log.summary()).to.equal(
      '1 object has no effect as a whole or in some fields (DestinationRule 1); /debug/noeffectz lists them, docs/kinds.md says what works',
    )
    expect([say(undefined), log.summary()]).to.deep.equal([[], undefined])
    expect(say(rule('tunnel: {}'))).to.deep.equal([tunnel])
  })

  it('are listed with their objects', () => {
    const all = [object('DestinationRule', '{host: a}', 'good'), object('Telemetry', '{}', 'idle')]
    expect(effectRows(all, 'mesh.io', []).map(({ kind, name, place, fields }) => [kind, name, place, fields.length])).to.deep.equal([
      ['Telemetry', 'idle', 'f.yaml, document 1', 1],
    ])
  })

  it('are listed with what some proxies lose of an object, and not with faults', () => {
    const [good] = [object('DestinationRule', '{host: a}', 'good')]
    const fault = { type: 'eds', resource: 'a.com', objects: ['DestinationRule/ns/good', 'Mock/ns/a'], reason: 'r', consequence: 'c' }
    const rows = effectRows([good as ConfigObject], 'mesh.io', [
      { ...fault, isLoss: true },
      { ...fault, reason: 'fault' },
    ])
    expect(rows.map(({ name, fields }) => [name, fields])).to.deep.equal([['good', [{ path: '', reason: 'a.com: r; c' }]]])
  })
})
