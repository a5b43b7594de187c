import { expect } from 'chai'
import type { ApiSession } from '../../../actors/discovery/cluster/api-session.ts'
import { ClusterCalls } from '../../../actors/discovery/cluster/cluster-api.ts'
import type { Leadership } from '../../../actors/discovery/leader/leadership.ts'
import { rootWrites } from '../../../actors/discovery/leader/root-writes.ts'
import { patient } from '../../../actors/runtime/ask.ts'

/** What comes of a write that a server answers with a status and a body. */
async function outcomeOf(status: number, body: string) {
  const send: ApiSession['send'] = (_, { answered, received, ended }) => {
    setImmediate(() => {
      answered(status, { 'content-type': 'application/json' })
      received(Buffer.from(body))
      ended()
    })
    return { abandon: () => {} } as ReturnType<ApiSession['send']>
  }
  const calls = new ClusterCalls({ send } as unknown as ApiSession, 10_000)
  const leadership = { inTerm: () => calls } as unknown as Leadership
  const { writeRootConfigMap } = rootWrites(() => leadership, 'mesh.io')
  return writeRootConfigMap({ term: 1, namespace: 'a', roots: 'x' }, patient)
}

const refusal = (fields: object) => JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 404, ...fields })

describe('a write of the ConfigMap with the root certificates', () => {
  it('finds the namespace gone when the server says that the namespace is not found', async () => {
    const message = 'namespaces "a" not found'
    for (const fields of [
      { message, reason: 'NotFound', details: { name: 'a', kind: 'namespaces' } },
      { message, reason: 'NotFound' },
    ])
      expect(await outcomeOf(404, refusal(fields))).to.deep.equal({ outcome: 'gone' })
  })

  it('has failed with any other 404: of a proxy before the server, of another object, of a path', async () => {
    const bodies = [
      '404 page not found',
      '',
      refusal({ message: 'the server could not find the requested resource', reason: 'NotFound', details: {} }),
      refusal({
        message: 'configmaps "mesh-ca-root-cert" not found',
        reason: 'NotFound',
        details: { name: 'mesh-ca-root-cert', kind: 'configmaps' },
      }),
      refusal({ message: 'namespaces "b" not found', reason: 'NotFound', details: { name: 'b', kind: 'namespaces' } }),
    ]
    for (const body of bodies) {
      const outcome = await outcomeOf(404, body)
      expect([outcome.outcome, 'isCommon' in outcome && outcome.isCommon], body).to.deep.equal(['failed', false])
    }
  })
  it('concerns all where the role or the server refuses it, and this namespace alone where its quota, its size or its store does', async () => {
    const name = 'configmaps "mesh-ca-root-cert"'
    const role = `${name} is forbidden: User "system:serviceaccount:mesh-system:meshd" cannot patch resource "configmaps" in API group "" in the namespace "a"`
    const quota = `${name} is forbidden: exceeded quota: few, requested: count/configmaps=1, used: count/configmaps=5, limited: count/configmaps=5`
    const immutable = `ConfigMap "mesh-ca-root-cert" is invalid: data: Forbidden: field is immutable when \`immutable\` is set`
    const cases: [number, string, string, boolean][] = [
      [403, 'Forbidden', role, true],
      [403, '', 'a proxy before the server', true],
      [500, 'InternalError', 'etcdserver: request timed out', true],
      [429, 'TooManyRequests', 'too many requests', true],
      [403, 'Forbidden', quota, false],
      [422, 'Invalid', immutable, false],
      [413, 'RequestEntityTooLarge', 'Request entity too large: limit is 3145728', false],
      [500, '', 'etcdserver: request is too large', false],
      [500, '', 'rpc error: code = ResourceExhausted desc = trying to send message larger than max (2115623 vs. 2097152)', false],
    ]
    for (const [code, reason, message, isCommon] of cases) {
      const outcome = await outcomeOf(code, JSON.stringify({ kind: 'Status', status: 'Failure', code, reason, message }))
      expect(outcome, message).to.deep.include({ outcome: 'failed', isCommon })
      const saysRole = 'reason' in outcome && outcome.reason.startsWith('the role of this service account does not permit "patch" of "configmaps": ')
      expect(saysRole, message).to.equal(code === 403 && isCommon)
    }
  })
})
