/**
 * Two real clusters that are one mesh: discovery runs in the first, pods of both have stock Envoys and call a service that both have, over one flat
 * network and through a gateway in each network, by locality. It runs the commands of docs/networks.md.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parse, stringify } from 'yaml'
import { narrow } from '../harness/cable.ts'
import { TestCluster } from '../harness/cluster.ts'
import { settled } from '../harness/cluster-mesh.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { deployShop, joinMesh, webAnswers, webPods } from '../harness/joined-clusters.ts'
import { commandsOf, runCommands } from '../harness/page-commands.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const strict =
  'apiVersion: security.mesh.io/v1\nkind: PeerAuthentication\nmetadata: {name: strict, namespace: mesh-system}\nspec: {mtls: {mode: STRICT}}'
const sections = commandsOf(readFileSync(fileURLToPath(new URL('../../docs/networks.md', import.meta.url)), 'utf8'))

/** Whether a gateway at an address begins TLS with a workload for a TLS server name, asked from the network of a cluster. */
function passesOn({ network }: TestCluster, address: string, servername: string, protocol: string): boolean {
  const options = { host: address, port: 15_443, servername, ALPNProtocols: [protocol], rejectUnauthorized: false }
  // The workload asks for a certificate after its own: the TLS handshake of a client without one is done before it is refused.
  const script = `require('tls').connect(${JSON.stringify(options)}, () => process.exit(0)).on('error', () => process.exit(3)).on('close', () => process.exit(3))`
  const { status, stderr } = spawnSync('ip', ['netns', 'exec', network, process.execPath, '-e', script], { encoding: 'utf8', timeout: 10_000 })
  if (status !== 0 && status !== 3) throw new Error(`the gateway at ${address} was not asked: ${stderr}`)
  return status === 0
}

/** A configuration of kubectl with a context for each cluster, the first of which is the usual one. */
function contexts(of: Readonly<Record<string, TestCluster>>) {
  const configs = Object.entries(of).map(([name, { adminConfig }]) => {
    const { clusters, users } = parse(readFileSync(adminConfig, 'utf8')) as Record<'clusters' | 'users', object[]>
    return { cluster: { ...clusters[0], name }, user: { ...users[0], name }, context: { name, context: { cluster: name, user: name } } }
  })
  return {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': Object.keys(of)[0] },
    clusters: configs.map(({ cluster }) => cluster),
    users: configs.map(({ user }) => user),
    contexts: configs.map(({ context }) => context),
  }
}

