import { expect } from 'chai'
import { RootCertificatesPart } from '../../../actors/discovery/sources/orchestrator/root-certificates-part.ts'
import type { Follower } from '../../../actors/discovery/sources/orchestrator/watcher-part.ts'
import type { Peer } from '../../../actors/runtime/link.ts'

describe('the part that follows the ConfigMaps with the root certificates', () => {
  it('tells of a namespace again when a listing has another of the same name, and not when it is as before', () => {
    const told: unknown[] = []
    const part = new RootCertificatesPart('mesh.io', [])
    const follower = part.tap({ cut: (value: unknown) => ({ object: value, faults: [] }), set: () => {} } as unknown as Follower)
    const set = (uid: string) => follower.set('/a', follower.cut({ metadata: { name: 'a', uid } }).object)
    const peer = { kind: 'root-certificates', tell: (message: unknown) => told.push(message), replay: () => ({ finish: () => {} }) }
    follower.listed?.()
    part.followers[0]?.listed?.()
    part.linked(peer as unknown as Peer)
    for (const uid of ['1', '1', '2']) set(uid)
    const event = (uid: string) => ({ type: 'NamespaceRootsChanged', namespace: 'a', state: { uid, isActive: true, held: undefined } })
    expect(told).to.deep.equal([event('1'), event('2')])
  })
})
