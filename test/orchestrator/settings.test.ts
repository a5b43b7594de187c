/** The mesh configuration and the networks of a real cluster's ConfigMap (docs/operation.md, C15). */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { MeshConfig } from '../../src/config/mesh-config.ts'
import { TestCluster } from '../harness/cluster.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { until } from '../harness/until.ts'

interface Origins {
  readonly inForce: { readonly source: string; readonly place: string }
  readonly overruled: readonly { readonly source: string; readonly place: string }[]
}

const configMap = (name: string, data: Readonly<Record<string, string>>) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'mesh-system' }, data })

describe('the settings of a real cluster', () => {
  let cluster: TestCluster
  const started: LocalDiscovery[] = []
  const start = async (env: Record<string, string> = {}, orchconfig = cluster.adminConfig): Promise<LocalDiscovery> => {
    const discovery = new LocalDiscovery({}, { PILOT_DEBOUNCE_AFTER: '10ms', ...env })
    started.push(discovery)
    const files = { meshConfig: join(discovery.dir, 'mesh-config'), networksConfig: join(discovery.dir, 'networks') }
    await discovery.start({ registries: ['Orchestrator'], orchconfig, ...files })
    return discovery
  }
  const isReady = (discovery: LocalDiscovery) => until('the service to be ready', async () => (await discovery.ready()).status === 200)
  const mesh = (discovery: LocalDiscovery) => discovery.service.supervisor.ask<MeshConfig>('push-queue', 'mesh')
  const settings = (discovery: LocalDiscovery) => discovery.debug<{ mesh: Origins; networks: Origins & { networks?: object } }>('networkz')
  const trustDomain = (discovery: LocalDiscovery, name: string) =>
    until(`the trust domain ${name}`, async () => (await mesh(discovery)).trustDomain === name)
  const logs = (discovery: LocalDiscovery, line: string) => until(line, () => discovery.log().includes(line))

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: mesh-system}')
  })
  after(async () => {
    for (const each of started) await each.dispose()
    await cluster?.dispose()
  })

  it('are the defaults without a ConfigMap, and those of the ConfigMap while it is there, live', async () => {
    const discovery = await start()
    await isReady(discovery)
    expect([(await mesh(discovery)).trustDomain, (await settings(discovery)).mesh.inForce]).to.deep.equal([
      'cluster.local',
      { source: '', place: '' },
    ])
    cluster.apply(configMap('istio', { mesh: 'trustDomain: alias.example' }))
    await trustDomain(discovery, 'alias.example')
    cluster.apply(
      configMap('mesh', { mesh: 'trustDomain: own.example', meshNetworks: 'networks: {east: {gateways: [{address: 10.1.1.1, port: 15443}]}}' }),
    )
    await trustDomain(discovery, 'own.example')
    cluster.apply(
      configMap('mesh', { mesh: 'trustDomain: next.example', meshNetworks: 'networks: {west: {gateways: [{address: 10.1.1.1, port: 15443}]}}' }),
    )
    await trustDomain(discovery, 'next.example')
    const place = { source: 'orchestrator', place: 'ConfigMap mesh-system/mesh' }
    await until('the networks', async () => 'west' in ((await settings(discovery)).networks.networks ?? {}))
    const { mesh: ofMesh, networks } = await settings(discovery)
    expect([ofMesh.inForce, networks.inForce]).to.deep.equal([place, place])
    await logs(discovery, 'mesh configuration in force: that of orchestrator (ConfigMap mesh-system/mesh)')
  })

  it('stay what they were when the ConfigMap is invalid, loses its key or is deleted, also when actors are started again', async () => {
    const [discovery] = started as [LocalDiscovery]
    cluster.apply(configMap('mesh', { mesh: 'accessLogEncoding: XML' }))
    await logs(discovery, 'mesh configuration ConfigMap mesh-system/mesh: field accessLogEncoding: ')
    expect(discovery.log()).to.match(/ConfigMap mesh-system\/mesh: field accessLogEncoding: .*; the settings in force stay/)
    expect((await mesh(discovery)).trustDomain).to.equal('next.example')
    cluster.kubectl(['delete', 'configmap', '-n', 'mesh-system', 'istio'])
    cluster.kubectl(['delete', 'configmap', '-n', 'mesh-system', 'mesh'])
    await logs(discovery, 'mesh configuration ConfigMap mesh-system/mesh: the object is gone; the settings in force stay')
    const before = discovery.state('source/orchestrator').restarts
    discovery.service.supervisor.kill('source/orchestrator')
    await until('the watcher to run again', () => discovery.state('source/orchestrator').restarts > before)
    cluster.apply('apiVersion: v1\nkind: Service\nmetadata: {name: marker, namespace: default}\nspec: {ports: [{name: http, port: 80}]}')
    const hosts = async () => (await discovery.debug<{ hostname: string }[]>('registryz')).map(({ hostname }) => hostname)
    await until('what the new watcher has seen', async () => (await hosts()).includes('marker.default.svc.cluster.local'))
    expect((await mesh(discovery)).trustDomain).to.equal('next.example')
    cluster.apply(configMap('mesh', { mesh: 'trustDomain: again.example' }))
    await trustDomain(discovery, 'again.example')
  })

  it('name further sources, which come and go with them, and give way to the files as soon as these exist', async () => {
    const [discovery] = started as [LocalDiscovery]
    const sources = () => discovery.service.supervisor.states().filter(({ name }) => name.startsWith('source/fs'))
    const extra = `trustDomain: again.example\nconfigSources: [{address: "fs://${discovery.dir}-extra"}, {address: "fs://${discovery.dir}/below"}]`
    cluster.apply(configMap('mesh', { mesh: extra }))
    await until('the source', () => sources().length === 1)
    expect(discovery.log()).to.contain(
      `mesh configuration ConfigMap mesh-system/mesh: field configSources: fs://${discovery.dir}/below lies within --configDir`,
    )
    writeFileSync(join(discovery.dir, 'mesh-config'), 'trustDomain: file.example')
    await trustDomain(discovery, 'file.example')
    await until('the end of the source', () => sources().length === 0)
    const { inForce, overruled } = (await settings(discovery)).mesh
    expect([inForce.source, overruled.map(({ place }) => place)]).to.deep.equal(['files', ['ConfigMap mesh-system/mesh']])
    cluster.apply(configMap('mesh', { mesh: 'trustDomain: again.example' }))
  })

  it('are those of the revision, and are waited for while they exist and cannot be used', async () => {
    cluster.apply(configMap('mesh-canary', { mesh: 'trustDomain: [' }))
    const discovery = await start({ REVISION: 'canary' })
    await until('the reason', async () => (await discovery.ready()).text.includes('mesh configuration ConfigMap mesh-system/mesh-canary: '))
    expect((await discovery.ready()).status).to.equal(503)
    cluster.apply(configMap('mesh-canary', { mesh: 'trustDomain: canary.example' }))
    await isReady(discovery)
    expect((await mesh(discovery)).trustDomain).to.equal('canary.example')
    // The variable is that of this process.
    await discovery.dispose()
    started.pop()
  })

  it('need a role that permits these ConfigMaps alone', async () => {
    const kinds = (list: string) =>
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: limited}\nrules: [{apiGroups: ["", discovery.k8s.io], resources: [${list}], verbs: [list, watch]}]`
    const bind = (kind: string, name: string, rest: string) =>
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: ${kind}Binding\nmetadata: {name: ${name}${rest}}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ${kind}, name: ${name}}\nsubjects: [{kind: ServiceAccount, name: limited, namespace: mesh-system}]`
    cluster.apply(
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: limited, namespace: mesh-system}',
      kinds('namespaces, nodes, services, pods, endpointslices'),
      bind('ClusterRole', 'limited', ''),
    )
    const discovery = await start({}, cluster.tokenConfig('limited', cluster.kubectl(['create', 'token', '-n', 'mesh-system', 'limited']).trim()))
    const refusal = 'the role of this service account does not permit "watch" of "configmaps mesh-system/mesh"'
    await until('the refusal', async () => (await discovery.ready()).text.includes(refusal))
    cluster.apply(
      'apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: settings, namespace: mesh-system}\nrules: [{apiGroups: [""], resources: [configmaps], resourceNames: [mesh, istio], verbs: [list, watch]}]',
      bind('Role', 'settings', ', namespace: mesh-system'),
    )
    await trustDomain(discovery, 'again.example')
    await isReady(discovery)
  })
})
