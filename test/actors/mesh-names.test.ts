/** The names of the mesh follow from the mesh configuration in force, whichever source it is of. */
import { expect } from 'chai'
import { keptSecrets } from '../../actors/discovery/own-keys/process-secrets.ts'
import { actor } from '../../actors/discovery/push-queue/push-queue.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { monotonicMs } from '../../actors/runtime/clock.ts'
import type { Peer } from '../../actors/runtime/link.ts'
import type { MeshNamesEvent } from '../../protocols/messages/identity.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import { readFeatures } from '../../src/config/features.ts'
import { readMeshConfig } from '../../src/config/mesh-texts.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'

const meshOf = (content: string) => {
  const read = readMeshConfig(content)
  if ('error' in read) throw new Error(read.error)
  return read.value
}

/** The settings of Ingresses of the default. */
const ingress = { mode: 'STRICT', className: 'mesh', service: 'mesh-ingressgateway', selector: '' }

describe('the names of the mesh', () => {
  let queue: Behaviour<SourceEvent>
  const [files, other] = [new RecordingPeer<SourceEvent>('source/files'), new RecordingPeer<SourceEvent>('source/other')]
  const logged: string[] = []
  const start = async (trustDomain = '', hasCluster = true) => {
    logged.length = 0
    const config = {
      hasCluster,
      features: readFeatures({}).features,
      secrets: keptSecrets('').secrets,
      trustDomain,
      domain: 'cluster.local',
      plugins: [],
      sources: ['source/files', 'source/other', 'source/missing'],
      settingSources: ['source/files', 'source/other'],
    }
    queue = (await startActor(actor, config, { logged: ({ message }) => logged.push(message) })) as Behaviour<SourceEvent>
  }
  const linked = (name = 'authenticator') => {
    const reader = new RecordingPeer<MeshNamesEvent>(name)
    queue.linked?.(reader as Peer)
    return reader
  }
  const gives = (peer: RecordingPeer<SourceEvent>, content: string | undefined) => {
    const mesh = content === undefined ? undefined : meshOf(content)
    const source = peer.name.slice('source/'.length)
    queue.receive({ type: 'MeshChanged', source, place: `${source}.yaml`, mesh, at: monotonicMs() }, peer)
  }
  const domains = ({ received }: RecordingPeer<MeshNamesEvent>) => received.map(({ trustDomain }) => trustDomain)
  afterEach(() => queue.drain?.())

  it('are told once every source has said whether it has a mesh configuration, of which the first in their order counts', async () => {
    await start()
    const before = linked()
    gives(other, 'trustDomain: from.other\nrootNamespace: root\n')
    expect(before.received).to.deep.equal([])
    gives(files, undefined)
    expect(before.received).to.deep.equal([
      {
        type: 'MeshNamesChanged',
        trustDomain: 'from.other',
        trustDomainAliases: [],
        rootNamespace: 'root',
        discoveryAddress: 'meshd.mesh-system.svc:15012',
        ingress,
      },
    ])
    gives(files, 'trustDomain: from.files\n')
    gives(other, 'trustDomain: not.in.force\n')
    expect(domains(before)).to.deep.equal(['from.other', 'from.files'])
    gives(files, undefined)
    expect(domains(before)).to.deep.equal(['from.other', 'from.files', 'not.in.force'])
    gives(other, undefined)
    expect(domains(before).at(-1)).to.equal('cluster.local')
    for (const name of ['xds-writer/0', 'certificate-authority']) expect(domains(linked(name))[0]).to.equal('cluster.local')
  })

  it('are those of the default where no source has a mesh configuration that can be used, with the trust domain of the flag', async () => {
    await start('td.example')
    const reader = linked()
    queue.receive({ type: 'SettingUnusable', setting: 'networks', source: 'files', at: monotonicMs() }, files)
    queue.receive({ type: 'SettingUnusable', setting: 'mesh', source: 'files', at: monotonicMs() }, files)
    expect(reader.received).to.deep.equal([])
    queue.synced?.(other)
    expect(domains(reader)).to.deep.equal(['td.example'])
    gives(other, 'trustDomain: overruled\nrootNamespace: root\n')
    expect(reader.received.at(-1)).to.deep.include({ trustDomain: 'td.example', rootNamespace: 'root' })
  })

  it('are told again only when they differ', async () => {
    await start()
    const reader = linked()
    queue.synced?.(other)
    gives(files, 'trustDomain: a@b\nrootNamespace: root\n')
    gives(files, 'trustDomain: a@b\nrootNamespace: root\nconnectTimeout: 3s\n')
    gives(files, 'trustDomain: c\ntrustDomainAliases: [a.b]\nrootNamespace: root\ndefaultConfig: {discoveryAddress: "here:1"}\n')
    expect(reader.received).to.deep.equal([
      {
        type: 'MeshNamesChanged',
        trustDomain: 'a.b',
        trustDomainAliases: [],
        rootNamespace: 'root',
        discoveryAddress: 'meshd.mesh-system.svc:15012',
        ingress,
      },
      { type: 'MeshNamesChanged', trustDomain: 'c', trustDomainAliases: ['a.b'], rootNamespace: 'root', discoveryAddress: 'here:1', ingress },
    ])
  })
  it('come with certificates, which have no effect without a cluster: each time that they come, the log says so once', async () => {
    const certificates = 'certificates: [{secretName: dns.a, dnsNames: [a.b]}, {secretName: dns.b, dnsNames: [b.b]}]\n'
    const said = () => logged.filter((line) => line.includes('certificates'))
    for (const hasCluster of [true, false]) {
      await start('', hasCluster)
      queue.synced?.(other)
      gives(files, certificates)
      gives(files, `${certificates}trustDomain: other\n`)
      if (hasCluster) {
        expect(said()).to.deep.equal([])
        await queue.drain?.()
      }
    }
    const line =
      'mesh configuration: field certificates has no effect: there is no cluster in whose Secrets 2 certificates could be kept (--orchconfig)'
    expect(said()).to.deep.equal([line])
    gives(files, undefined)
    gives(files, certificates)
    expect(said()).to.deep.equal([line, line])
  })
})
