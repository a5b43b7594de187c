import { expect } from 'chai'
import { DeferredRemovals } from '../../actors/discovery/push-queue/idle-work.ts'
import { assignmentsOf, Proxies } from '../../actors/discovery/push-queue/proxies.ts'
import { PushSchedule } from '../../actors/discovery/push-queue/push-schedule.ts'
import { WantedKeys } from '../../actors/discovery/push-queue/wanted-keys.ts'
import { Writers } from '../../actors/discovery/push-queue/writers.ts'
import { monotonicMs } from '../../actors/runtime/clock.ts'
import type { ProxyNode } from '../../protocols/data.ts'
import type { ResolverCommand, WriterCommand } from '../../protocols/messages/push.ts'
import { emptyPush } from '../../src/push/audience.ts'
import { IdentityShares } from '../../src/push/classes/identity-shares.ts'
import { RecordingPeer } from '../harness/actor.ts'
import { until } from '../harness/until.ts'

describe('the writers of the push queue', () => {
  const push = { startedAt: 0, reasons: [], digest: 'l' }

  /** One class with one group. */
  const present = {
    manifest: (classId: string) => ({ classId, groups: { type: [{ group: 'g', hide: [] }] } }),
    wholeUpdate: (group: string) => ({ group, sequence: 1, base: 0, version: '0', changed: [], removed: [] }),
    slab: () => undefined,
  }
  const two = () => {
    const writers = new Writers(present)
    const peers = ['xds-writer/0', 'xds-writer/1'].map((name) => new RecordingPeer<WriterCommand>(name))
    for (const peer of peers) writers.add(peer)
    return {
      writers,
      peers,
      numbers: () => peers.map(({ received }) => received.map((command) => command.type === 'PublishPush' && command.push.id)),
    }
  }

  it('count only pushes of changes', () => {
    const { writers, numbers } = two()
    expect([writers.publish(push, emptyPush), writers.lastPush]).to.deep.equal([false, 0])
    writers.send({ ...push, id: 0 }, { ...emptyPush, retiredSlabs: [1] })
    expect([numbers(), writers.lastPush]).to.deep.equal([[[], []], 0])
    expect([writers.publish(push, { ...emptyPush, whole: true }), writers.lastPush]).to.deep.equal([true, 1])
    writers.remove('xds-writer/1')
    expect([writers.names, writers.isLastSent('l')]).to.deep.equal([['xds-writer/0'], true])
  })

  it('are sent between pushes of changes only what concerns them; the push of a change sets the version for all proxies', () => {
    const { writers, numbers } = two()
    const connected = { ...emptyPush, assignments: [{ connection: 'xds-writer/1/a', classId: 'c' }] }
    writers.publish({ ...push, digest: 'first' }, { ...emptyPush, whole: true })
    writers.send({ ...push, digest: 'second', id: 1 }, connected)
    expect(numbers()).to.deep.equal([[1], [1, 1]])
    expect(['first', 'second', 'third'].map((digest) => writers.isLastSent(digest))).to.deep.equal([true, true, false])
    const patch = { group: 'g', sequence: 2, base: 1, version: '1', changed: [], removed: [] }
    writers.publish({ ...push, digest: 'third' }, { ...emptyPush, groups: [patch] })
    expect(numbers()).to.deep.equal([
      [1, 2],
      [1, 1, 2],
    ])
    expect(['first', 'second', 'third'].map((digest) => writers.isLastSent(digest))).to.deep.equal([false, false, true])
  })

  it('are sent their own proxies under their own names', () => {
    const assignments = [
      { connection: 'xds-writer/1/a', classId: 'c' },
      { connection: 'xds-writer/10/b', classId: 'c' },
    ]
    expect(assignmentsOf('xds-writer/1', assignments)).to.deep.equal([{ connection: 'a', classId: 'c' }])
  })
})

const boundless = () => new IdentityShares({ streams: 1e9, classes: 1e9, nodeBytes: 1e9 })

