import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { actor } from '../../actors/discovery/sources/files/file-watcher.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import type { MeshNamesEvent } from '../../protocols/messages/identity.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import { readFeatures } from '../../src/config/features.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { until } from '../harness/until.ts'

describe('the names of the mesh', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-names-'))
  const file = join(dir, 'mesh')
  let watcher: Behaviour<unknown, SourceEvent | MeshNamesEvent>
  const start = async (meshConfig: string, trustDomain: string) => {
    watcher = await startActor(actor, {
      features: readFeatures({}).features,
      allowUnreadable: false,
      source: 'files',
      configDir: '',
      meshConfig,
      networksConfig: '',
      trustDomain,
    })
    const peer = new RecordingPeer<SourceEvent | MeshNamesEvent>('authenticator')
    watcher.linked?.(peer)
    await until('the names', () => peer.received.length > 0)
    return peer
  }
  afterEach(() => watcher.drain?.())
  after(() => rmSync(dir, { recursive: true, force: true }))

  it('are the defaults without a mesh configuration, with the trust domain of the flag', async () => {
    const { received } = await start('', 'td.example')
    expect(received).to.deep.equal([
      {
        type: 'MeshNamesChanged',
        trustDomain: 'td.example',
        trustDomainAliases: [],
        rootNamespace: 'mesh-system',
        discoveryAddress: 'meshd.mesh-system.svc:15012',
      },
    ])
  })

  it('are sent again only when the mesh configuration changes them', async () => {
    writeFileSync(file, 'trustDomain: a@b\nrootNamespace: root\n')
    const peer = await start(file, '')
    expect(peer.received[0]).to.deep.include({ trustDomain: 'a.b', rootNamespace: 'root' })
    writeFileSync(file, 'trustDomain: a@b\nrootNamespace: root\nconnectTimeout: 3s\n')
    writeFileSync(file, 'trustDomain: c\ntrustDomainAliases: [a.b]\nrootNamespace: root\ndefaultConfig: {discoveryAddress: "here:1"}\n')
    await until('the other names', () => peer.received.length > 1)
    expect(peer.received.slice(1)).to.deep.equal([
      { type: 'MeshNamesChanged', trustDomain: 'c', trustDomainAliases: ['a.b'], rootNamespace: 'root', discoveryAddress: 'here:1' },
    ])
  })
})
