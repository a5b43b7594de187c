/**
 * Three real clusters of one mesh, in a flat network: the pods of each call those of all through stock Envoys, while the API server of one hangs and
 * another one is removed (docs/operation.md, J4 to J6).
 */
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { settled } from '../harness/cluster-mesh.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { deployShop, type JoinedClusters, joinMesh, webAnswers, webPods } from '../harness/joined-clusters.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const strict =
  'apiVersion: security.mesh.io/v1\nkind: PeerAuthentication\nmetadata: {name: strict, namespace: mesh-system}\nspec: {mtls: {mode: STRICT}}'

describe('three clusters of one mesh', () => {
  let members: JoinedClusters = {}
  let first: TestCluster
  let west: TestCluster
  let south: TestCluster
  /** The cluster of each pod of `web`. They are kept, since a server that hangs does not tell them. */
  const homes = new Map<string, string>()
  const lookAt = (id: string) => {
    for (const pod of webPods(members[id] as TestCluster)) homes.set(pod, id)
  }
  /** Waits until the clusters whose pods answer calls of the client of one are these. */
  const answers = async (cluster: TestCluster, by: string) => {
    let seen = ''
    const isSo = () => (seen = [...new Set([...webAnswers(cluster)].map((pod) => homes.get(pod) ?? pod))].sort().join()) === by
    await until(`answers by ${by}`, isSo).catch((error: Error) => {
      throw new Error(`${error.message}; they come from ${seen}`)
    })
  }
  const scale = (cluster: TestCluster, replicas: number) => cluster.kubectl(['scale', 'deployment', '-n', 'shop', 'web', '--replicas', `${replicas}`])

  before(async function () {
    if (envoy === '') this.skip()
    ;[first, west, south] = await Promise.all([TestCluster.start(), TestCluster.start(), TestCluster.start()])
    members = { first, west, south }
    await joinMesh(members, envoy, strict)
    await deployShop(members)
    for (const id of Object.keys(members)) lookAt(id)
  })
  after(async () => {
    west?.signalServer('SIGCONT')
    await Promise.all([first, west, south].map((each) => each?.dispose()))
  })

  it('reach the pods of each from all of them', async () => {
    for (const cluster of Object.values(members)) await answers(cluster, 'first,south,west')
  })

  it('lose nothing while the API server of one hangs, and are told of changes in the others', async () => {
    west.signalServer('SIGSTOP')
    scale(south, 2)
    settled(south, 'shop', 'web')
    lookAt('south')
    const added = webPods(south)
    for (const cluster of [first, south]) {
      await until('calls of both pods', () => added.every((pod) => webAnswers(cluster).has(pod)))
      await answers(cluster, 'first,south,west')
    }
  })

  it('lose the pods of one that is removed, and only these, while the server of another one hangs', async () => {
    const patch = JSON.stringify([{ op: 'remove', path: '/data/south' }])
    first.kubectl(['patch', 'secret', '-n', 'mesh-system', 'remotes', '--type', 'json', '-p', patch])
    await answers(first, 'first,west')
    // Its own proxies go on with the configuration that they have.
    expect([...webAnswers(south)], 'calls in the cluster that was removed').not.to.deep.equal([])
    west.signalServer('SIGCONT')
    await answers(west, 'first,west')
    scale(west, 0)
    for (const cluster of [first, west]) await answers(cluster, 'first')
  })
})
