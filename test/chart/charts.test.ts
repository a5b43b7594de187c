/** The charts as Helm renders them: their objects agree with each other, values are checked, and `manifests/` is made from them. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import fc from 'fast-check'
import { parse } from 'yaml'
import { defaultConfig, defaultValues } from '../../src/inject/default-template.ts'
import { injectorNames } from '../../src/orchestrator/injector-object.ts'
import { settingsNames } from '../../src/orchestrator/settings-object.ts'
import {
  askHelm,
  type Chart,
  chartFolder,
  manifestFiles,
  objectsOf,
  type RenderedObject,
  type Rendering,
  renderChart,
  tryChart,
} from '../harness/charts.ts'
import { runs } from '../harness/seed.ts'
import { askedServices, validatingServices, wantedServices } from '../harness/webhook-selection.ts'

const manifests = new URL('../../manifests/', import.meta.url)
const read = (file: URL | string) => readFileSync(file, 'utf8')
const rendered = (chart: Chart, rendering: Rendering = {}) => objectsOf(renderChart(chart, rendering))
const one = (objects: readonly RenderedObject[], kind: string): RenderedObject => {
  const found = objects.filter((object) => object.kind === kind)
  expect(found.length, kind).to.equal(1)
  return found[0] as RenderedObject
}

describe('the charts', () => {
  for (const chart of ['base', 'meshd', 'gateway'] as const)
    it(`${chart}: Helm finds nothing to say of it`, () => {
      const { status, stdout } = askHelm(['lint', '--strict', '--quiet', chartFolder(chart)])
      expect([status, stdout.trim()]).to.deep.equal([0, ''])
    })

  it('make manifests/, for those who do not use Helm', () => {
    for (const [name, text] of manifestFiles()) expect(read(new URL(name, manifests)), `${name}: run npm run tables`).to.equal(text)
    const others = readdirSync(manifests, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.yaml') && !name.startsWith('crds'))
    expect(others.sort()).to.deep.equal([...manifestFiles().keys()].sort())
  })

  it('take the values of docs/fleet.md for many proxies', () => {
    const [, text = ''] = /`fleet\.yaml`:\n\n```yaml\n([^`]*)```/.exec(read(new URL('../../docs/fleet.md', import.meta.url))) ?? []
    const values = parse(text)
    const objects = rendered('meshd', { values })
    expect(one(objects, 'HorizontalPodAutoscaler').spec).to.include({ minReplicas: 4, maxReplicas: 8 })
    const { containers } = one(objects, 'Deployment').spec.template.spec
    expect(containers[0].env).to.deep.include({ name: 'PILOT_XDS_MAX_PROXIES', value: values.env.PILOT_XDS_MAX_PROXIES })
    expect(containers[0].args).to.include('--keepaliveMaxServerConnectionAge=30m')
  })

  it('have the definitions of all kinds, which stay when the release goes', () => {
    const definitions = rendered('base')
    const files = readdirSync(new URL('crds', manifests)).map((name) => parse(read(new URL(`crds/${name}`, manifests))))
    const plain = definitions.map(({ metadata: { annotations, ...metadata }, ...rest }: RenderedObject & { metadata: { annotations?: object } }) => {
      expect(annotations).to.deep.equal({ 'helm.sh/resource-policy': 'keep' })
      return { ...rest, metadata }
    })
    const byName = (objects: readonly { metadata: { name: string } }[]) => Object.fromEntries(objects.map((object) => [object.metadata.name, object]))
    expect(byName(plain)).to.deep.equal(byName(files))
    expect(rendered('base', { values: { crds: { enabled: false } } })).to.deep.equal([])
  })

  it('install the configuration of injection of this release, and change what values say', () => {
    const { data } = rendered('meshd').find(({ metadata }) => metadata.name === 'mesh-sidecar-injector') as RenderedObject
    expect(parse(data.config)).to.deep.equal(defaultConfig)
    expect(parse(data.values).global.proxy).to.deep.equal(defaultValues.global.proxy)
    const sidecarInjectorWebhook = { policy: 'disabled', templates: { mine: 'metadata: {labels: {a: "b"}}' }, aliases: { both: ['sidecar', 'mine'] } }
    const values = { sidecarInjectorWebhook, global: { network: 'n1', proxy: { logLevel: 'info' } }, cni: { enabled: true } }
    const changed = rendered('meshd', { values }).find(({ kind }) => kind === 'ConfigMap') as RenderedObject
    const templates = { ...defaultConfig.templates, ...sidecarInjectorWebhook.templates }
    expect(parse(changed.data.config)).to.deep.equal({ ...defaultConfig, ...sidecarInjectorWebhook, templates })
    const { global, cni } = parse(changed.data.values)
    expect([global.network, global.proxy.logLevel, global.proxy.image, cni]).to.deep.equal(['n1', 'info', 'mesh/pilot-agent', { enabled: true }])
  })

  it('tell agents where the control plane is, where that is not the usual place', () => {
    const meshOf = (rendering: Rendering) =>
      rendered('meshd', rendering)
        .filter(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.startsWith('mesh') && !metadata.name.includes('injector'))
        .map(({ metadata, data }) => [metadata.name, parse(data.mesh)])
    expect(meshOf({})).to.deep.equal([])
    const at = (discoveryAddress: string, rootNamespace = 'mesh-system') => ({ defaultConfig: { discoveryAddress }, rootNamespace })
    expect(meshOf({ values: { revision: 'canary' } })).to.deep.equal([['mesh-canary', at('meshd-canary.mesh-system.svc:15012')]])
    expect(meshOf({ namespace: 'other' })).to.deep.equal([['mesh', at('meshd.other.svc:15012', 'other')]])
    const mesh = { trustDomain: 'a.example', defaultConfig: { discoveryAddress: 'mine:15012' } }
    expect(meshOf({ values: { meshConfig: mesh } })).to.deep.equal([['mesh', mesh]])
  })

  it('have objects that agree with each other, whatever the values', () => {
    const values = fc.record({
      revision: fc.constantFrom('', 'default', 'canary', '1-20'),
      defaultRevision: fc.constantFrom(null, true, false),
      signer: fc.constantFrom('', 'clusterissuers.cert-manager.io/mesh'),
      autoscaling: fc.record({ enabled: fc.boolean() }),
      status: fc.record({ enabled: fc.boolean() }),
      registration: fc.record({ enabled: fc.boolean() }),
      podDisruptionBudget: fc.record({ enabled: fc.boolean() }),
      validation: fc.record({ enabled: fc.boolean() }),
      sidecarInjectorWebhook: fc.record({ enabled: fc.boolean() }),
    })
    fc.assert(
      fc.property(values, fc.constantFrom('mesh-system', 'other'), (given, namespace) => agree(given, namespace)),
      { numRuns: runs(60) },
    )
  })

  it('write values as they are: large numbers in full, and texts that YAML would read as something else', () => {
    const env = { A: 1_000_000, B: 16_777_216, C: 0.5, D: true, E: 'a: b\nc' }
    const texts = [
      ['A', '1000000'],
      ['B', '16777216'],
      ['C', '0.5'],
      ['D', 'true'],
      ['E', 'a: b\nc'],
    ]
    const own = { env, priorityClassName: '10' }
    const shared = { imagePullSecrets: ['a: b', '7'] }
    for (const [chart, values] of [
      ['meshd', { ...own, global: { ...shared, logging: { level: 'a: debug\n- --b' } } }],
      ['gateway', { ...own, ...shared }],
    ] as const) {
      const objects = rendered(chart, { values })
      const { priorityClassName, imagePullSecrets, containers, serviceAccountName } = one(objects, 'Deployment').spec.template.spec
      const given = containers[0].env.filter(({ name }: { name: string }) => name in env)
      expect(given.map(({ name, value }: { name: string; value: string }) => [name, value])).to.deep.equal(texts)
      const account = objects.find(({ kind, metadata }) => kind === 'ServiceAccount' && metadata.name === serviceAccountName)
      const secrets = imagePullSecrets ?? account?.imagePullSecrets
      expect([priorityClassName, secrets]).to.deep.equal(['10', [{ name: 'a: b' }, { name: '7' }]])
      if (chart === 'meshd') expect(containers[0].args).to.deep.equal(['discovery', '--log_output_level=a: debug\n- --b'])
    }
    const tag = one(rendered('base', { values: { crds: { enabled: false }, revisionTags: { 1: '120' } } }), 'MutatingWebhookConfiguration')
    expect(tag.metadata.labels).to.deep.equal({ app: 'meshd', 'mesh.io/rev': '120', 'mesh.io/tag': '1' })
  })

  it('leave out a variable that values take away', () => {
    const env = { A: '1', B: null, PILOT_ENABLE_STATUS: null }
    const values = { env, status: { enabled: true } }
    const named = (chart: 'meshd' | 'gateway', values: object) =>
      one(rendered(chart, { values }), 'Deployment').spec.template.spec.containers[0].env.map(({ name }: { name: string }) => name)
    for (const [chart, given] of [
      ['meshd', values],
      ['gateway', { env }],
    ] as const) {
      expect(named(chart, given), chart).to.include('A')
      expect(named(chart, given), chart).not.to.include.oneOf(['B', 'PILOT_ENABLE_STATUS'])
    }
  })

  it('write each label and each variable of pods once, whatever values repeat', () => {
    const podLabels = { app: 'meshd', 'sidecar.mesh.io/inject': 'false', team: 'a' }
    const env = { POD_NAME: 'mine', MESHD_ADMIN_SOCKET: '/x', PROXY_CONFIG: '{}', HOST_IP: null, A: 'b' }
    const labels = { 'sidecar.mesh.io/inject': 'false', team: 'a' }
    const pods = [
      one(rendered('meshd', { values: { podLabels, env } }), 'Deployment').spec.template,
      one(rendered('gateway', { release: 'meshd', values: { labels, podLabels, env } }), 'Deployment').spec.template,
    ]
    for (const { metadata, spec } of pods) {
      expect(metadata.labels).to.include(podLabels)
      const variables = spec.containers[0].env as { name: string; value?: string }[]
      const names = variables.map(({ name }) => name)
      expect(names).to.deep.equal([...new Set(names)])
      expect(variables).to.deep.include.members(['POD_NAME', 'PROXY_CONFIG', 'A'].map((name) => ({ name, value: env[name as 'A'] })))
      expect(names).to.include('POD_NAMESPACE').and.not.to.include('HOST_IP')
    }
  })

  it('refuse values that mean nothing, with the name of the value', () => {
    for (const [chart, values, said] of [
      ['meshd', { revison: 'canary' }, /revison/],
      ['meshd', { revision: 'Canary_1' }, /\/revision'?:.*pattern/s],
      ['meshd', { replicaCount: 'two' }, /\/replicaCount'?: got string, want integer/],
      ['meshd', { autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 2 } }, /autoscaling.maxReplicas is less than autoscaling.minReplicas/],
      ['meshd', { signer: 'mesh' }, /\/signer'?:.*pattern/s],
      ['meshd', { env: { 'A B': '1' } }, /invalid propertyName 'A B'/],
      ['meshd', { env: { A: { b: 'c' } } }, /\/env\/A'?: got object/],
      ['meshd', { sidecarInjectorWebhook: { policy: 'on' } }, /\/sidecarInjectorWebhook\/policy/],
      ['meshd', { global: { proxy: { image: '' } } }, /\/global\/proxy\/image/],
      // What the chart and its template of injection read as maps.
      ['meshd', { global: 'abc' }, /\/global'?: got string, want object/],
      ...['multiCluster', 'proxy', 'proxy_init', 'sts', 'logging'].map(
        (name) => ['meshd', { global: { [name]: 'abc' } }, new RegExp(`/global/${name}'?: got string, want object`)] as const,
      ),
      ['meshd', { global: { multiCluster: { clusterName: 7 } } }, /\/global\/multiCluster\/clusterName'?: got number, want string/],
      ['meshd', { cni: 'on' }, /\/cni'?: got string, want object/],
      ['base', { revisionTags: { prod: 'Canary' } }, /\/revisionTags\/prod/],
      ['base', { revisionTags: { Prod: 'canary' } }, /invalid propertyName 'Prod'/],
      ['gateway', { service: { ports: [{ name: 'http', port: 70_000 }] } }, /\/service\/ports\/0\/port/],
      ['gateway', { service: { type: 'Balancer' } }, /\/service\/type/],
      ['gateway', { replicas: 3 }, /replicas/],
      // What the API server would refuse.
      ['gateway', { name: 'UPPER' }, /\/name'?:.*pattern/s],
      ['gateway', { name: '1st' }, /\/name'?:.*pattern/s],
      ['gateway', { labels: { team: 'x y' } }, /\/labels\/team'?:.*pattern/s],
      ['gateway', { podLabels: { team: 'x'.repeat(64) } }, /\/podLabels\/team'?:.*maxLength/s],
      ['gateway', { service: { type: 'ClusterIP', externalTrafficPolicy: 'Local' } }, /\/service\/externalTrafficPolicy/],
      // What selectors and injection go by.
      ['meshd', { podLabels: { app: 'other' } }, /podLabels: the chart sets app to "meshd"/],
      ['meshd', { podLabels: { 'mesh.io/rev': 'canary' } }, /podLabels: the chart sets mesh.io\/rev to "default"/],
      ['meshd', { podLabels: { 'sidecar.mesh.io/inject': 'true' } }, /podLabels: the chart sets sidecar.mesh.io\/inject to "false"/],
      ['gateway', { podLabels: { app: 'other' } }, /podLabels: the chart sets app to "gateway"/],
      ['gateway', { labels: { team: 'a' }, podLabels: { team: 'b' } }, /podLabels: the chart sets team to "a"/],
      ['gateway', { labels: { 'sidecar.mesh.io/inject': 'true' } }, /labels: the chart sets sidecar.mesh.io\/inject to "false"/],
    ] as const) {
      const { status, stderr } = tryChart(chart, { values })
      expect(status, JSON.stringify(values)).not.to.equal(0)
      expect(stderr, JSON.stringify(values)).to.match(said)
    }
  })
})

/** What is true of the objects of the chart meshd whatever its values are. */
function agree(values: Given, namespace: string): void {
  const objects = rendered('meshd', { values, namespace })
  const suffix = ['', 'default'].includes(values.revision) ? '' : `-${values.revision}`
  const name = `meshd${suffix}`
  const keys = objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
  expect(new Set(keys).size, `${keys}`).to.equal(keys.length)
  // Objects of other releases have other names.
  const wide = suffix + (namespace === 'mesh-system' ? '' : `-${namespace}`)
  for (const { kind, metadata } of objects) {
    const isWide = metadata.namespace === undefined
    expect(metadata.name.endsWith(isWide && !kind.startsWith('Validating') ? wide : suffix) || kind.startsWith('Validating'), metadata.name).to.equal(
      true,
    )
    if (!isWide) expect(metadata.namespace).to.equal(namespace)
  }
  const deployment = one(objects, 'Deployment')
  const service = one(objects, 'Service')
  const { labels } = deployment.spec.template.metadata
  expect(labels).to.include({ ...service.spec.selector, ...deployment.spec.selector.matchLabels, 'sidecar.mesh.io/inject': 'false' })
  expect(service.spec.selector['mesh.io/rev']).to.equal(values.revision || 'default')
  expect([service.metadata.name, deployment.metadata.name, deployment.spec.template.spec.serviceAccountName]).to.deep.equal([name, name, name])
  const operator = `meshd-operator${suffix}`
  expect(objects.filter(({ kind }) => kind === 'ServiceAccount').map(({ metadata }) => metadata.name)).to.deep.equal([name, operator])
  // The Role of operators is for the account that the commands ask a token of, which is bound to nothing (below).
  expect(objects.filter(({ kind, metadata }) => kind === 'Role' && metadata.name === operator)[0]?.rules).to.deep.include({
    ...{ apiGroups: [''], resources: ['serviceaccounts/token'], verbs: ['create'], resourceNames: [operator] },
  })
  // Each webhook leads to a port of the Service, which the container has.
  const ports = new Map<number, number>(
    service.spec.ports.map((port: { port: number; targetPort?: number }) => [port.port, port.targetPort ?? port.port]),
  )
  const container = deployment.spec.template.spec.containers[0]
  const open = container.ports.map(({ containerPort }: { containerPort: number }) => containerPort)
  for (const webhook of objects.flatMap(({ webhooks = [] }) => webhooks)) {
    const { service: called } = webhook.clientConfig
    expect([called.name, called.namespace, open.includes(ports.get(called.port))]).to.deep.equal([name, namespace, true])
  }
  // The roles are bound to the account, and permit what discovery of this revision reads.
  const bindings = objects.filter(({ kind }) => kind.endsWith('Binding'))
  for (const { roleRef, subjects } of bindings) {
    expect(keys).to.include(`${roleRef.kind}/${roleRef.name}`)
    expect(subjects).to.deep.equal([{ kind: 'ServiceAccount', name, namespace }])
  }
  expect(bindings.length).to.equal((values.signer === '' ? 2 : 4) + (values.status.enabled ? 1 : 0) + (values.registration.enabled ? 2 : 0))
  const named = objects.flatMap(({ rules = [] }) => rules).flatMap(({ resourceNames = [] }) => resourceNames)
  expect(named).to.include.members([...settingsNames(values.revision), ...injectorNames(values.revision), `${name}-${namespace}`])
  const env = Object.fromEntries(container.env.map((each: { name: string; value?: string }) => [each.name, each.value]))
  expect(env.REVISION).to.equal(suffix === '' ? undefined : values.revision)
  const configurations = objects.filter(({ kind }) => kind === 'ValidatingWebhookConfiguration')
  if (values.validation.enabled) expect(env.VALIDATION_WEBHOOK_CONFIG_NAME ?? `meshd-${namespace}`).to.equal(`${name}-${namespace}`)
  const serves = values.defaultRevision ?? suffix === ''
  expect(configurations.map(({ metadata }) => metadata.name)).to.deep.equal(
    values.validation.enabled && (serves || suffix !== '') ? [`${name}-${namespace}`] : [],
  )
  expect(env.ORCH_SIGNER ?? '').to.equal(values.signer)
  expect(env.PILOT_ENABLE_STATUS === 'true').to.equal(values.status.enabled)
  expect(env.PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION === 'true').to.equal(values.registration.enabled)
  // What scales replicas says how many there are.
  expect(deployment.spec.replicas === undefined).to.equal(values.autoscaling.enabled)
  for (const { spec } of objects.filter(({ kind }) => kind === 'HorizontalPodAutoscaler')) expect(spec.scaleTargetRef.name).to.equal(name)
  for (const { spec } of objects.filter(({ kind }) => kind === 'PodDisruptionBudget')) expect(labels).to.include(spec.selector.matchLabels)
}

