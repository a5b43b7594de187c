import { expect } from 'chai'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { templateLibrary } from '../../../actors/discovery/webhooks/template-library.ts'
import { readInjectionConfiguration } from '../../../src/inject/configuration.ts'
import { defaultConfig } from '../../../src/inject/default-template.ts'
import { injectPod } from '../../../src/inject/inject-pod.ts'
import { jsonPatch } from '../../../src/inject/patch.ts'
import { InjectionError, type Pod } from '../../../src/inject/pod.ts'
import { containerOf, injected, injectionConfiguration, injectionSettings, podWith, variablesOf } from '../../harness/injection.ts'
import { cpuMs } from '../../harness/own-time.ts'
import { runs } from '../../harness/seed.ts'

const native = injectionSettings({ hasNativeSidecars: true })
const namesOf = (list: readonly { readonly name: string }[] | undefined) => list?.map(({ name }) => name)

describe('the pod with the template of this release', () => {
  const agentContext = {
    ...{ allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true, runAsUser: 1337, runAsGroup: 1337, runAsNonRoot: true },
    ...{ seccompProfile: { type: 'RuntimeDefault' }, capabilities: { drop: ['ALL'] } },
  }

  it('runs the agent without any privilege, and only the container that makes rules with what these need', () => {
    for (const settings of [injectionSettings(), native]) {
      const pod = injected(podWith(), settings)
      expect(containerOf(pod, 'mesh-proxy').securityContext).to.deep.equal(agentContext)
      expect(containerOf(pod, 'mesh-init').securityContext).to.deep.equal({
        ...{ allowPrivilegeEscalation: false, privileged: false, seccompProfile: { type: 'RuntimeDefault' }, runAsUser: 0, runAsGroup: 0 },
        ...{ runAsNonRoot: false, readOnlyRootFilesystem: false, capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] } },
      })
      expect(pod.spec.securityContext).to.deep.equal({ fsGroup: 1337 })
      for (const field of ['hostNetwork', 'hostPID', 'hostIPC', 'serviceAccountName', 'automountServiceAccountToken', 'shareProcessNamespace'])
        expect(pod.spec).not.to.have.property(field)
      expect(pod.spec.volumes?.flatMap((volume) => Object.keys(volume).filter((key) => key !== 'name')).sort()).to.deep.equal([
        ...['configMap', 'downwardAPI', 'emptyDir', 'emptyDir', 'projected'],
      ])
      expect(JSON.stringify(pod)).not.to.match(/hostPath|"privileged":true/)
    }
  })

  it('checks the rules of a network plugin as the user of the agent', () => {
    const settings = injectionSettings({ configuration: injectionConfiguration({}, { cni: { enabled: true } }) })
    const pod = injected(podWith({}, { initContainers: [{ name: 'own', image: 'x' }] }), settings)
    expect(namesOf(pod.spec.initContainers)).to.deep.equal(['mesh-validation', 'own'])
    expect(containerOf(pod, 'mesh-validation').securityContext).to.deep.equal(agentContext)
    expect(containerOf(pod, 'mesh-validation').args?.slice(-2)).to.deep.equal(['--run-validation', '--skip-rule-apply'])
  })

  it('has the capability that a mode or an annotation needs, and has no rules where nothing is captured', () => {
    const context = (annotations: object) => containerOf(injected(podWith({ annotations })), 'mesh-proxy').securityContext
    expect(context({ 'sidecar.istio.io/interceptionMode': 'TPROXY' })).to.deep.include({
      ...{ runAsUser: 0, runAsNonRoot: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] } },
    })
    expect(context({ 'sidecar.mesh.io/capNetBindService': 'True' })).to.deep.include({ capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } })
    const none = injected(podWith({ annotations: { 'sidecar.mesh.io/interceptionMode': 'NONE' } }))
    expect(none.spec.initContainers ?? []).to.deep.equal([])
    expect(variablesOf(containerOf(none, 'mesh-proxy')).MESH_META_INTERCEPTION_MODE).to.equal('NONE')
  })

  it('gives the agent what it reads', () => {
    const annotations = { 'proxy.istio.io/config': 'proxyMetadata: {MESH_META_DNS_CAPTURE: "true"}\nconcurrency: 3\n' }
    const pod = injected(podWith({ annotations, labels: { app: 'web', version: 'v2' } }), injectionSettings({ revision: 'canary' }))
    const agent = containerOf(pod, 'mesh-proxy')
    const { PROXY_CONFIG, ...others } = variablesOf(agent)
    expect(JSON.parse(PROXY_CONFIG ?? '')).to.deep.equal({ proxyMetadata: { MESH_META_DNS_CAPTURE: 'true' }, concurrency: 3 })
    expect(others).to.deep.equal({
      ...{ JWT_POLICY: 'third-party-jwt', PILOT_CERT_PROVIDER: 'meshd', TRUST_DOMAIN: 'cluster.local', MESH_META_DNS_CAPTURE: 'true' },
      ...{ POD_NAME: undefined, POD_NAMESPACE: undefined, INSTANCE_IP: undefined, SERVICE_ACCOUNT: undefined, HOST_IP: undefined },
      ...{ CANONICAL_SERVICE: 'web', CANONICAL_REVISION: 'v2', MESH_META_APP_CONTAINERS: 'app', MESH_META_CLUSTER_ID: 'Orchestrator' },
      ...{ MESH_META_POD_PORTS: '[{"containerPort":8080,"name":"http"}]', MESH_META_INTERCEPTION_MODE: 'REDIRECT', MESH_META_WORKLOAD_NAME: 'web' },
      MESH_META_OWNER: 'kubernetes://apis/v1/namespaces/shop/pods/web',
    })
    expect(agent.args?.slice(-2)).to.deep.equal(['--concurrency', '3'])
    expect(pod.metadata.labels).to.deep.equal({
      ...{ app: 'web', version: 'v2', 'security.mesh.io/tlsMode': 'mesh', 'mesh.io/rev': 'canary' },
      ...{ 'service.mesh.io/canonical-name': 'web', 'service.mesh.io/canonical-revision': 'v2' },
    })
    expect(JSON.parse(pod.metadata.annotations?.['sidecar.mesh.io/status'] ?? '')).to.deep.equal({
      ...{ initContainers: ['mesh-init'], containers: ['mesh-proxy'], imagePullSecrets: [], revision: 'canary' },
      ...{ fsGroup: 1337 },
      volumes: ['mesh-envoy', 'mesh-data', 'mesh-podinfo', 'mesh-token', 'meshd-ca-cert'],
    })
  })

  it('takes redirection, resources, levels and probes from annotations', () => {
    const annotations = {
      ...{ 'traffic.sidecar.istio.io/includeOutboundIPRanges': '10.0.0.0/8', 'traffic.sidecar.mesh.io/excludeOutboundIPRanges': '10.1.0.0/16' },
      ...{ 'traffic.sidecar.mesh.io/includeInboundPorts': '80', 'traffic.sidecar.mesh.io/excludeInboundPorts': '22,15021' },
      ...{ 'traffic.sidecar.mesh.io/includeOutboundPorts': '9', 'traffic.sidecar.mesh.io/excludeOutboundPorts': '53' },
      ...{ 'traffic.sidecar.mesh.io/kubevirtInterfaces': 'net1', 'status.sidecar.mesh.io/port': '15999' },
      ...{ 'sidecar.mesh.io/proxyCPU': '1500m', 'sidecar.mesh.io/proxyMemoryLimit': '2Gi', 'sidecar.mesh.io/proxyImage': 'other/agent:2' },
      ...{ 'sidecar.mesh.io/logLevel': 'debug', 'sidecar.mesh.io/componentLogLevel': 'http:trace', 'sidecar.mesh.io/agentLogLevel': 'ca:debug' },
      ...{ 'readiness.status.sidecar.mesh.io/periodSeconds': '7', 'sidecar.mesh.io/bootstrapOverride': 'my-map' },
    }
    const pod = injected(podWith({ annotations }))
    expect(containerOf(pod, 'mesh-init').args).to.deep.equal([
      ...['mesh-iptables', '-p', '15001', '-z', '15006', '-u', '1337', '-m', 'REDIRECT', '-i', '10.0.0.0/8', '-x', '10.1.0.0/16', '-b', '80'],
      ...['-d', '22,15021,15090,15999', '-q', '9', '-o', '53', '-k', 'net1'],
    ])
    const agent = containerOf(pod, 'mesh-proxy')
    expect(agent.image).to.equal('other/agent:2')
    expect(agent.resources).to.deep.equal({ requests: { cpu: '1500m' }, limits: { memory: '2Gi' } })
    expect(agent.args?.join(' ')).to.match(/--proxyLogLevel debug --proxyComponentLogLevel http:trace --log_output_level ca:debug --concurrency 2$/)
    expect(agent.readinessProbe).to.deep.include({ periodSeconds: 7 })
    expect(variablesOf(agent).MESH_BOOTSTRAP_OVERRIDE).to.equal('/etc/mesh/custom-bootstrap/custom_bootstrap.json')
    expect(pod.spec.volumes).to.deep.include({ name: 'custom-bootstrap-volume', configMap: { name: 'my-map' } })
  })

  it('has a place for core dumps where the installation permits their privileged container', () => {
    const configuration = injectionConfiguration({}, { global: { proxy: { allowCoreDump: true } } })
    const pod = injected(podWith({ annotations: { 'sidecar.mesh.io/enableCoreDump': 'true' } }), injectionSettings({ configuration }))
    expect(namesOf(pod.spec.initContainers)).to.deep.equal(['mesh-init', 'enable-core-dump'])
  })

  it('has no group for volumes with the flag off, and keeps one that is set', () => {
    expect(injected(podWith(), injectionSettings({ setsFsGroup: false })).spec).not.to.have.property('securityContext')
    expect(injected(podWith({}, { securityContext: { fsGroup: 5, runAsUser: 6 } })).spec.securityContext).to.deep.equal({ fsGroup: 5, runAsUser: 6 })
  })
})