describe('the proxies of the push queue', () => {
  it('are removed with their writer', () => {
    const there = new Set<string>()
    const proxies = new Proxies(
      { connect: (name: string) => there.add(name), disconnect: (name: string) => there.delete(name) } as never,
      boundless(),
    )
    const node = {} as ProxyNode
    for (const writer of ['xds-writer/0', 'xds-writer/1']) {
      proxies.addWriter(writer)
      for (const connection of ['a', 'b']) proxies.connected(writer, { type: 'ProxyConnected', connection, transport: 1, node })
    }
    proxies.disconnected('xds-writer/1', 'b')
    proxies.removeWriter('xds-writer/0')
    expect([...there]).to.deep.equal(['xds-writer/1/a'])
  })

  it('are moved to other writers only while few connect or disconnect', () => {
    const proxies = new Proxies({ connect: () => {}, disconnect: () => {} } as never, boundless())
    for (const writer of ['w/0', 'w/1']) proxies.addWriter(writer)
    const node = {} as ProxyNode
    for (let transport = 0; transport < 40; transport++)
      proxies.connected('w/0', { type: 'ProxyConnected', connection: String(transport), transport, node })
    expect([...proxies.surplus()], 'all of them have just come').to.deep.equal([])
    expect([...proxies.surplus()]).to.deep.equal([['w/0', 3]])
  })
})

describe('the key sets of the push queue', () => {
  it('are requested on change, delay the first push until they are known, and are dropped if no policy names them', () => {
    const known = new Map<string, string | undefined>()
    const usual = (...names: string[]) => new Map(names.map((name) => [name, { timeoutMs: 5000, namespaces: ['ns'] }]))
    let sources = usual('a', 'b')
    const keys = new WantedKeys({ keySources: () => sources, setKeySet: (source, value) => Boolean(known.set(source, value)) })
    const resolver = new RecordingPeer<ResolverCommand>('jwks-resolver')
    keys.subscribe()
    keys.linked(resolver)
    keys.subscribe()
    expect(resolver.received.map((command) => command.sources.map(({ source }) => source))).to.deep.equal([[], ['a', 'b']])
    expect(keys.delaysFirstPush(() => {})).to.equal(true)
    expect([keys.received('a', 'keys'), keys.received('b', undefined)]).to.deep.equal([true, false])
    expect(keys.delaysFirstPush(() => {})).to.equal(false)
    sources = usual('b')
    keys.subscribe()
    expect([...known]).to.deep.equal([['a', undefined]])
    sources = new Map([['b', { timeoutMs: 7000, namespaces: ['ns'] }]])
    keys.subscribe()
    expect(resolver.received.at(-1)?.sources, 'another time limit').to.deep.equal([{ source: 'b', timeoutMs: 7000, namespaces: ['ns'] }])
    expect([keys.received('b', 'keys'), keys.dropped('b')]).to.deep.equal([true, true])
    expect([...known], 'no place for it').to.deep.equal([
      ['a', undefined],
      ['b', undefined],
    ])
    keys.unlinked()
    sources = usual('c')
    keys.subscribe()
    expect(resolver.received.at(-1)?.sources.map(({ source }) => source)).to.deep.equal(['b'])
    keys.close()
  })
})

describe('the schedule of pushes', () => {
  it('starts none before the first, and then one at a time with all its reasons', async () => {
    const begun: string[][] = []
    const counted: unknown[] = []
    const schedule = new PushSchedule({ after: 5, max: 50 }, false, () => begun.push([...schedule.begin().reasons]), {
      changed: (waits) => counted.push(waits),
      due: (cause) => counted.push(cause),
    })
    schedule.changed('config', 7, false)
    const first = schedule.begin()
    expect([first.reasons, first.startedAt, first.events]).to.deep.equal([['config'], 7, 1])
    for (const reason of ['service', 'global', 'service']) schedule.changed(reason, monotonicMs(), false)
    expect(begun).to.deep.equal([])
    schedule.sent(1, ['a', 'b'])
    schedule.answered('a', 1)
    expect(begun).to.deep.equal([])
    schedule.gone('b')
    await until('the next', () => begun.length === 1)
    expect(begun).to.deep.equal([['service', 'global']])
    expect(counted).to.deep.equal([false, false, true, true, 'quiet'])
    schedule.close()
  })
})

describe('deferred removals of the push queue', () => {
  it('happen when they are due, however often they are scheduled', async () => {
    const due = [monotonicMs() + 30, monotonicMs() + 60]
    const left: number[] = []
    const removals = new DeferredRemovals(
      () => due[0],
      () => left.push(due.shift() as number),
    )
    for (let time = 0; time < 3; time++) removals.schedule()
    await until('both to go', () => left.length === 2)
    expect(due).to.deep.equal([])
    removals.close()
  })
})
