/** Settings of agents that discovery has for pods without their own (docs/injection.md, N16). */
import { expect } from 'chai'
import { readFeatures } from '../../../src/config/features.ts'
import { agentDefaults } from '../../../src/inject/agent-defaults.ts'
import { containerOf, injected, injectionSettings, podWith, variablesOf } from '../../harness/injection.ts'

const given = (environment: Record<string, string>) => agentDefaults(readFeatures(environment).features)
const metrics = (text: string) => given({ MESH_METRICS_ANNOTATIONS: text })

describe('variables of discovery that are settings of agents', () => {
  it('are nothing when they are not set', () => {
    expect(given({})).to.deep.equal({})
    expect(variablesOf(containerOf(injected(podWith()), 'mesh-proxy'))).not.to.have.property('MESH_METRICS_ANNOTATIONS')
  })

  it('say where the metrics of applications are whose pods do not say it', () => {
    const settings = injectionSettings({ agent: given({ ISTIO_PROMETHEUS_ANNOTATIONS: '{"port":"9090","path":"/m"}' }) })
    const told = (annotations: Record<string, string>) =>
      variablesOf(containerOf(injected(podWith({ annotations }), settings), 'mesh-proxy')).MESH_METRICS_ANNOTATIONS
    expect(told({})).to.equal('{"path":"/m","port":"9090"}')
    expect(told({ 'prometheus.io/scrape': 'true' })).to.equal('{"scrape":"true","path":"/m","port":"9090"}')
    expect(told({ 'prometheus.io/port': '1' })).to.equal('{"port":"1"}')
    expect(told({ 'prometheus.io/path': '/x' })).to.equal('{"path":"/x"}')
    // An agent that is told to ask itself does not start.
    expect(told({ 'status.sidecar.mesh.io/port': '9090' })).to.equal(undefined)
    expect(told({ 'prometheus.istio.io/merge-metrics': 'false' })).to.equal(undefined)
    const once = injected(podWith(), settings)
    expect(injected(once, settings)).to.deep.equal(once)
  })

  it('say how long agents drain, unless the pod does', () => {
    const settings = injectionSettings({
      agent: given({ TERMINATION_DRAIN_DURATION_SECONDS: '7' }),
      defaultConfig: { terminationDrainDuration: 3000 },
    })
    const told = (annotations: Record<string, string>, of = settings) =>
      JSON.parse(variablesOf(containerOf(injected(podWith({ annotations }), of), 'mesh-proxy')).PROXY_CONFIG ?? '{}').terminationDrainDuration
    expect(told({})).to.equal('7s')
    expect(told({ 'proxy.istio.io/config': 'concurrency: 1' })).to.equal('7s')
    expect(told({ 'proxy.istio.io/config': 'terminationDrainDuration: 9s' })).to.equal('9s')
    expect(told({}, injectionSettings({ defaultConfig: { terminationDrainDuration: 3000 } }))).to.equal('3s')
  })

  it('are refused when an agent could not read them, with the variable and the reason', () => {
    for (const [text, reason] of [
      ['{', 'is not JSON'],
      ['[]', 'is not a JSON object'],
      ['{"prot":"1"}', '"prot" is none of scrape, path, port'],
      ['{"port":9090}', 'port: expected text, got number'],
      ['{"port":"0"}', 'port: "0" is not a port'],
      ['{"path":"m"}', 'path: "m" does not begin with /'],
      ['{"path":"/a b"}', 'path: "/a b" does not begin'],
    ] as const)
      expect(() => metrics(text), text).to.throw(`environment variable MESH_METRICS_ANNOTATIONS: ${reason}`)
    expect(() => given({ TERMINATION_DRAIN_DURATION_SECONDS: '-1' })).to.throw('TERMINATION_DRAIN_DURATION_SECONDS')
  })
})