describe('the order of containers', () => {
  const own = {
    initContainers: [{ name: 'first', image: 'x' }],
    containers: [
      { name: 'a', image: 'x' },
      { name: 'b', image: 'x' },
    ],
  }
  const order = (settings = injectionSettings(), annotations = {}) => {
    const { spec } = injected(podWith({ annotations }, own), settings)
    return [namesOf(spec.initContainers), namesOf(spec.containers)]
  }

  it('has the agent last, and first where the application is held until it starts', () => {
    expect(order()).to.deep.equal([
      ['first', 'mesh-init'],
      ['a', 'b', 'mesh-proxy'],
    ])
    const held = { 'proxy.mesh.io/config': '{"holdApplicationUntilProxyStarts": true}' }
    expect(order(injectionSettings(), held)).to.deep.equal([
      ['first', 'mesh-init'],
      ['mesh-proxy', 'a', 'b'],
    ])
    expect(order(injectionSettings({ defaultConfig: { holdApplicationUntilProxyStarts: true } }))[1]).to.deep.equal(['mesh-proxy', 'a', 'b'])
    const agent = containerOf(injected(podWith({ annotations: held }, own)), 'mesh-proxy')
    expect(agent.lifecycle).to.deep.equal({ postStart: { exec: { command: ['pilot-agent', 'wait'] } } })
  })

  it('has rules and agent before all others where the server has native sidecar containers', () => {
    expect(order(native)).to.deep.equal([
      ['mesh-init', 'mesh-proxy', 'first'],
      ['a', 'b'],
    ])
    const agent = containerOf(injected(podWith({}, own), native), 'mesh-proxy')
    expect(agent).to.deep.include({ restartPolicy: 'Always' })
    expect(agent.startupProbe).to.deep.include({ httpGet: { path: '/healthz/ready', port: 15021 } })
  })
})

