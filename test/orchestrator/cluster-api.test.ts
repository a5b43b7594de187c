/** Single calls to a real API server, with the library's operations over one HTTP/2 connection (docs/operation.md, C2). */
import { expect } from 'chai'
import { type ApiFailure, ClusterApi } from '../../actors/discovery/cluster/cluster-api.ts'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { TestCluster } from '../harness/cluster.ts'

describe('calls to a real API server', () => {
  let cluster: TestCluster
  const apis: ClusterApi[] = []
  const failureOf = (call: Promise<unknown>): Promise<ApiFailure> =>
    call.then(
      () => Promise.reject(new Error('the call succeeded')),
      (error: ApiFailure) => error,
    )
  const api = (path: string): ClusterApi => {
    const made = new ClusterApi(new ClusterConnection({ from: 'file', path }), { perSecond: 100, burst: 100, userAgent: 'test' })
    apis.push(made)
    return made
  }
  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    cluster.apply('apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: shop, namespace: default}')
  })
  after(async () => {
    for (const each of apis) each.close()
    await cluster?.dispose()
  })

  it('return the answer, and failures with their code, verb and resource', async () => {
    const admin = api(cluster.adminConfig)
    const token = cluster.kubectl(['create', 'token', 'shop', '--audience', 'mesh-ca']).trim()
    const review = await admin.call(
      { verb: 'create', resource: 'tokenreviews.authentication.k8s.io' },
      (library) => library.AuthenticationV1Api,
      (authentication) => authentication.createTokenReview({ body: { spec: { token, audiences: ['mesh-ca'] } } }),
    )
    expect(review.status?.user?.username).to.equal('system:serviceaccount:default:shop')
    expect(review.status?.audiences).to.deep.equal(['mesh-ca'])

    const missing = await failureOf(
      admin.call(
        { verb: 'get', resource: 'secrets', object: 'default/none' },
        (library) => library.CoreV1Api,
        (core) => core.readNamespacedSecret({ namespace: 'default', name: 'none' }),
      ),
    )
    expect([missing.isMissing, missing.message]).to.deep.equal([true, 'get of secrets default/none failed: secrets "none" not found'])

    const write = () =>
      admin.call(
        { verb: 'create', resource: 'configmaps', object: 'default/one' },
        (library) => library.CoreV1Api,
        (core) => core.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name: 'one' }, data: { a: 'b' } } }),
      )
    expect((await write()).data).to.deep.equal({ a: 'b' })
    const conflict = await failureOf(write())
    expect([conflict.isConflict, conflict.reason, conflict.mayPass]).to.deep.equal([true, 'AlreadyExists', false])
  })

  it('delete an object only if it is the one that is meant', async () => {
    const admin = api(cluster.adminConfig)
    cluster.apply('apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: kept, namespace: default}')
    const name = { verb: 'delete', resource: 'leases.coordination.k8s.io', object: 'default/kept' } as const
    const remove = (resourceVersion: string) => {
      const text = JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { resourceVersion } })
      const path = '/apis/coordination.k8s.io/v1/namespaces/default/leases/kept'
      return admin.request(name, { method: 'DELETE', path, accept: 'application/json', body: { text, type: 'application/json' } })
    }
    const byLibrary = () =>
      admin.call(
        name,
        (library) => library.CoordinationV1Api,
        (leases) => leases.deleteNamespacedLease({ namespace: 'default', name: 'kept', body: { preconditions: { resourceVersion: '1' } } }),
      )
    for (const removed of [byLibrary, () => remove('1')]) expect((await failureOf(removed())).isConflict).to.equal(true)
    const { metadata } = JSON.parse(cluster.kubectl(['get', 'lease', 'kept', '-o', 'json'])) as { metadata: { resourceVersion: string } }
    expect(JSON.parse(await remove(metadata.resourceVersion))).to.include({ status: 'Success' })
    expect(cluster.kubectl(['get', 'lease', 'kept', '--ignore-not-found'])).to.equal('')
  })

  it('say what the role does not permit, and that a server does not answer', async () => {
    const unprivileged = api(cluster.tokenConfig('unprivileged', cluster.kubectl(['create', 'token', 'shop']).trim()))
    const refused = await failureOf(
      unprivileged.call(
        { verb: 'get', resource: 'secrets', object: 'default/one' },
        (library) => library.CoreV1Api,
        (core) => core.readNamespacedSecret({ namespace: 'default', name: 'one' }),
      ),
    )
    expect(refused.code).to.equal(403)
    expect(refused.message).to.match(/^the role of this service account does not permit "get" of "secrets": secrets "one" is forbidden/)
  })
})
