import { expect } from 'chai'
import fc from 'fast-check'
import { parse, stringify } from 'yaml'
import { checkAnnotations, checkedAnnotations } from '../../../src/inject/annotations.ts'
import { InjectionError, type Pod } from '../../../src/inject/pod.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { injected, injectionSettings, podWith } from '../../harness/injection.ts'
import { runs } from '../../harness/seed.ts'

const names = meshNames('mesh.io')
/** Values that can be used, and values that cannot, of each annotation of the table. */
const values: Readonly<Record<string, readonly [right: readonly string[], wrong: readonly string[]]>> = {
  'sidecar./inject': [['true', 'anything'], []],
  'sidecar./interceptionMode': [
    ['REDIRECT', 'TPROXY', 'NONE'],
    ['redirect', '', 'BOTH'],
  ],
  'sidecar./proxyImage': [
    ['a.example:5000/agent:1.2', 'agent@sha256:00'],
    ['', 'a b', 'x"y', '-x'],
  ],
  'sidecar./proxyCPU': [
    ['100m', '2', '1.5', '.5'],
    ['lots', '-1', '1 m', ''],
  ],
  'sidecar./proxyCPULimit': [['2'], ['two']],
  'sidecar./proxyMemory': [
    ['128Mi', '1e9', '1G'],
    ['128MB', '1Mi '],
  ],
  'sidecar./proxyMemoryLimit': [['1Gi'], ['x']],
  'sidecar./logLevel': [
    ['debug', 'warning'],
    ['loud', 'DEBUG', ''],
  ],
  'sidecar./componentLogLevel': [
    ['misc:error', 'a:debug,http:info'],
    ['misc', 'misc:loud', 'a:debug,'],
  ],
  'sidecar./agentLogLevel': [
    ['debug', 'default:info,ca:debug'],
    ['default:', 'a b'],
  ],
  'sidecar./bootstrapOverride': [['my-map'], ['My Map', '../x', '']],
  'sidecar./userVolume': [
    ['{}', '{"v":{"emptyDir":{}}}'],
    ['', '[]', '{"V v":{}}', '{"v":1}', '{'],
  ],
  'sidecar./userVolumeMount': [['{"v":{"mountPath":"/x"}}'], ['x', 'null']],
  'sidecar./capNetBindService': [
    ['true', '0', 'F'],
    ['yes', ''],
  ],
  'sidecar./rewriteAppHTTPProbers': [['false'], ['off']],
  'sidecar./enableCoreDump': [['T'], ['tRue']],
  'traffic.sidecar./includeOutboundIPRanges': [
    ['*', '', '10.0.0.0/8, fd00::/8'],
    ['10.0.0.0', '*,10.0.0.0/8', '10.0.0.0/33'],
  ],
  'traffic.sidecar./excludeOutboundIPRanges': [
    ['', '1.2.3.4/32'],
    ['*', 'x'],
  ],
  'traffic.sidecar./includeInboundPorts': [
    ['*', '', '80,443'],
    ['0', '65536', '80;81', '*,80', '80-90'],
  ],
  'traffic.sidecar./excludeInboundPorts': [
    ['', '22'],
    ['*', 'ssh'],
  ],
  'traffic.sidecar./includeOutboundPorts': [
    ['', '22'],
    ['*', '-1'],
  ],
  'traffic.sidecar./excludeOutboundPorts': [['22, 23'], ['22,,23']],
  'traffic.sidecar./kubevirtInterfaces': [['net1,net2'], ['a b', 'sixteencharacters']],
  'status.sidecar./port': [
    ['0', '15020'],
    ['-1', '70000', 'x', ''],
  ],
  'readiness.status.sidecar./initialDelaySeconds': [
    ['0', '10'],
    ['1s', ''],
  ],
  'readiness.status.sidecar./periodSeconds': [['1'], ['0']],
  'readiness.status.sidecar./failureThreshold': [['30'], ['0', '3.5']],
  'inject./templates': [
    ['sidecar, extra', ''],
    ['a b', '{{x}}'],
  ],
  'prometheus./merge-metrics': [['true'], ['maybe']],
}
const keyIn = (annotation: string, domain: string) => annotation.replace('./', `.${domain}/`)