describe('templates of users', () => {
  const templates = {
    base: 'spec:\n  containers:\n  - name: one\n    image: base\n    env: [{name: A, value: base}]\n',
    more: 'spec:\n  containers:\n  - name: one\n    image: more\n    env: [{name: B, value: {{ .DeploymentMeta.Name | quote }}}]\n  - name: app\n    tty: true\n',
    old: 'metadata:\n  labels:\n    was: {{ annotation .ObjectMeta `sidecar.istio.io/proxyCPU` "none" | quote }}\n    set: "{{ isset .ObjectMeta.Annotations `sidecar.mesh.io/proxyCPU` }}"\n    value: {{ index .ObjectMeta.Annotations `sidecar.istio.io/proxyCPU` | quote }}\n',
  }
  const settings = injectionSettings({
    configuration: injectionConfiguration({ templates, aliases: { both: ['base', 'more'] }, defaultTemplates: ['base'] }),
  })
  const asked = (list: string) => injected(podWith({ annotations: { 'inject.istio.io/templates': list } }), settings)

  it('are the default ones, those of an annotation, or those that an alias stands for, merged in order', () => {
    expect(containerOf(injected(podWith(), settings), 'one')).to.deep.equal({ name: 'one', image: 'base', env: [{ name: 'A', value: 'base' }] })
    for (const list of ['both', 'base, more']) {
      const pod = asked(list)
      const variables = variablesOf(containerOf(pod, 'one'))
      expect([containerOf(pod, 'one').image, variables]).to.deep.equal(['more', { A: 'base', B: 'web' }])
      expect(containerOf(pod, 'app')).to.deep.include({ image: 'shop/web:1', tty: true })
    }
    expect(containerOf(asked('more,base'), 'one').image).to.equal('base')
  })

  it('have the flags and numbers that the orchestrator reads in YAML, as the values have', () => {
    const sidecar = 'spec: {hostPID: {{ if .Values.off }}yes{{ else }}no{{ end }}, volumes: [{name: v, secret: {secretName: s, defaultMode: 0400}}]}'
    const given = { ...defaultConfig, templates: { sidecar } }
    const read = readInjectionConfiguration({ config: stringify(given), values: 'off: off' }, templateLibrary())
    if ('error' in read) throw new Error(read.error)
    const { spec } = injected(podWith(), injectionSettings({ configuration: read.configuration }))
    expect([spec.hostPID, spec.volumes]).to.deep.equal([false, [{ name: 'v', secret: { secretName: 's', defaultMode: 0o400 } }]])
  })

  it('render texts with their own data and functions', () => {
    const withTemplate = (sidecar: string, text: string, values: object = {}) =>
      injected(
        podWith({ annotations: { text } }),
        injectionSettings({ configuration: injectionConfiguration({ templates: { sidecar } }, { ...values, text }) }),
      )
    const template = 'metadata: {labels: {was: {{ render (annotation .ObjectMeta "text" "") | quote }}}}'
    const labelOf = (text: string, values = {}) => withTemplate(template, text, values).metadata.labels?.was
    expect(labelOf('{{ .ObjectMeta.Name }}-{{ .Values.zone | upper }}', { zone: 'a' })).to.equal('web-A')
    expect(labelOf('{{ render .Values.inner }}{{ $x := set .Values "inner" "2" }}!', { inner: '{{ .Values.zone }}', zone: 'b' })).to.equal('b!')
    expect(() => labelOf('\n{{ none }}')).to.throw(
      InjectionError,
      'template sidecar: line 1: error calling render: text: line 2: function "none" not defined',
    )
    expect(() => labelOf('{{ fail "no" }}')).to.throw(InjectionError, /template sidecar: line 1: error calling render: text: line 1: .*no/)
    expect(() => labelOf('{{ render .Values.text }}')).to.throw(InjectionError, 'texts render each other deeper than 10 levels')
    expect(() => withTemplate('{{ range until 200 }}{{ render "x" }}{{ end }}', '')).to.throw(InjectionError, 'more than 100 texts are rendered')
    const costly = () =>
      expect(() => withTemplate('{{ range until 90 }}{{ render (repeat 100000 "{{1}}") }}{{ end }}', '')).to.throw(
        InjectionError,
        /more than 20000000/,
      )
    expect(cpuMs(costly)).to.be.below(3000)
  })

  it('and settings that cannot be used are told with the annotation as it is written', () => {
    for (const domain of ['istio.io', 'mesh.io']) {
      const failure = (annotations: object) => expect(() => injected(podWith({ annotations })))
      failure({ [`proxy.${domain}/config`]: 'concurrency: x' }).to.throw(InjectionError, `annotation proxy.${domain}/config: `)
      failure({ [`sidecar.${domain}/inject`]: 'no' }).to.throw(InjectionError, `skipped: annotation sidecar.${domain}/inject forbids it`)
      const again = { [`sidecar.${domain}/status`]: '{}', [`proxy.${domain}/overrides`]: 'x' }
      failure(again).to.throw(InjectionError, `annotation proxy.${domain}/overrides: `)
    }
  })

  it('find annotations in both spellings', () => {
    for (const key of ['sidecar.istio.io/proxyCPU', 'sidecar.mesh.io/proxyCPU']) {
      const pod = injected(podWith({ annotations: { 'inject.mesh.io/templates': 'old', [key]: '100m' } }), settings)
      expect(pod.metadata.labels).to.deep.include({ was: '100m', set: 'true', value: '100m' })
    }
  })

  it('may use functions that change maps, and still see the pod as it is', () => {
    const sidecar =
      '{{ $x := dict "a" 1 }}{{ $_ := set $x "b" 2 }}{{ $m := merge (dict) $x }}metadata:\n  labels:\n    sum: "{{ len $m }}"\n    cpu: {{ index .ObjectMeta.Annotations `sidecar.istio.io/proxyCPU` | quote }}\n    ports: {{ structToJSON (index .Spec.Containers 0).Ports | quote }}\n'
    const configuration = injectionConfiguration({ templates: { sidecar } })
    const pod = injected(podWith({ annotations: { 'sidecar.mesh.io/proxyCPU': '5' } }), injectionSettings({ configuration }))
    expect(pod.metadata.labels).to.deep.include({ sum: '2', cpu: '5', ports: '[{"containerPort":8080,"name":"http"}]' })
  })

  it('that fail, or whose output is no part of a pod, name themselves', () => {
    const failure = (sidecar: string) => {
      try {
        injected(podWith(), injectionSettings({ configuration: injectionConfiguration({ templates: { sidecar } }) }))
        return 'none'
      } catch (error) {
        return (error as Error).message
      }
    }
    expect(failure('a\n{{ fail "no reason" }}')).to.match(/^template sidecar: line 2: .*no reason/)
    expect(failure('- a')).to.match(/^template sidecar: its output is not part of a pod: .*expected a mapping/)
    expect(failure('spec: {containers: [{image: x}]}')).to.match(/spec.containers\[0\].name: expected text, but it is missing/)
    expect(failure('a: 1\n---\nb: 1')).to.match(/more than one document/)
    expect(failure('spec: {containers: [{name: app, $patch: merge}]}')).to.match(
      /^template sidecar: its output cannot be merged into the pod: spec.contai/,
    )
    expect(failure('spec: {hostNetwork: "yes"}')).to.equal(
      'template sidecar: its output is not part of a pod: spec.hostNetwork: expected true or false',
    )
  })

  it('may replace lists, delete elements and remove fields, also by the other name of an injected container', () => {
    const specWith = (second: string, pod = podWith(), settings: Parameters<typeof injectionSettings>[0] = {}) => {
      const configuration = injectionConfiguration({ templates: { ...defaultConfig.templates, second }, defaultTemplates: ['sidecar', 'second'] })
      return injected(pod, injectionSettings({ ...settings, configuration })).spec
    }
    expect(specWith('spec: {containers: [{$patch: replace}, {name: z, image: z}]}').containers).to.deep.equal([{ name: 'z', image: 'z' }])
    expect(specWith('spec: {initContainers: [{name: istio-init, $patch: delete}]}').initContainers).to.deep.equal([])
    const isNative = { hasNativeSidecars: true }
    expect(namesOf(specWith('spec: {containers: [{name: istio-proxy, $patch: delete}]}', podWith(), isNative).initContainers)).to.deep.equal([
      'mesh-init',
    ])
    const bare = specWith('spec: {volumes: null, imagePullSecrets: null}', podWith({}, { imagePullSecrets: [{ name: 'own' }] }))
    expect([bare.volumes, bare.imagePullSecrets]).to.deep.equal([undefined, undefined])
  })

  it('cannot share the name of a volume or a container with the pod where the two cannot be one', () => {
    const refused = (spec: object, settings = injectionSettings()) => expect(() => injected(podWith({}, spec), settings))
    for (const name of ['mesh-envoy', 'mesh-token'])
      refused({ volumes: [{ name, configMap: { name: 'own' } }] }).to.throw(
        InjectionError,
        `volume ${name}: the pod and the templates have a volume of this name, of other types (configMap, ${name === 'mesh-envoy' ? 'emptyDir' : 'projected'}): rename that of the pod`,
      )
    for (const name of ['mesh-init', 'istio-init'])
      for (const settings of [injectionSettings(), native])
        refused({ containers: [{ name, image: 'x' }] }, settings).to.throw(
          InjectionError,
          `container ${name}: one of containers and one of initContainers have this name, of which templates inject one: rename that of the pod`,
        )
    expect(namesOf(injected(podWith({}, { volumes: [{ name: 'mesh-envoy', emptyDir: {} }] })).spec.volumes)).to.include('mesh-envoy')
    // What is wrong without injection is left to the API server.
    expect(namesOf(injected(podWith({}, { volumes: [{ name: 'own', configMap: {}, emptyDir: {} }] })).spec.volumes)).to.include('own')
  })
})

