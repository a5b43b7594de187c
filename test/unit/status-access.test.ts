import { expect } from 'chai'
import { Authentication } from '../../actors/discovery/xds-writer/authentication.ts'
import { StatusAccess } from '../../actors/discovery/xds-writer/status-access.ts'
import type { PeerProgram } from '../../actors/http/peer-programs.ts'
import { status } from '../../src/model/status-codes.ts'

describe('access to client status in plain text', () => {
  const said: string[] = []
  const of = async ({ isLocal = true, onLoopback = true, program = 'ordinary' as PeerProgram }) => {
    const access = new StatusAccess({
      authentication: new Authentication(() => Promise.reject(new Error('nobody to ask'))),
      onLoopback,
      peers: { of: async () => program },
      names: () => undefined,
      warn: (_, line) => said.push(line),
    })
    const admitted = await access.of({
      peer: '127.0.0.1',
      headers: {},
      isSecure: false,
      isLocal,
      ends: {},
      certificateCaller: undefined,
      connection: {},
    })
    return typeof admitted === 'function' ? admitted('any') : admitted.code
  }

  it('is for programs of this machine, if that is allowed', async () => {
    expect([await of({}), await of({ isLocal: false }), await of({ onLoopback: false })]).to.deep.equal([
      true,
      status.unauthenticated,
      status.unauthenticated,
    ])
  })

  it('is refused to a proxy at the other end, and where nothing is there, or it takes too long to find out', async () => {
    const outcomes: unknown[] = []
    for (const program of ['unknown', 'suspect', 'elsewhere', 'busy'] as const) outcomes.push(await of({ program }))
    expect(outcomes).to.deep.equal([true, status.unauthenticated, status.unauthenticated, status.unavailable])
    expect(said.at(-3)).to.contain('the program at the other end listens on a port of proxies')
  })
})
