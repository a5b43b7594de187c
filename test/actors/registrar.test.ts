/** The registrar and its Lease, as actors see them (docs/registration.md). */
import { expect } from 'chai'
import type { ClusterApi } from '../../actors/discovery/cluster/cluster-api.ts'
import { actor } from '../../actors/discovery/registrar/registrar.ts'
import { ReplicaPresence } from '../../actors/discovery/registrar/replica-presence.ts'
import { RegisteringWorkloads } from '../../actors/discovery/xds-writer/registering-workloads.ts'
import type { RegisteringWorkload, WorkloadEvent } from '../../protocols/messages/registration.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { groupId, vms } from '../harness/model-entries.ts'
import { until } from '../harness/until.ts'

describe('the registrar', () => {
  const workload: RegisteringWorkload = {
    ...{ workloadGroup: 'vms', namespace: 'shop', node: 'vm', address: '10.0.0.1', network: '', locality: '', labels: {}, isProbed: false },
    callers: undefined,
  }

  it('says that nothing is registered, in the log and in /ready, when workloads connect and no source tells of groups', async () => {
    const notes: unknown[] = []
    const lines: string[] = []
    const config = { replica: 'r1', domain: 'mesh.io', graceMs: 10_000, checksHealth: true, writers: 1 }
    const registrar = await startActor(actor, config, {
      noted: (name, value) => void notes.push([name, value]),
      logged: ({ level, message }) => void (level === 'error' && message.startsWith('no workload') && lines.push(message)),
    })
    const [writer, source] = [new RecordingPeer<never>('xds-writer/0'), new RecordingPeer<never>('config-watcher')]
    registrar.linked?.(writer)
    for (const connection of ['c1', 'c2']) registrar.receive({ type: 'WorkloadConnected', connection, workload, health: undefined }, writer)
    expect(lines).to.have.length(1)
    expect(lines[0]).to.contain('no WorkloadGroup is read, since the configuration does not come from the cluster')
    expect(notes).to.deep.equal([['attention', lines]])
    registrar.linked?.(source)
    expect(notes.at(-1)).to.deep.equal(['attention', []])
    await registrar.drain?.()
  })

  it('names two machines that share an entry, in the log and in /ready, as long as both are connected', async () => {
    const notes: (readonly unknown[])[] = []
    const lines: string[] = []
    const config = { replica: 'r1', domain: 'mesh.io', graceMs: 10_000, checksHealth: true, mostEntries: 0, writers: 1 }
    const registrar = await startActor(actor, config, {
      noted: (name, value) => void notes.push([name, value]),
      logged: ({ level, message }) => void (level === 'warn' && lines.push(message)),
    })
    const [writer, source] = [new RecordingPeer<never>('xds-writer/0'), new RecordingPeer<never>('config-watcher')]
    for (const peer of [writer, source]) registrar.linked?.(peer)
    registrar.receive({ type: 'WorkloadGroupChanged', id: groupId, workloadGroup: vms }, source)
    for (const peer of [writer, source]) registrar.synced?.(peer)
    const connect = (node: string) =>
      registrar.receive({ type: 'WorkloadConnected', connection: node, workload: { ...workload, node }, health: undefined }, writer)
    connect('sidecar~10.0.0.1~one.shop~shop.svc')
    connect('sidecar~10.0.0.1~two.shop~shop.svc')
    await until('the line', () => lines.length > 0)
    expect(lines[0]).to.contain(
      'machines "sidecar~10.0.0.1~one.shop~shop.svc" and "sidecar~10.0.0.1~two.shop~shop.svc" register for WorkloadGroup "vms"',
    )
    expect(notes.at(-1)).to.deep.equal(['attention', lines])
    registrar.receive({ type: 'WorkloadDisconnected', connection: 'sidecar~10.0.0.1~one.shop~shop.svc' }, writer)
    await until('the note to go', () => String(notes.at(-1)?.[1]) === '')
    expect(lines).to.have.length(1)
    await registrar.drain?.()
  })
})

describe('the Lease of a replica', () => {
  it('does not wait for the deletion of more than 20 others between two renewals', async () => {
    const calls: string[] = []
    const api = {
      call: async ({ verb }: { verb: string }) => {
        calls.push(verb)
        return { metadata: {}, items: [] }
      },
    } as unknown as ClusterApi
    const presence = new ReplicaPresence({ api, replica: 'r1', namespace: 'mesh-system', revision: '', domain: 'mesh.io' })
    const dead = Array.from({ length: 1000 }, (_, number) => ({ name: `r${number}`, version: '1' }))
    for (let round = 0; round < 2; round++) await presence.answers.replicaPresence({ dead })
    const turn = (verb: string) => [verb, ...Array.from({ length: 20 }, () => 'delete'), 'list']
    expect(calls).to.deep.equal([...turn('create'), ...turn('update')])
  })
})

describe('a workload that wants to be registered', () => {
  it('has one address however that is written, so that it has one entry', () => {
    const registrar = new RecordingPeer<WorkloadEvent>('registrar')
    const registering = new RegisteringWorkloads({ authenticates: false, names: () => undefined, connections: new Map(), warn: () => undefined })
    registering.linked(registrar)
    for (const address of ['FD00:0::1', 'fd00::1', '10.0.0.1']) {
      const node = {
        id: 'vm',
        metadata: { AUTO_REGISTER_GROUP: 'vms' },
        addresses: [address, '10.9.9.9'],
        namespace: 'shop',
        network: '',
        locality: '',
        labels: {},
      }
      registering.connected({ id: address, node, caller: undefined } as never)
    }
    const told = registrar.received.flatMap((event) => (event.type === 'WorkloadConnected' ? [event.workload.address] : []))
    expect(told).to.deep.equal(['fd00::1', 'fd00::1', '10.0.0.1'])
  })

  it('is nobody of this cluster if another one vouches for its identity', () => {
    const registrar = new RecordingPeer<WorkloadEvent>('registrar')
    const names = { trustDomain: 'td', trustDomainAliases: [], rootNamespace: 'mesh-system' }
    const registering = new RegisteringWorkloads({ authenticates: true, names: () => names as never, connections: new Map(), warn: () => undefined })
    registering.linked(registrar)
    const node = {
      id: 'vm',
      metadata: { AUTO_REGISTER_GROUP: 'vms' },
      addresses: ['10.0.0.1'],
      namespace: 'shop',
      network: '',
      locality: '',
      labels: {},
    }
    for (const [id, isOwn] of [
      ['own', true],
      ['west', false],
    ]) {
      const caller = { identities: ['spiffe://td/ns/shop/sa/vm'], cluster: { id, isOwn } }
      registering.connected({ id, node, caller } as never)
    }
    const told = registrar.received.flatMap((event) => (event.type === 'WorkloadConnected' ? [event.workload.callers] : []))
    expect(told).to.deep.equal([[{ namespace: 'shop', account: 'vm' }], []])
  })
})