describe('containers of users with the name of the agent', () => {
  const spec = (name: string, more = {}) => ({
    containers: [
      { name: 'app', image: 'x' },
      { name, image: 'auto', resources: { limits: { cpu: '2' } }, ...more },
    ],
  })

  it('keep what they set, and get the image where it is auto; the alias of the name stays', () => {
    for (const name of ['mesh-proxy', 'istio-proxy'])
      for (const settings of [injectionSettings(), native]) {
        const pod = injected(podWith({}, spec(name)), settings)
        const agent = containerOf(pod, name)
        expect([agent.image, agent.resources]).to.deep.equal([
          'mesh/pilot-agent',
          { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '1Gi', cpu: '2' } },
        ])
        expect(
          [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])].filter((container) => container.name.endsWith('-proxy')),
        ).to.have.length(1)
        expect(JSON.parse(pod.metadata.annotations?.['proxy.mesh.io/overrides'] ?? '')).to.deep.equal({ containers: [spec(name).containers[1]] })
      }
    expect(containerOf(injected(podWith({}, spec('mesh-proxy', { image: 'own' }))), 'mesh-proxy').image).to.equal('own')
  })

  it('run as another user, whose traffic is then not redirected', () => {
    const pod = injected(podWith({}, spec('istio-proxy', { securityContext: { runAsUser: 2001 } })))
    expect(containerOf(pod, 'istio-proxy').securityContext).to.deep.include({ runAsUser: 2001, runAsGroup: 1337, capabilities: { drop: ['ALL'] } })
    expect(containerOf(pod, 'mesh-init').args?.slice(5, 7)).to.deep.equal(['-u', '2001'])
  })

  it('are what an annotation with overrides says', () => {
    const annotations = { 'proxy.istio.io/overrides': JSON.stringify({ containers: [{ name: 'mesh-proxy', tty: true }] }) }
    expect(containerOf(injected(podWith({ annotations })), 'mesh-proxy')).to.deep.include({ tty: true, image: 'mesh/pilot-agent' })
  })
})

