/** Commands that ask the mesh of a real cluster from elsewhere (docs/commands.md, "The mesh of a cluster"): with the rights of an operator and no others. */
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { installChart } from '../harness/cluster-mesh.ts'
import { dockerImages } from '../harness/docker-images.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { runCommand } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const people = `{apiVersion: v1, kind: Namespace, metadata: {name: people}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: ann, namespace: people}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ann, namespace: mesh-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: meshd-operator}
subjects: [{kind: ServiceAccount, name: ann, namespace: people}]`

describe('commands with --cluster', function () {
  this.timeout(300_000)
  let cluster: TestCluster
  let operator = ''
  const run = (...args: string[]) => runCommand(args, { KUBECONFIG: operator })
  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    dockerImages(cluster, envoy)
    installChart(cluster, 'base')
    installChart(cluster, 'meshd', { values: { replicaCount: 2 } })
    cluster.apply('{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {mesh-injection: enabled}}}', people)
    const bundle = 'jsonpath={.webhooks[*].clientConfig.caBundle}'
    await until('the webhooks', () => cluster.kubectl(['get', 'mutatingwebhookconfiguration', 'mesh-sidecar-injector', '-o', bundle]) !== '')
    cluster.apply('{apiVersion: v1, kind: Pod, metadata: {name: client, namespace: shop}, spec: {containers: [{name: application, image: idle}]}}')
    cluster.waitFor('condition=Ready', '-n', 'shop', 'pod/client')
    operator = cluster.tokenConfig('ann', cluster.kubectl(['create', 'token', '-n', 'people', 'ann', '--duration', '2h']).trim())
  })
  after(async () => {
    await cluster?.dispose()
  })

  it('proxy-status shows the proxies of all replicas to who has the Role, and no port is opened', async () => {
    await until('the proxy', async () => /\nclient\.shop +SYNCED /.test((await run('proxy-status', '--cluster')).stdout))
    const { stdout, stderr, code } = await run('proxy-status', '--cluster')
    expect([code, stderr]).to.deep.equal([0, '1 proxy: 1 SYNCED\n'])
    expect(stdout).to.match(/^PROXY .* REPLICA\nclient\.shop +SYNCED /)
  })
})