describe('the annotations of injection', () => {
  it('each have a check, which names annotation, value and reason, in both spellings', () => {
    expect(Object.keys(values).sort()).to.deep.equal([...checkedAnnotations].sort())
    for (const [annotation, [right, wrong]] of Object.entries(values))
      for (const domain of ['mesh.io', 'istio.io']) {
        const key = keyIn(annotation, domain)
        for (const value of right) checkAnnotations({ [key]: value }, names)
        for (const value of wrong)
          expect(() => checkAnnotations({ [key]: value }, names), `${key}: ${value}`)
            .to.throw(InjectionError)
            .with.property('message')
            .that.contains(`annotation ${key}: ${JSON.stringify(value)}: `)
      }
  })

  it('of others are not looked at', () => {
    checkAnnotations({ 'sidecar.example.com/proxyCPU': 'x', 'sidecar.mesh.io/unknown': 'x', interceptionMode: 'x', 'a/b/c': '' }, names)
  })

  it('make injection fail when malformed, those of proxies and overrides too', () => {
    const failure = (annotations: Record<string, string>) => {
      try {
        injected(podWith({ annotations }))
        return 'none'
      } catch (error) {
        expect(error).to.be.instanceOf(InjectionError)
        return (error as Error).message
      }
    }
    expect(failure({ 'proxy.istio.io/config': 'concurrency: many' })).to.match(
      /^annotation proxy.istio.io\/config: "concurrency: many": field concurrency: /,
    )
    expect(failure({ 'proxy.istio.io/config': '[' })).to.match(/^annotation proxy.istio.io\/config: .*not YAML/)
    expect(failure({ 'proxy.mesh.io/overrides': '{"containers":1}' })).to.match(/^annotation proxy.mesh.io\/overrides: .*expected a list/)
    expect(failure({ 'inject.mesh.io/templates': 'other' })).to.equal('there is no template "other"; the configuration of injection has sidecar')
    const includes = 'traffic.sidecar.istio.io/includeInboundPorts'
    expect(failure({ [includes]: '80;90' })).to.equal(`annotation ${includes}: "80;90": is not a port from 1 to 65535`)
    expect(failure({ [includes]: '80,x' })).to.equal(`annotation ${includes}: "80,x": "x" is not a port from 1 to 65535`)
    expect(failure({ 'prometheus.io/port': 'http' })).to.match(/^annotation prometheus.io\/port: "http": is not a port/)
    expect(failure({ 'sidecar.mesh.io/enableCoreDump': 'true' })).to.match(/global.proxy.allowCoreDump permits them/)
  })
})

/** Texts that would be more than a value if they were put into YAML or into a template as they are. */
const hostile = [
  '"\n        privileged: true\n        x: "',
  "'\n  hostNetwork: true\n'",
  '\n    securityContext:\n      privileged: true\n',
  '\nspec:\n  hostPID: true\n',
  '{{ .Values }}',
  '{{ env "PATH" "" }}',
  '}}{{ fail "x" }}',
  '&a [*a,*a]',
  '!!js/function "x"',
  '<<: {privileged: true}',
  '# comment',
  '\\"\\n\\u0000',
  '\u2028privileged: true',
  ': {privileged: true}, x',
  '"],"securityContext":{"privileged":true}',
  '---\nspec: {hostNetwork: true}\n...',
]

/** What a pod has that its author could gain something by, wherever it is. */
function powersOf(pod: Pod): unknown {
  const { spec } = pod
  const { containers = [], initContainers = [], volumes = [] } = spec
  const shown = (list: readonly Record<string, unknown>[]) =>
    list.map((container) => ({ ...container, env: undefined, args: undefined, image: undefined, resources: undefined, readinessProbe: undefined }))
  return { ...spec, containers: shown(containers), initContainers: shown(initContainers), volumes: volumes.map(({ name }) => name) }
}