describe('probes and metrics', () => {
  const probes = {
    readinessProbe: { httpGet: { path: '/ok', port: 'http', httpHeaders: [{ name: 'Host', value: 'a' }] }, timeoutSeconds: 3, periodSeconds: 4 },
    livenessProbe: { tcpSocket: { port: 9000 } },
    startupProbe: { exec: { command: ['x'] } },
  }
  const spec = { containers: [{ name: 'app', image: 'x', ports: [{ name: 'http', containerPort: 8080 }], ...probes }] }

  it('of the application are made by the agent', () => {
    const pod = injected(podWith({}, spec))
    const { readinessProbe, livenessProbe, startupProbe } = containerOf(pod, 'app')
    expect(readinessProbe).to.deep.equal({ httpGet: { path: '/app-health/app/readyz', port: 15020 }, timeoutSeconds: 3, periodSeconds: 4 })
    expect(livenessProbe).to.deep.equal({ httpGet: { path: '/app-health/app/livez', port: 15020 } })
    expect(startupProbe).to.deep.equal(probes.startupProbe)
    expect(JSON.parse(variablesOf(containerOf(pod, 'mesh-proxy')).MESH_ORCH_APP_PROBERS ?? '')).to.deep.equal({
      '/app-health/app/readyz': { httpGet: { ...probes.readinessProbe.httpGet, port: 8080 }, timeoutSeconds: 3 },
      '/app-health/app/livez': { tcpSocket: { port: 9000 } },
    })
  })

  it('stay with the annotation, the value, without a port, and of other hosts', () => {
    const kept = (pod: Pod) => expect(containerOf(pod, 'app')).to.deep.include(probes)
    kept(injected(podWith({ annotations: { 'sidecar.istio.io/rewriteAppHTTPProbers': 'false' } }, spec)))
    kept(injected(podWith({ annotations: { 'status.sidecar.mesh.io/port': '0' } }, spec)))
    const configuration = injectionConfiguration({}, { sidecarInjectorWebhook: { rewriteAppHTTPProbe: false } })
    kept(injected(podWith({}, spec), injectionSettings({ configuration })))
    const odd = { readinessProbe: { httpGet: { path: '/', port: 'none' } }, livenessProbe: { tcpSocket: { port: 1, host: 'db' } } }
    expect(containerOf(injected(podWith({}, { containers: [{ name: 'app', image: 'x', ...odd }] })), 'app')).to.deep.include(odd)
  })

  it('of the application are scraped at the agent', () => {
    const own = { 'prometheus.io/port': '9102', 'prometheus.io/path': '/m', 'prometheus.io/scrape': 'true' }
    const merged = { 'prometheus.io/port': '15020', 'prometheus.io/path': '/stats/prometheus', 'prometheus.io/scrape': 'true' }
    const pod = injected(podWith({ annotations: own }))
    expect(pod.metadata.annotations).to.deep.include(merged)
    expect(variablesOf(containerOf(pod, 'mesh-proxy')).MESH_METRICS_ANNOTATIONS).to.equal('{"scrape":"true","path":"/m","port":"9102"}')
    expect(injected(podWith()).metadata.annotations).to.deep.include(merged)
    const off = injected(podWith({ annotations: { ...own, 'prometheus.istio.io/merge-metrics': 'false' } }))
    expect(off.metadata.annotations).to.deep.include(own)
    expect(injected(podWith({ annotations: { 'prometheus.io/scrape': 'false' } })).metadata.annotations).not.to.have.property('prometheus.io/port')
    const mesh = { ...injectionSettings().mesh, enablePrometheusMerge: false }
    expect(injected(podWith(), injectionSettings({ mesh })).metadata.annotations).not.to.have.property('prometheus.io/port')
  })
})

