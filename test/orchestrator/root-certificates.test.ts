/** The ConfigMap with the root certificates in each namespace of a real cluster, kept by the leader alone (docs/certificates.md, B1 to B4). */
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import type { AuthorityStatus } from '../../protocols/messages/authority-status.ts'
import { fingerprintOf } from '../../src/identity/pem.ts'
import { TestCluster } from '../harness/cluster.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const name = 'mesh-ca-root-cert'

describe('root certificates in namespaces', function () {
  // A lease that nobody renews belongs to its holder for 30 s.
  this.timeout(400_000)
  let cluster: TestCluster
  const services: Service[] = []

  const discovery = async (): Promise<Service> => {
    const flags = ['--registries', 'Orchestrator', '--orchconfig', cluster.kubeconfig, '--writers', '1']
    const made = new Service({ flags: [...flags, '--secureGRPCAddr', `127.0.0.1:${await freePort()}`] })
    services.push(made)
    await made.start()
    return made
  }
  const namespaces = () => cluster.kubectl(['get', 'namespaces', '-o', 'name']).trim().split('\n').sort()
  /** The ConfigMaps by namespace: the fingerprints of the roots, and the label. */
  const held = (): Record<string, string> => {
    const text = cluster.kubectl(['get', 'configmaps', '-A', '--field-selector', `metadata.name=${name}`, '-o', 'json'])
    const { items } = JSON.parse(text) as {
      items: { metadata: { namespace: string; labels?: Record<string, string> }; data?: Record<string, string> }[]
    }
    return Object.fromEntries(
      items.map(({ metadata, data }) => {
        const roots = data?.['root-cert.pem']?.match(/-----BEGIN[\s\S]*?-----END CERTIFICATE-----\n?/g) ?? []
        return [`namespace/${metadata.namespace}`, `${metadata.labels?.['mesh.io/config']} ${roots.map(fingerprintOf).sort()}`]
      }),
    )
  }
  /** The same of what a service hands out. */
  const wanted = async ({ env }: Service): Promise<string> => {
    const { roots } = JSON.parse((await runCommand(['ca', 'show', '-o', 'json'], env)).stdout) as AuthorityStatus
    const sent = roots.flatMap(({ uses, id }) => (uses.includes('sent to workloads') ? [id] : []))
    return `true ${sent.sort()}`
  }
  const all = (what: string, value: string, except: readonly string[] = []) =>
    until(what, () => {
      const found = held()
      const expected = namespaces().filter((namespace) => !except.includes(namespace))
      return expected.every((namespace) => found[namespace] === value) && Object.keys(found).length === expected.length
    })
  const written = async (of: Service) => /^pilot_root_configmap_writes_total\{outcome="written"\} (\d+)$/m.exec(await of.metrics())?.[1]

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: mesh-system}')
  })
  after(async () => {
    for (const each of services) {
      if (each.pid > 0) process.kill(each.pid, 'SIGCONT')
      await each.dispose()
    }
    await cluster?.dispose()
  })

  it('are there in all active namespaces and in new ones, and again when somebody edits or removes them', async () => {
    const one = await discovery()
    const roots = await wanted(one)
    await all('all namespaces to have them', roots)
    cluster.kubectl(['create', 'namespace', 'late'])
    await until('a new namespace to have them', () => held()['namespace/late'] === roots)
    cluster.kubectl(['delete', 'configmap', '-n', 'late', name])
    cluster.kubectl(['patch', 'configmap', '-n', 'default', name, '--type', 'merge', '-p', '{"data":{"root-cert.pem":"none","other":"kept"}}'])
    cluster.kubectl(['label', 'configmap', '-n', 'kube-system', name, 'mesh.io/config-'])
    await all('what was changed to be repaired', roots)
    expect(cluster.kubectl(['get', 'configmap', '-n', 'default', name, '-o', 'jsonpath={.data.other}'])).to.equal('kept')
  })

  it('are written to all other namespaces while a quota, or somebody who made his immutable, keeps them out of one', async () => {
    const [one] = services as [Service]
    const roots = await wanted(one)
    for (const namespace of ['full', 'fixed']) {
      cluster.kubectl(['create', 'namespace', namespace])
      await until('its ConfigMap', () => held()[`namespace/${namespace}`] === roots)
    }
    cluster.kubectl(['create', 'quota', 'none', '-n', 'full', '--hard', 'count/configmaps=0'])
    await until('the quota', () => cluster.kubectl(['get', 'quota', '-n', 'full', 'none', '-o', 'jsonpath={.status.used}']) !== '')
    cluster.kubectl(['delete', 'configmap', '-n', 'full', name])
    cluster.kubectl(['patch', 'configmap', '-n', 'fixed', name, '--type', 'merge', '-p', '{"immutable":true,"data":{"root-cert.pem":"none"}}'])
    await one.output.says(/ConfigMap mesh-ca-root-cert of the namespace full cannot be written: patch of configmaps .*: exceeded quota: none/)
    await one.output.says(/ConfigMap mesh-ca-root-cert of the namespace fixed cannot be written: patch of configmaps .*: field is immutable/)
    cluster.kubectl(['create', 'namespace', 'beside'])
    await until('a new namespace to have them', () => held()['namespace/beside'] === roots)
    expect(await one.metrics()).to.match(/^pilot_root_configmaps_outdated 2$/m)
    cluster.kubectl(['delete', 'quota', '-n', 'full', 'none'])
    cluster.kubectl(['delete', 'configmap', '-n', 'fixed', name])
    await all('all to have them again', roots)
  })

  it('follow a rotation of the root, and are left out in a namespace that is being deleted', async () => {
    const [one] = services as [Service]
    cluster.kubectl(['create', 'namespace', 'ending'])
    cluster.apply('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: keeps, namespace: ending, finalizers: [example.com/keep]}')
    await until('the ConfigMap', () => held()['namespace/ending'] !== undefined)
    cluster.kubectl(['delete', 'namespace', 'ending', '--wait=false'])
    await until('its removal', () => held()['namespace/ending'] === undefined)
    let both = ''
    await until('a rotation', async () => {
      both = await wanted(one)
      if (both.includes(',')) return true
      const { stderr } = await runCommand(['ca', 'rotate'], one.env)
      if (stderr !== '') throw new Error(stderr)
      return false
    })
    await all('both roots', both, ['namespace/ending'])
    cluster.kubectl(['patch', 'configmap', '-n', 'ending', 'keeps', '--type', 'merge', '-p', '{"metadata":{"finalizers":null}}'])
    await until('the end of the namespace', () => !namespaces().includes('namespace/ending'))
    cluster.kubectl(['create', 'namespace', 'ending'])
    await all('the namespace that was made again', both)
    one.output.lacks(/ConfigMap mesh-ca-root-cert( of the namespace ending)? cannot be written/)
  })

  it('are written by another replica when the leader is paused for longer than its lease, which writes nothing when it goes on', async () => {
    const [one] = services as [Service]
    // The other one has a root of its own, which tells who has written.
    const other = await discovery()
    const roots = await wanted(other)
    expect(roots).not.to.equal(await wanted(one))
    expect(await written(other)).to.equal(undefined)
    const before = await written(one)
    process.kill(one.pid, 'SIGSTOP')
    await all('the roots of the other one', roots)
    cluster.kubectl(['create', 'namespace', 'meanwhile'])
    await all('the roots of the other one in a new namespace', roots)
    process.kill(one.pid, 'SIGCONT')
    await one.output.says(/lease mesh-system\/mesh-namespace-controller-election: this replica leads no more/)
    cluster.kubectl(['create', 'namespace', 'after'])
    await all('the roots of the other one still', roots)
    expect(await written(one)).to.equal(before)
    expect(await one.metrics()).to.contain('pilot_leader_election_leading{lease="mesh-namespace-controller-election"} 0')
    expect(await other.metrics()).to.contain('pilot_leader_election_leading{lease="mesh-namespace-controller-election"} 1')
  })
})