describe('a hostile author of pods', () => {
  const mounts = [
    'sidecar./userVolume',
    'sidecar./userVolumeMount',
    'sidecar./bootstrapOverride',
    'sidecar./capNetBindService',
    'sidecar./interceptionMode',
  ]
  const usual = powersOf(injected(podWith()))

  it('gains nothing by the value of an annotation of the table: it is refused, or one value', () => {
    for (const annotation of [...checkedAnnotations, 'proxy./config', 'proxy./overrides', 'sidecar./status'])
      for (const domain of ['mesh.io', 'istio.io'])
        for (const text of hostile) {
          let pod: Pod
          try {
            pod = injected(podWith({ annotations: { [keyIn(annotation, domain)]: text } }), injectionSettings())
          } catch (error) {
            expect(error).to.be.instanceOf(InjectionError)
            continue
          }
          expect(powersOf(pod), `${annotation} ${text}`).to.deep.equal(usual)
        }
  })

  it('gains nothing by labels, names, ports or other fields that templates write', () => {
    const labels = ['app', 'version', 'app.kubernetes.io/name', 'app.kubernetes.io/version', 'topology.mesh.io/network', 'topology.istio.io/network']
    const more = ['service.mesh.io/canonical-name', 'service.istio.io/canonical-revision', 'security.istio.io/tlsMode']
    for (const text of hostile) {
      for (const label of [...labels, ...more]) expect(powersOf(injected(podWith({ labels: { [label]: text } }))), label).to.deep.equal(usual)
      expect(powersOf(injected(podWith({ name: text })))).to.deep.equal(usual)
      expect(powersOf(injected(podWith({ generateName: text, name: undefined })))).to.deep.equal(usual)
      const owner = { apiVersion: text, kind: text, name: text, controller: true }
      expect(powersOf(injected(podWith({ ownerReferences: [owner] })))).to.deep.equal(usual)
      expect(powersOf(injected(podWith(), injectionSettings(), { namespace: text }))).to.deep.equal(usual)
      const named = injected(podWith({}, { containers: [{ name: text, image: 'x', ports: [{ name: text, containerPort: 1, protocol: text }] }] }))
      expect(named.spec.containers?.length).to.equal(2)
      expect(named.spec.hostNetwork).to.equal(undefined)
    }
  })

  it('has volumes and mounts of the form that the annotations have, and nothing beside them', () => {
    const annotations = {
      'sidecar.mesh.io/userVolume': JSON.stringify({ extra: { name: 'mesh-token', emptyDir: { medium: '"\nhostPath: {path: /}' } } }),
      'sidecar.mesh.io/userVolumeMount': JSON.stringify({ extra: { mountPath: '/x"\n  y: "', privileged: true, readOnly: true } }),
    }
    const pod = injected(podWith({ annotations }))
    expect(pod.spec.volumes?.at(-1)).to.deep.equal({ name: 'extra', emptyDir: { medium: '"\nhostPath: {path: /}' } })
    const mount = pod.spec.containers?.at(-1)?.volumeMounts as unknown[]
    expect(mount.at(-1)).to.deep.equal({ name: 'extra', mountPath: '/x"\n  y: "', readOnly: true })
  })

  it('gains nothing by random texts either', () => {
    const texts = fc.array(fc.oneof(fc.constantFrom(...hostile, '"', "'", '\n', ' ', '{{', '}}', ':', '-', '\t', '\\', '&', '*'), fc.string()), {
      maxLength: 6,
    })
    const keys = fc.constantFrom(...checkedAnnotations.filter((annotation) => !mounts.includes(annotation)))
    fc.assert(
      fc.property(
        keys,
        texts.map((parts) => parts.join('')),
        texts.map((parts) => parts.join('')),
        (annotation, value, label) => {
          let pod: Pod
          try {
            pod = injected(podWith({ annotations: { [keyIn(annotation, 'mesh.io')]: value }, labels: { app: label, version: value } }))
          } catch (error) {
            expect(error).to.be.instanceOf(InjectionError)
            return
          }
          expect(powersOf(pod)).to.deep.equal(usual)
          expect(parse(stringify(pod))).to.deep.equal(pod)
        },
      ),
      { numRuns: runs(500) },
    )
  })
})
