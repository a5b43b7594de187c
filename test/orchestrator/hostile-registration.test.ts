/**
 * Tenants that may write the WorkloadGroups and WorkloadEntries of their namespace, and have tokens of its accounts, do what they can: the machines of
 * another namespace are registered all the same (docs/registration.md, R12).
 */
import { expect } from 'chai'
import { status } from '../../src/model/status-codes.ts'
import { TestCluster } from '../harness/cluster.ts'
import { manifest } from '../harness/cluster-mesh.ts'
import { establish, meshDefinitions } from '../harness/mesh-definitions.ts'
import { SecuredDiscovery } from '../harness/secured-discovery.ts'
import { until } from '../harness/until.ts'
import type { XdsClient } from '../harness/xds-client.ts'

interface Entry {
  readonly metadata: { readonly name: string; readonly uid: string; readonly annotations?: Readonly<Record<string, string>> }
}

describe('hostile tenants and registration', () => {
  let cluster: TestCluster
  let discovery: SecuredDiscovery
  const tokens = new Map<string, string>()

  const group = (namespace: string, spec: object = {}) =>
    JSON.stringify({
      ...{ apiVersion: 'networking.mesh.io/v1', kind: 'WorkloadGroup', metadata: { name: 'vms', namespace } },
      spec: { template: { serviceAccount: 'default' }, ...spec },
    })
  const entries = (namespace: string) =>
    (JSON.parse(cluster.kubectl(['get', 'workloadentries.networking.mesh.io', '-n', namespace, '-o', 'json'])) as { items: Entry[] }).items
  /** A machine of a namespace connects. */
  const join = (namespace: string, address: string): XdsClient => {
    const token = tokens.get(namespace) ?? cluster.kubectl(['create', 'token', 'default', '-n', namespace, '--audience', 'mesh-ca']).trim()
    tokens.set(namespace, token)
    const metadata = { NAMESPACE: namespace, SERVICE_ACCOUNT: 'default', AUTO_REGISTER_GROUP: 'vms' }
    const node = { id: `sidecar~${address}~vm-${address}.${namespace}~${namespace}.svc.cluster.local`, metadata }
    return discovery.open({ authorization: `Bearer ${token}` }, undefined, node)
  }
  const registered = (namespace: string, address: string) =>
    until(`the entry of ${address}`, () => entries(namespace).some(({ metadata }) => metadata.name === `vms-${address}`))

  before(async () => {
    cluster = await TestCluster.start()
    cluster.stopControllers()
    establish(cluster, ...meshDefinitions().values())
    cluster.apply(...['mesh-system', 'shop', 'bad'].map((name) => `{apiVersion: v1, kind: Namespace, metadata: {name: ${name}}}`))
    const accounts = ['shop', 'bad'].map((namespace) => `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: ${namespace}}}`)
    cluster.apply(...accounts, group('shop'), group('bad'))
    // An entry has the labels of its group twice: it is larger than what the store takes, and the group is not.
    const labels = Object.fromEntries(Array.from({ length: 8000 }, (_, number) => [`label-${number}`.padEnd(60, 'x'), 'y'.repeat(60)]))
    cluster.kubectl(['replace', '-f', '-'], group('bad', { metadata: { labels } }))
    const kubeconfig = cluster.roleConfig()
    cluster.apply(manifest('optional/registration.yaml'))
    const env = { PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION: 'true', PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: 'true' }
    discovery = await SecuredDiscovery.start(kubeconfig, env, ['--configDir', '', '--log_output_level', 'default:info,authn:debug,wle:debug'])
  })
  after(async () => {
    await discovery?.dispose()
    await cluster?.dispose()
  })

  it('have machines of their own refused alone whose entries the store does not take', async () => {
    const large = join('bad', '10.8.0.1')
    await until('the refusal', () => large.closed !== undefined)
    expect([large.closed?.code, large.closed?.details.includes('request is too large')]).to.deep.equal([status.failedPrecondition, true])
    join('shop', '10.9.0.1')
    await registered('shop', '10.9.0.1')
    discovery.service.output.lacks(/WorkloadEntries cannot be written/)
  })

  it('who say of a thousand entries that this replica keeps them delay no machine of others until all of these are marked', async () => {
    const keeper = entries('shop')[0]?.metadata.annotations?.['mesh.io/workloadController'] ?? ''
    const annotations = { 'mesh.io/autoRegistrationGroup': 'vms', 'mesh.io/workloadController': keeper }
    const items = Array.from({ length: 1000 }, (_, number) => ({
      ...{ apiVersion: 'networking.mesh.io/v1', kind: 'WorkloadEntry', metadata: { name: `e${number}`, namespace: 'bad', annotations } },
      spec: { address: '10.8.1.1' },
    }))
    cluster.kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
    join('shop', '10.9.0.2')
    await discovery.service.output.says(/WorkloadEntry shop\/vms-10\.9\.0\.2: created: done/)
    const [, after = ''] = discovery.service.output.soFar().split(/new connection sidecar~10\.9\.0\.2~/)
    const [between = ''] = after.split('WorkloadEntry shop/vms-10.9.0.2: created')
    expect(between.match(/marked as disconnected: done/g)?.length ?? 0, 'calls for others meanwhile').to.be.below(100)
  })
})