describe('what a caller of the webhook and the configuration add', () => {
  it('is variables of the agent, its network and annotations that are absent', () => {
    const configuration = injectionConfiguration({ injectedAnnotations: { 'a/b': 'c', 'sidecar.istio.io/proxyCPU': '1' } })
    const pod = injected(podWith({ annotations: { 'sidecar.mesh.io/proxyCPU': '2' } }), injectionSettings({ configuration }), {
      variables: { MESH_META_CLUSTER_ID: 'east', MESH_META_NETWORK: 'net1', REGION: 'r' },
    })
    expect(variablesOf(containerOf(pod, 'mesh-proxy'))).to.deep.include({ MESH_META_CLUSTER_ID: 'east', MESH_META_NETWORK: 'net1', REGION: 'r' })
    expect(pod.metadata.labels).to.deep.include({ 'topology.mesh.io/network': 'net1' })
    expect(pod.metadata.annotations).to.deep.include({ 'a/b': 'c', 'sidecar.mesh.io/proxyCPU': '2' })
    expect(pod.metadata.annotations).not.to.have.property('sidecar.istio.io/proxyCPU')
  })

  it('is spelled with the alias in a container whose variables are', () => {
    const sidecar = 'spec: {containers: [{name: istio-proxy, image: x, env: [{name: ISTIO_META_CLUSTER_ID, value: a}]}]}'
    const settings = injectionSettings({ configuration: injectionConfiguration({ templates: { sidecar } }) })
    const pod = injected(podWith({ annotations: { 'prometheus.io/port': '1' } }), settings, { variables: { MESH_META_CLUSTER_ID: 'east' } })
    expect(variablesOf(containerOf(pod, 'istio-proxy'))).to.deep.equal({
      ...{ ISTIO_META_CLUSTER_ID: 'east', ISTIO_PROMETHEUS_ANNOTATIONS: '{"port":"1"}' },
    })
  })
})

describe('the workload of a pod', () => {
  const workload = (metadata: object) => variablesOf(containerOf(injected(podWith(metadata)), 'mesh-proxy'))
  const owned = (kind: string, name: string, labels = {}) => ({ labels, ownerReferences: [{ apiVersion: 'x/v1', kind, name, controller: true }] })

  it('is what controls it, behind ReplicaSets and Jobs', () => {
    const nameOf = (metadata: object) => {
      const { MESH_META_WORKLOAD_NAME: name, MESH_META_OWNER: owner } = workload(metadata)
      return [name, owner]
    }
    const path = (group: string, kind: string, name: string) => `kubernetes://apis/${group}/namespaces/shop/${kind}/${name}`
    expect(nameOf(owned('ReplicaSet', 'web-5d8f', { 'pod-template-hash': '5d8f' }))).to.deep.equal(['web', path('apps/v1', 'deployments', 'web')])
    expect(nameOf(owned('ReplicaSet', 'web-5d8f'))).to.deep.equal(['web-5d8f', path('x/v1', 'replicasets', 'web-5d8f')])
    expect(nameOf(owned('Job', 'nightly-28123456'))).to.deep.equal(['nightly', path('batch/v1', 'cronjobs', 'nightly')])
    expect(nameOf(owned('Job', 'once'))).to.deep.equal(['once', path('x/v1', 'jobs', 'once')])
    expect(nameOf(owned('StatefulSet', 'db'))).to.deep.equal(['db', path('x/v1', 'statefulsets', 'db')])
    expect(nameOf({ name: undefined, generateName: 'solo-' })).to.deep.equal(['solo', path('v1', 'pods', 'solo')])
  })
})

