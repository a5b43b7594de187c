import { expect } from 'chai'
import type { ApiSession } from '../../../actors/discovery/cluster/api-session.ts'
import { ClusterCalls } from '../../../actors/discovery/cluster/cluster-api.ts'
import type { Leadership } from '../../../actors/discovery/leader/leadership.ts'
import { statusWrites } from '../../../actors/discovery/leader/status-writes.ts'
import { patient } from '../../../actors/runtime/ask.ts'

/** What comes of the write of the status of an object that a server answers with a status and a body. */
async function outcomeOf(name: string, code: number, fields: object) {
  const send: ApiSession['send'] = (_, { answered, received, ended }) => {
    setImmediate(() => {
      answered(code, { 'content-type': 'application/json' })
      received(Buffer.from(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, ...fields })))
      ended()
    })
    return { abandon: () => {} } as ReturnType<ApiSession['send']>
  }
  const calls = new ClusterCalls({ send } as unknown as ApiSession, 10_000)
  const { writeStatus } = statusWrites(() => ({ inTerm: () => calls }) as unknown as Leadership)
  const order = { term: 1, group: 'networking.mesh.io', version: 'v1', plural: 'virtualservices', namespace: 'shop', name, patch: [] }
  return writeStatus(order, patient)
}

describe('a write of the status of an object', () => {
  it('is in conflict when the patch does not apply to what is there, which the server says in these words', async () => {
    const message = 'the server rejected our request due to an error in our request'
    expect(await outcomeOf('web', 422, { message, reason: 'Invalid', details: {} })).to.deep.equal({ outcome: 'conflict' })
    expect(await outcomeOf('web', 409, { message: 'changed', reason: 'Conflict' })).to.deep.equal({ outcome: 'conflict' })
  })

  it('has failed when the definition does not permit the status, whatever the object is called', async () => {
    for (const name of ['web', 'latest', 'precondition']) {
      const message = `VirtualService.networking.mesh.io "${name}" is invalid: status: Invalid value: "string"`
      const details = { name, group: 'networking.mesh.io', kind: 'VirtualService', causes: [{ field: 'status' }] }
      const outcome = await outcomeOf(name, 422, { message, reason: 'Invalid', details })
      expect([outcome.outcome, 'concerns' in outcome && outcome.concerns], name).to.deep.equal(['failed', 'object'])
    }
  })
  it('concerns the kind where the role refuses it, and the object alone where an admission does, or the store does not take its size', async () => {
    const forbidden = 'virtualservices.networking.mesh.io "web" is forbidden: '
    for (const [code, reason, message, concerns] of [
      [403, 'Forbidden', `${forbidden}User "meshd" cannot patch resource "virtualservices/status" in API group "networking.mesh.io"`, 'resource'],
      [403, 'Forbidden', `${forbidden}ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, 'object'],
      [500, '', 'etcdserver: request is too large', 'object'],
      [503, 'ServiceUnavailable', 'the server is currently unable to handle the request', 'all'],
    ] as const)
      expect(await outcomeOf('web', code, { reason, message }), message).to.deep.include({ outcome: 'failed', concerns })
  })
})