describe('two clusters of one mesh', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-two-'))
  let near: TestCluster
  let far: TestCluster

  /** Who answers a call of a pod. */
  const call = (cluster: TestCluster) => {
    const exec = ['exec', '-n', 'shop', 'deploy/client', '-c', 'application', '--', 'curl', '-s', '-m', '5', 'http://web.shop/']
    const { from, headers } = JSON.parse(cluster.kubectl(exec)) as { from: string; headers: Record<string, string[]> }
    return { from, identity: headers['X-Forwarded-Client-Cert']?.join() ?? '' }
  }
  /** The clusters whose pods answer calls. */
  const answering = (cluster: TestCluster) => {
    const names = new Map([near, far].flatMap((each, index) => webPods(each).map((pod) => [pod, index === 0 ? 'near' : 'far'])))
    return [...new Set([...webAnswers(cluster)].map((pod) => names.get(pod) ?? pod))].sort().join()
  }
  /** Runs the commands of a section of docs/networks.md, where kubectl knows the clusters as `first`, its usual one, and `west`. */
  const run = (heading: string) => {
    const commands = sections.get(heading) ?? []
    expect(commands, heading).not.to.deep.equal([])
    writeFileSync(join(dir, 'contexts'), JSON.stringify(contexts({ first: near, west: far })))
    return runCommands(commands, near, join(dir, 'contexts'))
  }
  const answers = (cluster: TestCluster, by: string) => {
    let seen = ''
    return until(`answers by ${by}`, () => (seen = answering(cluster)) === by).catch((error: Error) => {
      throw new Error(`${error.message}; they come from ${seen}`)
    })
  }

  before(async function () {
    if (envoy === '') this.skip()
    near = await TestCluster.start('n1=region1/zone1')
    far = await TestCluster.start('n1=region2/zone1')
    const members = { first: near, west: far }
    await joinMesh(members, envoy, strict)
    await deployShop(members, 'ledger', 'vault')
  })
  after(async () => {
    rmSync(dir, { recursive: true, force: true })
    await Promise.all([near?.dispose(), far?.dispose()])
  })

  it('carries calls of pods of both to the pods of both, over mutual TLS', async () => {
    for (const cluster of [near, far]) await answers(cluster, 'far,near')
    expect(call(far).identity).to.match(/By=spiffe:\/\/cluster.local\/ns\/shop\/sa\/web;.*URI=spiffe:\/\/cluster.local\/ns\/shop\/sa\/client/)
  })

  it('prefers the pods of the own region, and fails over to the other cluster when they go', async () => {
    run('Failover')
    await answers(near, 'near')
    await answers(far, 'far')
    near.kubectl(['scale', 'deployment', '-n', 'shop', 'web', '--replicas', '0'])
    await answers(near, 'far')
    near.kubectl(['scale', 'deployment', '-n', 'shop', 'web', '--replicas', '1'])
    await answers(near, 'near')
  })

  it('reaches pods of the other network through its gateway alone, in both directions, and fails over', async () => {
    run('A gateway in each network')
    for (const cluster of [near, far]) settled(cluster, 'mesh-system', 'mesh-eastwest')
    const podAt = (cluster: TestCluster, label: string) =>
      cluster.kubectl(['get', 'pods', '-n', 'mesh-system', '-l', label, '-o', 'jsonpath={.items[0].status.podIP}'])
    const gateways = [near, far].map((cluster) => podAt(cluster, 'mesh=eastwest'))
    // What a load balancer of the machines would do.
    for (const [index, cluster] of [near, far].entries()) {
      const status = JSON.stringify({ status: { loadBalancer: { ingress: [{ ip: gateways[index] }] } } })
      cluster.kubectl(['patch', 'service', '-n', 'mesh-system', 'mesh-eastwest', '--subresource=status', '--type=merge', '-p', status])
    }
    const [ofNear = '', ofFar = ''] = gateways
    const directions = [
      { from: near, own: 'near', other: 'far', narrowed: () => narrow(near, far, ofFar) },
      { from: far, own: 'far', other: 'near', narrowed: () => narrow(far, near, ofNear, podAt(near, 'app=meshd')) },
    ]
    for (const { from, own, other, narrowed } of directions) {
      const scale = (replicas: number) => from.kubectl(['scale', 'deployment', '-n', 'shop', 'web', '--replicas', `${replicas}`])
      const widen = narrowed()
      scale(0)
      await answers(from, other)
      expect(call(from).identity).to.match(/URI=spiffe:\/\/cluster.local\/ns\/shop\/sa\/client/)
      scale(1)
      await answers(from, own)
      widen()
    }
    near.kubectl(['delete', 'destinationrule', '-n', 'shop', 'web'])
    for (const cluster of [near, far]) await answers(cluster, 'far,near')
  })

  it('exposes at the gateway what its namespace sees, and neither other ports nor what is local to clusters, and leads nobody to it for what it does not pass on', async () => {
    const at = far.kubectl(['get', 'pods', '-n', 'mesh-system', '-l', 'mesh=eastwest', '-o', 'jsonpath={.items[0].status.podIP}'])
    const passes = (name: string, port = 80, protocol = 'istio') =>
      passesOn(near, at, `outbound_.${port}_._.${name}.shop.svc.cluster.local`, protocol)
    for (const name of ['web', 'ledger', 'vault']) expect(passes(name), name).to.equal(true)
    expect([passes('web', 81), passes('web', 8080), passes('nothing'), passes('web', 80, 'http/1.1')]).to.deep.equal([false, false, false, false])
    run('A service that stays in its cluster')
    await until('that ledger is hidden', () => !passes('ledger'))
    const endpoints = (cluster: TestCluster, name: string) => {
      const exec = ['exec', '-n', 'shop', 'deploy/client', '-c', 'application', '--', 'curl', '-s', 'http://127.0.0.1:15000/clusters']
      const lines = cluster.kubectl(exec).matchAll(/^outbound\|80\|\|(\w+)\.shop\.svc\.cluster\.local::([\d.:]+)::cx_total/gm)
      return [...lines].flatMap(([, of, at = '']) => (of === name ? at : [])).sort()
    }
    for (const cluster of [near, far]) {
      const own = cluster.kubectl(['get', 'pods', '-n', 'shop', '-l', 'app=web', '-o', 'jsonpath={.items[*].status.podIP}']).split(' ')
      const ofOwn = JSON.stringify(own.map((address) => `${address}:8080`).sort())
      await until('ledger to have the pods of the own cluster alone', () => JSON.stringify(endpoints(cluster, 'ledger')) === ofOwn)
      expect(
        endpoints(cluster, 'web').some((address) => address.endsWith(':15443')),
        'web over the gateway',
      ).to.equal(true)
    }
    const mesh = stringify({ serviceSettings: [{ settings: { clusterLocal: true }, hosts: ['vault.shop.svc.cluster.local'] }] })
    near.apply(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mesh', namespace: 'mesh-system' }, data: { mesh } }))
    await until('that vault is hidden', () => !passes('vault'))
    expect(passes('web')).to.equal(true)
  })

  it('leaves it to one namespace to make gateways, with the policy for the API server', async () => {
    run('Who makes gateways')
    const label = (of: string, name: string) => {
      try {
        return near.kubectl(['label', 'service', '-n', of, name, '--overwrite', 'topology.mesh.io/network=west', '--dry-run=server'])
      } catch (error) {
        return (error as Error).message
      }
    }
    await until('a refusal', () => label('shop', 'web').includes('gateways of networks are made in mesh-system only'))
    expect(label('mesh-system', 'mesh-eastwest')).to.contain('labeled')
    expect(near.kubectl(['annotate', 'service', '-n', 'shop', 'web', 'by=anybody']), 'another change').to.contain('annotated')
  })
})