describe('injection of an injected pod', () => {
  const probe = fc.constantFrom(
    { httpGet: { path: '/', port: 80 }, periodSeconds: 5 },
    { httpGet: { path: '/x', port: 'http', scheme: 'HTTPS' }, timeoutSeconds: 2 },
    { tcpSocket: { port: 81 } },
    { grpc: { port: 82, service: 's' } },
    { exec: { command: ['true'] } },
  )
  const container = (name: fc.Arbitrary<string>) =>
    fc.record(
      {
        name,
        image: fc.constantFrom('auto', 'own:1'),
        readinessProbe: probe,
        livenessProbe: probe,
        startupProbe: probe,
        ports: fc.constantFrom([{ name: 'http', containerPort: 80 }]),
      },
      { requiredKeys: ['name', 'image'] },
    )
  const lists = (names: readonly string[]) => fc.uniqueArray(container(fc.constantFrom(...names)), { selector: ({ name }) => name, maxLength: 4 })
  const annotations = fc.record(
    {
      'prometheus.io/port': fc.constantFrom('9000', '15020'),
      'prometheus.io/path': fc.constantFrom('/m', '/stats/prometheus'),
      'prometheus.io/scrape': fc.constantFrom('true', 'false'),
      'sidecar.istio.io/proxyCPU': fc.constant('1'),
      'sidecar.mesh.io/rewriteAppHTTPProbers': fc.constantFrom('true', 'false'),
      'proxy.istio.io/config': fc.constantFrom('holdApplicationUntilProxyStarts: true', 'statusPort: 15030'),
      'sidecar.mesh.io/interceptionMode': fc.constantFrom('NONE', 'TPROXY'),
      'sidecar.istio.io/userVolume': fc.constant('{"data":{"emptyDir":{}}}'),
    },
    { requiredKeys: [] },
  )
  const pods = fc.record(
    {
      annotations,
      containers: fc.oneof(lists(['a', 'b', 'mesh-proxy']), lists(['a', 'b', 'istio-proxy'])),
      initContainers: lists(['first', 'second', 'mesh-init']),
      volumes: fc.constantFrom(undefined, ...['data', 'own', 'mesh-data'].map((name) => [{ name, emptyDir: {} }])),
      imagePullSecrets: fc.constantFrom(undefined, [{ name: 'regcred' }]),
      securityContext: fc.constantFrom({}, { fsGroup: 5 }, { fsGroup: 1337 }, { runAsUser: 6 }),
    },
    { requiredKeys: ['annotations', 'containers'] },
  )
  const values = { global: { imagePullSecrets: ['regcred'], network: 'n' } }
  /** Templates of users, beside that of this release. */
  const customs = [
    'metadata: {labels: {x: z}}\nspec: {containers: [{name: extra, image: e}], initContainers: [{name: early, image: e}], volumes: [{name: more, emptyDir: {}}]}',
    'spec: {securityContext: {fsGroup: 9}, dnsConfig: {searches: [a]}, hostAliases: [{ip: 1.2.3.4, hostnames: [h]}]}',
    'metadata: {annotations: {seen: {{ toJSON .Spec.SecurityContext | quote }}, volumes: "{{ len .Spec.Volumes }}"}}',
    'spec:\n  containers:{{ range .Spec.Containers }}\n  - {name: {{ .Name }}, env: [{name: SEEN, value: x}]}{{ end }}',
    'spec: {containers: [{name: istio-proxy, env: [{name: EXTRA, value: "1"}]}], volumes: [{name: own, $patch: delete}]}',
  ]
  const configurations = [
    injectionConfiguration({}, values),
    ...customs.map((custom) =>
      injectionConfiguration({ templates: { ...defaultConfig.templates, custom }, defaultTemplates: ['sidecar', 'custom'] }),
    ),
    ...customs.map((custom) =>
      injectionConfiguration({ templates: { ...defaultConfig.templates, custom }, defaultTemplates: ['custom', 'sidecar'] }),
    ),
  ]
  const settingsOf = fc.record({
    hasNativeSidecars: fc.boolean(),
    setsFsGroup: fc.boolean(),
    configuration: fc.constantFrom(injectionConfiguration(), ...configurations),
  })

  it('changes nothing, whatever the pod, the templates and the settings have, and no two containers have one name', () => {
    fc.assert(
      fc.property(pods, settingsOf, ({ annotations, ...spec }, given) => {
        const own = new Set(spec.containers.map(({ name }) => name))
        const initContainers = spec.initContainers?.filter(({ name }) => !own.has(name))
        const settings = injectionSettings(given)
        const once = injected(podWith({ annotations }, { ...spec, ...(initContainers && { initContainers }) }), settings)
        expect(injected(once, settings)).to.deep.equal(once)
        const names = [...(namesOf(once.spec.initContainers) ?? []), ...(namesOf(once.spec.containers) ?? [])]
        expect(names).to.deep.equal([...new Set(names)])
      }),
      { numRuns: runs(1000) },
    )
  })

  it('shows templates the pod without the group of its volumes that the first one set', () => {
    const sidecar = `${defaultConfig.templates.sidecar}\n{{ if and .Spec.SecurityContext .Spec.SecurityContext.FSGroup }}{{ fail "fsGroup" }}{{ end }}`
    const settings = injectionSettings({ configuration: injectionConfiguration({ templates: { sidecar } }) })
    // The API server writes an empty security context where there is none: the two are told apart nowhere.
    const none = injected(podWith({}, {}), settings)
    expect(injected(podWith({}, { securityContext: {} }), settings)).to.deep.equal(none)
    for (const spec of [{}, { securityContext: { runAsUser: 6 } }]) {
      const once = injected(podWith({}, spec), settings)
      expect(injected(once, settings)).to.deep.equal(once)
      const without = injected(podWith({}, spec), injectionSettings({ setsFsGroup: false }))
      expect(injected(once, injectionSettings({ setsFsGroup: false }))).to.deep.equal(without)
    }
  })

  it('keeps volumes and secrets of the pod whose names a template has too', () => {
    const values = { global: { imagePullSecrets: ['regcred'] } }
    const own = { volumes: [{ name: 'mesh-data', emptyDir: { medium: 'Memory' } }], imagePullSecrets: [{ name: 'regcred' }] }
    const once = injected(podWith({}, own), injectionSettings({ configuration: injectionConfiguration({}, values) }))
    const configuration = injectionConfiguration({ templates: { sidecar: 'spec: {containers: [{name: other, image: x}]}' } })
    expect(injected(once, injectionSettings({ configuration })).spec).to.deep.include(own)
  })

  it('adds what a second template says of the agent to the one that is there, in either spelling', () => {
    for (const name of ['mesh-proxy', 'istio-proxy'])
      for (const hasNativeSidecars of [false, true]) {
        const templates = { ...defaultConfig.templates, custom: `spec: {containers: [{name: ${name}, env: [{name: EXTRA, value: "1"}]}]}` }
        const configuration = injectionConfiguration({ templates, defaultTemplates: ['sidecar', 'custom'] })
        const { spec } = injected(podWith(), injectionSettings({ hasNativeSidecars, configuration }))
        const own = [namesOf(spec.initContainers), namesOf(spec.containers)]
        expect(own).to.deep.equal(hasNativeSidecars ? [['mesh-init', 'mesh-proxy'], ['app']] : [['mesh-init'], ['app', 'mesh-proxy']])
        expect(variablesOf(containerOf({ metadata: {}, spec }, 'mesh-proxy'))).to.include({ EXTRA: '1', MESH_META_APP_CONTAINERS: 'app' })
      }
  })

  it('moves the agent when the server has native sidecar containers now, and takes a new template whole', () => {
    const once = injected(podWith({}, { containers: [{ name: 'app', image: 'x', readinessProbe: { tcpSocket: { port: 1 } } }] }))
    expect(injected(once, native)).to.deep.equal(
      injected(podWith({}, { containers: [{ name: 'app', image: 'x', readinessProbe: { tcpSocket: { port: 1 } } }] }), native),
    )
    const configuration = injectionConfiguration({ templates: { sidecar: 'spec: {containers: [{name: other, image: x}]}' } })
    const again = injected(once, injectionSettings({ configuration }))
    expect([namesOf(again.spec.containers)?.sort(), again.spec.initContainers, again.spec.volumes]).to.deep.equal([
      ['app', 'other'],
      undefined,
      undefined,
    ])
  })

  it('by two revisions is that of the last one, as while one takes over what names none', () => {
    const [stable, canary] = ['', 'canary'].map((revision) => injectionSettings({ revision }))
    expect(injected(injected(podWith(), stable), canary)).to.deep.equal(injected(podWith(), canary))
  })

  it('is a patch of what differs', () => {
    const pod = podWith({ creationTimestamp: null, labels: null })
    const result = injectPod({ pod, namespace: 'shop' }, injectionSettings())
    if ('skipped' in result) throw new Error(result.skipped)
    const patch = jsonPatch(pod, result.pod)
    expect(patch.some(({ path }) => path === '/metadata/annotations')).to.equal(true)
    expect(patch.some(({ path }) => path.startsWith('/metadata/creationTimestamp'))).to.equal(false)
    expect(jsonPatch(result.pod, result.pod)).to.deep.equal([])
  })
})