interface Given {
  readonly revision: string
  readonly defaultRevision: boolean | null
  readonly signer: string
  readonly autoscaling: { readonly enabled: boolean }
  readonly status: { readonly enabled: boolean }
  readonly registration: { readonly enabled: boolean }
  readonly validation: { readonly enabled: boolean }
}

describe('webhooks of revisions and tags', () => {
  const injection = (rendering: Rendering) => rendered('meshd', { ...rendering, template: 'templates/injection.yaml' })
  const value = (...values: string[]) => fc.constantFrom(undefined, ...values)
  const present = (labels: Readonly<Record<string, string | undefined>>) =>
    Object.fromEntries(Object.entries(labels).filter((entry): entry is [string, string] => entry[1] !== undefined))
  const revision = value('default', 'canary', 'prod', 'test', 'nobody')
  const namespaces = fc
    .record({
      'mesh-injection': value('enabled', 'disabled'),
      'istio-injection': value('enabled', 'disabled'),
      'mesh.io/rev': revision,
      'istio.io/rev': revision,
    })
    .map(present)
  const inject = value('true', 'false', 'maybe')
  const pods = fc
    .record({ 'sidecar.mesh.io/inject': inject, 'sidecar.istio.io/inject': inject, 'mesh.io/rev': revision, 'istio.io/rev': revision })
    .map(present)

  for (const { what, configurations, served, byDefault } of [
    {
      what: 'the only control plane',
      configurations: () => injection({}),
      served: { default: 'meshd' },
      byDefault: ['meshd'],
    },
    {
      what: 'two revisions and two tags',
      configurations: () => [
        ...injection({}),
        ...injection({ values: { revision: 'canary' } }),
        ...rendered('base', { values: { crds: { enabled: false }, revisionTags: { prod: 'default', test: 'canary' } } }),
      ],
      served: { default: 'meshd', canary: 'meshd-canary', prod: 'meshd', test: 'meshd-canary' },
      byDefault: ['meshd'],
    },
    {
      what: 'a revision alone, which serves those who name none',
      configurations: () => injection({ values: { revision: 'canary', defaultRevision: true } }),
      served: { canary: 'meshd-canary' },
      byDefault: ['meshd-canary'],
    },
    {
      what: 'a revision with the tag default',
      configurations: () => [
        ...injection({ values: { revision: 'canary' } }),
        ...rendered('base', { values: { crds: { enabled: false }, revisionTags: { default: 'canary' } } }),
      ],
      served: { canary: 'meshd-canary', default: 'meshd-canary' },
      byDefault: ['meshd-canary'],
    },
  ])
    it(`${what}: a pod is asked about once, at the revision that its labels name`, () => {
      const all = configurations()
      const services = new Map(Object.entries(served))
      fc.assert(
        fc.property(namespaces, pods, (namespace, pod) => {
          expect(askedServices(all, namespace, pod)).to.deep.equal(wantedServices(services, byDefault, namespace, pod))
        }),
        { numRuns: runs(3000) },
      )
      // No pod of the orchestrator waits for discovery.
      const system = { 'kubernetes.io/metadata.name': 'kube-system', 'mesh-injection': 'enabled', 'mesh.io/rev': 'default' }
      expect(askedServices(all, system, { 'sidecar.mesh.io/inject': 'true' })).to.deep.equal([])
    })
})

