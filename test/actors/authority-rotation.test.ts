/** The authority during a rotation, with real signers: what its servers present, and what writers trust. */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, createServer } from 'node:tls'
import { expect } from 'chai'
import { actor } from '../../actors/discovery/authority/certificate-authority.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import type { CertificateAnswer } from '../../protocols/messages/authority.ts'
import type { AuthorityStatus, RotateAnswer } from '../../protocols/messages/authority-status.ts'
import type { MeshNamesEvent } from '../../protocols/messages/identity.ts'
import type { IdentityEvent, TrustEvent } from '../../protocols/messages/trust.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { readFeatures } from '../../src/config/features.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { keys } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'

const names: MeshNamesEvent = {
  type: 'MeshNamesChanged',
  trustDomain: 'td',
  trustDomainAliases: [],
  rootNamespace: 'mesh-system',
  discoveryAddress: 'localhost:15012',
}
const key = keys.p256.export({ type: 'pkcs8', format: 'pem' }) as string

describe('the authority during a root rotation', () => {
  const directory = mkdtempSync(join(tmpdir(), 'mesh-ca-'))
  const writer = new RecordingPeer<TrustEvent>('xds-writer/0')
  let authority: Behaviour<MeshNamesEvent | IdentityEvent, TrustEvent>
  const ask = async <T>(question: string, ...details: unknown[]): Promise<T> => {
    const answer = authority.asks?.[question] as ((...given: unknown[]) => unknown) | undefined
    return (await answer?.(...details)) as T
  }

  before(async () => {
    const { features } = readFeatures({ MESHD_CA_STATE_DIR: join(directory, 'ca'), ROOT_CA_DIR: join(directory, 'plugged') })
    authority = await startActor(actor, { features, place: { kind: 'directory' } })
    authority.linked?.(writer)
    authority.receive(names, new RecordingPeer('source/files'))
    await until('a root', () => writer.received.length > 0)
  })
  after(async () => {
    await authority.drain?.()
    rmSync(directory, { recursive: true })
  })

  const serving = async (): Promise<string> => {
    const answer = await ask<CertificateAnswer>('signServingCertificate', {
      csr: makeSigningRequest(keys.p256, [{ dns: 'localhost' }]),
      server: 'xds-writer/0',
    })
    if (!('chain' in answer)) throw new Error(answer.message)
    return answer.chain.slice(0, -1).join('')
  }
  /** Whether a client that trusts only these roots completes a handshake with a server that presents this chain. */
  const isTaken = async (cert: string, ca: string): Promise<boolean> => {
    const server = createServer({ cert, key }, (socket) => socket.end())
    server.on('tlsClientError', () => {})
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', servername: 'localhost', ca })
      socket.on('error', () => {})
      return await once(socket, 'secureConnect').then(
        () => true,
        () => false,
      )
    } finally {
      server.close()
    }
  }
  const roots = () => (writer.received.at(-1)?.roots[''] ?? '').match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n/g) ?? []

  it('presents a chain that verifies with the old root alone and with the new root alone, from trust-both on', async () => {
    const [old = ''] = roots()
    const seen: Record<string, unknown> = {}
    let next = ''
    for (let stage = ''; stage !== 'stable'; ) {
      const answer = await ask<RotateAnswer>('rotate', false)
      stage = 'went' in answer ? answer.went : expect.fail(answer.refused)
      next ||= roots().find((root) => root !== old) ?? ''
      const chain = await serving()
      seen[stage] = { old: await isTaken(chain, old), new: await isTaken(chain, next), trusted: roots().length }
    }
    expect(seen).to.deep.equal({
      announce: { old: true, new: false, trusted: 2 },
      'trust-both': { old: true, new: true, trusted: 2 },
      'sign-with-new': { old: true, new: true, trusted: 2 },
      retire: { old: true, new: true, trusted: 2 },
      stable: { old: true, new: true, trusted: 1 },
    })
    expect(roots()).to.deep.equal([next])
    const generations = writer.received.map(({ generation }) => generation)
    expect(generations, 'writers have their certificates signed anew').to.deep.equal([...new Set(generations)].sort((one, other) => one - other))
    const status = await ask<AuthorityStatus>('status')
    expect(
      status.serving.map(({ isServed }) => isServed),
      'the last one is in use',
    ).to.deep.equal([false, false, false, false, true])
    expect(status.serving.map(({ root }) => root)).to.include(status.roots[0]?.id)
  })
})