describe('a pod that would cost much', () => {
  const many = (count: number) => Array.from({ length: count }, () => ({ name: 'a' }))

  it('has each template once, however often it names it', () => {
    const templates = { sidecar: 'metadata: {labels: {last: sidecar}}', other: 'metadata: {labels: {last: other}}' }
    const settings = injectionSettings({ configuration: injectionConfiguration({ templates }) })
    const last = (names: string) => injected(podWith({ annotations: { 'inject.mesh.io/templates': names } }), settings).metadata.labels?.last
    expect([last('sidecar,other'), last('sidecar,other,sidecar')]).to.deep.equal(['other', 'sidecar'])
    const names = Array.from({ length: 8000 }, () => 'sidecar').join(',')
    expect(cpuMs(() => injected(podWith({ annotations: { 'inject.mesh.io/templates': names } })))).to.be.lessThan(3000)
  })

  it('is refused when it has more values than any pod needs, before anything is done with it', () => {
    const inject = (spec: object) => () => injected(podWith({}, spec))
    for (const spec of [{ containers: many(200_000) }, { volumes: many(200_000) }])
      expect(cpuMs(() => expect(inject(spec)).to.throw(InjectionError, /^the pod has more than 20000 values$/))).to.be.lessThan(1500)
    expect(inject({ volumes: many(9000) })).not.to.throw()
    expect(inject({ containers: many(250), initContainers: many(251) })).to.throw(InjectionError, /^the pod has more than 500 containers$/)
    expect(inject({ containers: many(500) })).not.to.throw()
    const settings = { annotations: { 'proxy.mesh.io/config': '['.repeat(16_385) } }
    expect(() => injected(podWith(settings))).to.throw(InjectionError, /^annotation proxy.mesh.io\/config: .* is longer than 16384 characters$/)
  })
})