describe('validating webhooks of revisions', () => {
  it('ask about an object at the revision that it names, and about others at the one that serves those', () => {
    const validation = (values: object) => rendered('meshd', { values, template: 'templates/webhooks.yaml' })
    const all = [...validation({}), ...validation({ revision: 'canary' })]
    const alone = validation({ revision: 'canary', defaultRevision: true })
    for (const [labels, ofAll, ofOne] of [
      [{}, ['meshd'], ['meshd-canary']],
      [{ 'mesh.io/rev': 'canary' }, ['meshd-canary'], ['meshd-canary']],
      [{ 'istio.io/rev': 'canary' }, ['meshd-canary'], ['meshd-canary']],
      [{ 'mesh.io/rev': 'canary', 'istio.io/rev': 'canary' }, ['meshd-canary'], ['meshd-canary']],
      [{ 'mesh.io/rev': 'other', 'istio.io/rev': 'canary' }, [], []],
      [{ 'mesh.io/rev': 'other' }, [], []],
    ] as const)
      expect([validatingServices(all, labels), validatingServices(alone, labels)], JSON.stringify(labels)).to.deep.equal([ofAll, ofOne])
    // A control plane that serves nobody has none.
    expect(objectsOf(renderChart('meshd', { values: { defaultRevision: false } })).some(({ kind }) => kind.startsWith('Validating'))).to.equal(false)
  })
})

describe('a gateway of the chart', () => {
  it('has a Service that leads to its pods, and labels that Gateways select', () => {
    for (const [rendering, mesh] of [
      [{ release: 'mesh-ingressgateway', namespace: 'edge' }, 'ingressgateway'],
      [{ release: 'edge', namespace: 'edge', values: { labels: { mesh: 'mine', tier: 'a' } } }, 'mine'],
    ] as const) {
      const objects = rendered('gateway', rendering)
      const [deployment, service] = [one(objects, 'Deployment'), one(objects, 'Service')]
      const { labels } = deployment.spec.template.metadata
      expect(labels).to.include({ ...service.spec.selector, ...deployment.spec.selector.matchLabels, mesh })
      expect(new Set(objects.map(({ metadata }) => metadata.name))).to.deep.equal(new Set([rendering.release]))
      expect(new Set(objects.map(({ metadata }) => metadata.namespace))).to.deep.equal(new Set(['edge']))
    }
  })

  it('belongs to the revision that values say', () => {
    const addressOf = (values: object) => {
      const { env } = one(rendered('gateway', { values }), 'Deployment').spec.template.spec.containers[0]
      return JSON.parse(env.find(({ name }: { name: string }) => name === 'PROXY_CONFIG').value).discoveryAddress
    }
    expect(
      [{}, { revision: 'canary' }, { revision: 'default', discoveryNamespace: 'other' }, { proxyConfig: { discoveryAddress: 'a:1' } }].map(addressOf),
    ).to.deep.equal(['meshd.mesh-system.svc:15012', 'meshd-canary.mesh-system.svc:15012', 'meshd.other.svc:15012', 'a:1'])
  })
})
