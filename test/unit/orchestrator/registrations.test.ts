/** The registration of workloads by one replica, and by several over one API server that is a model here (docs/registration.md). */
import { expect } from 'chai'
import fc from 'fast-check'
import type { EntryOrder, EntryOutcome, RegisteringWorkload, WorkloadEntryData } from '../../../protocols/messages/registration.ts'
import { status } from '../../../src/model/status-codes.ts'
import { LiveReplicas, presenceTimes } from '../../../src/orchestrator/live-replicas.ts'
import { entryData, entryName, groupData } from '../../../src/orchestrator/registered-entry.ts'
import { type RegistrationSettings, Registrations } from '../../../src/orchestrator/registrations.ts'
import { runs } from '../../harness/seed.ts'

const domain = 'mesh.io'
const graceMs = 10_000
const settings = (replica: string): RegistrationSettings => ({ replica, domain, graceMs, checksHealth: true })
const place = { group: 'networking.mesh.io', version: 'v1' }
const groupId = 'workloadgroups.networking.mesh.io shop/vms'
const groupOf = (spec: object) => groupData({ metadata: { name: 'vms', namespace: 'shop', uid: 'g1' } }, spec as never, place)
const vms = groupOf({
  metadata: { labels: { tier: 'group', app: 'ledger' }, annotations: { note: 'x' } },
  template: { serviceAccount: 'vm', labels: { app: 'template', tier: 'template', only: 'template' }, ports: { http: 7070 }, locality: 'eu/west' },
})
const workload = (address = '10.0.0.1', more: Partial<RegisteringWorkload> = {}): RegisteringWorkload => ({
  ...{ workloadGroup: 'vms', namespace: 'shop', address, network: '', locality: '', labels: {}, isProbed: true },
  callers: [{ namespace: 'shop', account: 'vm' }],
  ...more,
})

/** A new entry, as far as the tests look at it. */
interface Made {
  readonly apiVersion: string
  readonly metadata: { readonly labels: object; readonly annotations: object; readonly ownerReferences: object }
  readonly spec: object
}
interface Condition {
  readonly type: string
  readonly status: string
  readonly message?: string
}
type Stored = { metadata: Record<string, unknown>; spec?: unknown; status?: unknown }

/** A merge patch (RFC 7386). */
function merged(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const result: Record<string, unknown> = typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch))
    if (value === null) delete result[key]
    else result[key] = merged(result[key], value)
  return result
}

/** The API server, as far as entries are concerned. */
class ModelServer {
  readonly objects = new Map<string, Stored>()
  readonly log: string[] = []
  /** Called when an entry changes; undefined: it is gone. */
  readonly watchers = new Set<(name: string, entry: WorkloadEntryData | undefined) => void>()
  deleted: (name: string, object: Stored) => void = () => undefined
  #version = 0

  entry(name: string): WorkloadEntryData | undefined {
    const object = this.objects.get(name)
    return object && entryData(object as never, place, domain)
  }

  do(order: EntryOrder): EntryOutcome {
    const { name } = order
    const object = this.objects.get(name)
    const version = `${++this.#version}`
    if (order.verb === 'create') {
      if (object) return { outcome: 'conflict' }
      const made = order.object as Stored
      return this.#set(order.verb, name, { ...made, metadata: { ...made.metadata, uid: `u${version}`, resourceVersion: version } })
    }
    if (!object) return { outcome: 'gone' }
    const wanted = order.verb === 'delete' ? order : (order.patch.metadata as { uid: string; resourceVersion: string })
    if (wanted.uid !== object.metadata.uid || wanted.resourceVersion !== object.metadata.resourceVersion) return { outcome: 'conflict' }
    if (order.verb === 'delete') {
      this.log.push(`delete ${name}`)
      this.deleted(name, object)
      this.objects.delete(name)
      for (const tell of this.watchers) tell(name, undefined)
      return { outcome: 'done', entry: undefined }
    }
    const next = merged(object, order.patch) as Stored
    return this.#set(order.verb, name, { ...next, metadata: { ...next.metadata, resourceVersion: version } })
  }

  #set(verb: string, name: string, object: Stored): EntryOutcome {
    this.log.push(`${verb} ${name}`)
    this.objects.set(name, object)
    const entry = this.entry(name)
    for (const tell of this.watchers) tell(name, entry)
    return { outcome: 'done', entry }
  }
}

/** A registrar that is told of everything at once. */
class Subject {
  readonly server = new ModelServer()
  readonly registrations: Registrations
  now = 1000

  constructor(replica = 'r1', group = vms) {
    this.registrations = new Registrations(settings(replica), this.now)
    if (group) this.registrations.setGroup(groupId, group, this.now)
    this.registrations.knowsObjects(this.now)
    this.registrations.knowsConnections()
    this.registrations.listed([], [], this.now, this.now)
    this.server.watchers.add((name, entry) => this.registrations.setEntry(`workloadentries.networking.mesh.io shop/${name}`, entry, this.now))
  }

  /** Makes the calls that are due now. */
  work(): string[] {
    const before = this.server.log.length
    for (;;) {
      const due = this.registrations.next(this.now, `date ${this.now}`)
      if (!due) break
      this.registrations.answered(due, this.server.do(due.order), this.now, 0.5)
    }
    return this.server.log.slice(before)
  }

  later(ms: number): string[] {
    this.now += ms
    return this.work()
  }
}

describe('the registration of workloads', () => {
  it('makes an entry of group, node and address, under the own names', () => {
    const subject = new Subject()
    const labels = { app: 'node', instance: '1' }
    subject.registrations.connected('w0', 'c1', workload('fd00::1', { network: 'far', locality: 'us/east/a', labels }), undefined, subject.now)
    expect(subject.work()).to.deep.equal(['create vms-fd00--1-far'])
    const all = { app: 'node', instance: '1', tier: 'group', only: 'template' }
    const object = subject.server.objects.get('vms-fd00--1-far') as unknown as Made
    expect(object.apiVersion).to.equal('networking.mesh.io/v1')
    expect(object.metadata.labels).to.deep.equal(all)
    expect(object.metadata.annotations).to.deep.equal({
      note: 'x',
      'mesh.io/autoRegistrationGroup': 'vms',
      'mesh.io/workloadController': 'r1',
      'mesh.io/connectedAt': 'date 1000',
      'proxy.mesh.io/health-checks-enabled': 'true',
    })
    expect(object.metadata.ownerReferences).to.deep.equal([
      { apiVersion: 'networking.mesh.io/v1', kind: 'WorkloadGroup', name: 'vms', uid: 'g1', controller: true },
    ])
    const given = { serviceAccount: 'vm', ports: { http: 7070 }, address: 'fd00::1', network: 'far', locality: 'us/east/a' }
    expect(object.spec).to.deep.equal({ ...given, labels: all })
  })

  it('names entries by the last 253 characters, and refuses what is no name', () => {
    const long = entryName(workload('10.0.0.1', { workloadGroup: 'a'.repeat(253), network: 'net' }))
    expect([long?.length, long?.endsWith('a-10.0.0.1-net')]).to.deep.equal([253, true])
    expect(entryName(workload('10.0.0.1', { network: 'not_one' }))).to.equal(undefined)
    expect(entryName(workload('fd00::'))).to.equal('vms-fd00--0')
  })

  it('refuses what is not of the group, with the reason', () => {
    const refused = (given: RegisteringWorkload, group: typeof vms | null = vms) => {
      const subject = new Subject('r1', group ?? undefined)
      if (group === null) subject.registrations.setGroup(groupId, undefined, subject.now)
      subject.registrations.connected('w0', 'c1', given, undefined, subject.now)
      expect(subject.work()).to.deep.equal([])
      return subject.registrations.takeRefused().map(({ code, reason }) => `${code} ${reason.replace('the workload cannot be registered: ', '')}`)
    }
    const group = 'WorkloadGroup "vms" of namespace "shop"'
    expect(refused(workload(), null)).to.deep.equal([`${status.notFound} ${group} does not exist`])
    expect(refused(workload('10.0.0.1', { callers: [] }))[0]).to.contain(`${status.unauthenticated} its caller is not authenticated`)
    const of = (namespace: string, account: string) => workload('10.0.0.1', { callers: [{ namespace, account }] })
    expect(refused(of('other', 'vm'))).to.deep.equal([`${status.permissionDenied} its identity is not of namespace "shop"`])
    expect(refused(of('shop', 'cart'))).to.deep.equal([
      `${status.permissionDenied} ${group} is for service account "vm", which its identity is not of`,
    ])
    expect(refused(of('shop', 'vm'), groupOf({ template: {} }))[0]).to.contain('is for service account "default"')
    for (const address of ['127.0.0.1', '0.0.0.0', '::1', 'fe80::1', '224.0.0.1', 'name'])
      expect(refused(workload(address))).to.deep.equal([`${status.invalidArgument} others cannot reach it at "${address}"`])
    expect(refused(workload('10.0.0.1', { network: 'a b' }))[0]).to.contain('make no name of an object')
    // Where nobody is authenticated, whoever reaches the port may register.
    const open = new Subject()
    open.registrations.connected('w0', 'c1', workload('10.0.0.1', { callers: undefined }), undefined, open.now)
    expect(open.work()).to.deep.equal(['create vms-10.0.0.1'])
  })

  it('refuses a workload whose entry is somebody else’s, and one that the server does not permit', () => {
    const subject = new Subject()
    const make = (annotations: Record<string, string>) =>
      subject.server.do({
        verb: 'create',
        ...place,
        namespace: 'shop',
        name: 'vms-10.0.0.1',
        object: { metadata: { name: 'vms-10.0.0.1', namespace: 'shop', annotations } },
      })
    make({})
    subject.registrations.connected('w0', 'c1', workload(), undefined, subject.now)
    expect(subject.registrations.takeRefused()[0]?.reason).to.contain('WorkloadEntry shop/vms-10.0.0.1 exists and was not registered')
    expect(subject.later(100_000)).to.deep.equal([])
    subject.registrations.connected('w0', 'c2', workload('10.0.0.2'), undefined, subject.now)
    const due = subject.registrations.next(subject.now, '')
    if (!due) return expect.fail('no call')
    subject.registrations.answered(due, { outcome: 'failed', reason: 'labels: invalid', concerns: 'object' }, subject.now, 0)
    expect(subject.registrations.takeRefused().map(({ connection, reason }) => [connection, reason])).to.deep.equal([['c2', 'labels: invalid']])
  })

  it('waits for the group no longer than its connection: the next one finds a group that came meanwhile', () => {
    const subject = new Subject()
    subject.registrations.setGroup(groupId, undefined, subject.now)
    subject.registrations.connected('w0', 'c1', workload(), undefined, subject.now)
    expect(subject.registrations.takeRefused()).to.have.length(1)
    if (vms) subject.registrations.setGroup(groupId, vms, subject.now)
    subject.registrations.connected('w0', 'c2', workload(), undefined, subject.now)
    expect(subject.work()).to.deep.equal(['create vms-10.0.0.1'])
  })

  it('marks an entry a second after its workload has left, and deletes it after the grace period', () => {
    const subject = new Subject()
    subject.registrations.connected('w0', 'c1', workload(), undefined, subject.now)
    subject.work()
    subject.registrations.disconnected('w0', 'c1', subject.now)
    expect(subject.later(999)).to.deep.equal([])
    expect(subject.later(1)).to.deep.equal(['patch vms-10.0.0.1'])
    expect(subject.server.entry('vms-10.0.0.1')).to.include({ connectedAt: '', disconnectedAt: 'date 2000', controller: 'r1' })
    expect(subject.later(graceMs - 1)).to.deep.equal([])
    expect(subject.later(1)).to.deep.equal(['delete vms-10.0.0.1'])
    expect(subject.registrations.counts).to.deep.equal({ connected: 0, kept: 0, waiting: 0 })
  })

  it('writes nothing when a workload is back within a second, and takes its entry again within the grace period', () => {
    const subject = new Subject()
    const connect = (id: string) => subject.registrations.connected('w0', id, workload(), undefined, subject.now)
    connect('c1')
    subject.work()
    subject.registrations.disconnected('w0', 'c1', subject.now)
    subject.later(500)
    connect('c2')
    expect(subject.later(60_000)).to.deep.equal([])
    subject.registrations.disconnected('w0', 'c2', subject.now)
    expect(subject.later(5000)).to.deep.equal(['patch vms-10.0.0.1'])
    connect('c3')
    expect(subject.later(60_000)).to.deep.equal(['patch vms-10.0.0.1'])
    expect(subject.server.entry('vms-10.0.0.1')?.disconnectedAt).to.equal('')
  })

  it('takes over from the alias what a workload connects for, and leaves alone what nobody of this mesh keeps', () => {
    const subject = new Subject()
    const annotations = { 'istio.io/autoRegistrationGroup': 'vms', 'istio.io/workloadController': 'other', 'istio.io/connectedAt': 'x' }
    for (const name of ['vms-10.0.0.1', 'vms-10.0.0.2'])
      subject.server.do({ verb: 'create', ...place, namespace: 'shop', name, object: { metadata: { name, namespace: 'shop', annotations } } })
    expect(subject.later(3_600_000)).to.deep.equal([])
    subject.registrations.connected('w0', 'c1', workload(), undefined, subject.now)
    expect(subject.work()).to.deep.equal(['patch vms-10.0.0.1'])
    expect(Object.keys(subject.server.objects.get('vms-10.0.0.1')?.metadata.annotations ?? {}).sort()).to.deep.equal([
      'mesh.io/autoRegistrationGroup',
      'mesh.io/connectedAt',
      'mesh.io/workloadController',
    ])
  })

  it('writes the last health, beside conditions of others, once a second at most for an entry', () => {
    const subject = new Subject()
    const { registrations, server } = subject
    const health = (isHealthy: boolean, message = '') => registrations.reported('w0', 'c1', { isHealthy, message })
    registrations.connected('w0', 'c1', workload(), undefined, subject.now)
    health(true)
    expect(subject.work()).to.deep.equal(['create vms-10.0.0.1', 'health vms-10.0.0.1'])
    const said = () => JSON.parse(server.entry('vms-10.0.0.1')?.conditions || '[]').map((each: Condition) => [each.type, each.status, each.message])
    expect(said()).to.deep.equal([['Healthy', 'True', '']])
    const object = server.objects.get('vms-10.0.0.1') as Stored
    object.status = { conditions: [{ type: 'Reconciled', status: 'True' }, ...(object.status as { conditions: Condition[] }).conditions] }
    registrations.setEntry('workloadentries.networking.mesh.io shop/vms-10.0.0.1', server.entry('vms-10.0.0.1'), subject.now)
    for (let turn = 0; turn < 100; turn++) health(turn % 2 === 0, `turn ${turn}`)
    expect(subject.later(999)).to.deep.equal([])
    expect(subject.later(1)).to.deep.equal(['health vms-10.0.0.1'])
    expect(said()).to.deep.equal([
      ['Reconciled', 'True', undefined],
      ['Healthy', 'False', 'turn 99'],
    ])
    health(false, 'turn 99')
    expect(subject.later(60_000)).to.deep.equal([])
  })

  it('lets flapping workloads delay registrations by no more than every fourth call, at 20 calls a second', () => {
    const subject = new Subject()
    const { registrations } = subject
    const all = Array.from({ length: 200 }, (_, number) => number)
    for (const number of all) registrations.connected('w0', `c${number}`, workload(`10.0.1.${number}`), undefined, subject.now)
    let calls: string[] = subject.work()
    expect(calls).to.have.length(20)
    while (calls.length < 200) calls = [...calls, ...subject.later(50)]
    expect(subject.now).to.be.within(9900, 10_100)
    for (const number of all) registrations.reported('w0', `c${number}`, { isHealthy: true, message: '' })
    for (const number of all.slice(0, 30)) registrations.connected('w0', `d${number}`, workload(`10.0.2.${number}`), undefined, subject.now)
    calls = []
    while (calls.length < 40) calls = [...calls, ...subject.later(50)]
    expect(calls.filter((call) => call.startsWith('create'))).to.have.length(30)
  })
})

describe('replicas', () => {
  const lease = (name: string, version: string) => ({ name, version })

  it('are dead when their Lease has not changed for 20 s of this one’s time, or is gone', () => {
    const replicas = new LiveReplicas('me')
    const list = (at: number, keepers: string[], ...leases: ReturnType<typeof lease>[]) => replicas.listed(leases, keepers, at, at + 10)
    list(0, ['a', 'b'], lease('a', '1'), lease('b', '1'))
    for (let at = 5000; at < 20_000; at += 5000) expect(list(at, ['a', 'b'], lease('a', `${at}`), lease('b', '1'))).to.equal(false)
    expect(list(20_010, ['a', 'b'], lease('a', '9'), lease('b', '1'))).to.equal(true)
    expect([replicas.deadSince('a'), replicas.deadSince('b')]).to.deep.equal([undefined, 20_020])
    // It was only slow.
    expect(list(25_000, ['a', 'b'], lease('a', '10'), lease('b', '2'))).to.equal(true)
    expect(list(30_000, ['a', 'b'], lease('a', '11'))).to.equal(true)
    expect(replicas.deadSince('b')).to.equal(30_010)
    expect(list(35_000, ['a', 'me'], lease('a', '12'))).to.equal(true)
    expect([replicas.deadSince('b'), replicas.deadSince('me')]).to.deep.equal([undefined, undefined])
  })

  it('are not dead because nobody could renew or list for an hour', () => {
    const replicas = new LiveReplicas('me')
    replicas.listed([lease('a', '1')], ['a'], 0, 10)
    expect(replicas.listed([lease('a', '1')], ['a'], 3_600_000, 3_600_010)).to.equal(false)
    expect(replicas.deadSince('a')).to.equal(undefined)
  })

  it('that are dead and keep nothing lose their Lease a minute later', () => {
    const replicas = new LiveReplicas('me')
    for (let at = 0; at <= 100_000; at += 5000) replicas.listed([lease('a', '1')], ['a'], at, at + 10)
    expect(replicas.removable(new Set(['a']), 100_010)).to.deep.equal([])
    expect(replicas.removable(new Set(), 100_010)).to.deep.equal([lease('a', '1')])
  })
})

/** A replica in a simulation: its watch may be late, its calls may be lost, and its wall clock may jump. */
class SimulatedReplica {
  readonly registrations: Registrations
  readonly connections = new Map<number, string>()
  readonly name: string
  readonly #server: ModelServer
  readonly #leases: Map<string, number>
  #events: { readonly at: number; readonly name: string; readonly entry: WorkloadEntryData | undefined }[] = []
  readonly #unwatch: () => void
  #count = 0
  #presentAt: number
  lag = 0
  lost: ('before' | 'after')[] = []
  lostPresence = 0
  wall = 0

  constructor(name: string, server: ModelServer, leases: Map<string, number>, now: number) {
    this.name = name
    this.#server = server
    this.#leases = leases
    this.#presentAt = now
    this.registrations = new Registrations(settings(name), now)
    const tell = (entry: string, data: WorkloadEntryData | undefined) => void this.#events.push({ at: this.#time, name: entry, entry: data })
    server.watchers.add(tell)
    this.#unwatch = () => server.watchers.delete(tell)
    if (vms) this.registrations.setGroup(groupId, vms, now)
    for (const entry of server.objects.keys()) this.#see(entry, server.entry(entry), now)
    this.registrations.knowsObjects(now)
    this.registrations.knowsConnections()
  }

  #time = 0

  connect(machine: number, now: number): void {
    if (this.connections.has(machine)) return
    const id = `c${++this.#count}`
    this.connections.set(machine, id)
    this.registrations.connected('w', id, workload(`10.0.0.${machine + 1}`), undefined, now)
  }

  disconnect(machine: number, now: number): void {
    const id = this.connections.get(machine)
    this.connections.delete(machine)
    if (id !== undefined) this.registrations.disconnected('w', id, now)
  }

  end(): void {
    this.#unwatch()
  }

  tick(now: number): void {
    this.#time = now
    const due = this.#events.filter(({ at }) => at + this.lag <= now)
    this.#events = this.#events.filter((event) => !due.includes(event))
    for (const { name, entry } of due) this.#see(name, entry, now)
    if (now >= this.#presentAt) this.#present(now)
    for (;;) {
      const call = this.registrations.next(now, new Date(now + this.wall).toISOString())
      if (!call) return
      const lost = this.lost.shift()
      const outcome = lost === 'before' ? undefined : this.#server.do(call.order)
      this.registrations.answered(call, lost || !outcome ? { outcome: 'failed', reason: 'lost', concerns: 'all' } : outcome, now, 0.5)
    }
  }

  #see(name: string, entry: WorkloadEntryData | undefined, now: number): void {
    this.registrations.setEntry(`workloadentries.networking.mesh.io shop/${name}`, entry, now)
  }

  #present(now: number): void {
    this.#presentAt = now + presenceTimes.everyMs
    if (this.lostPresence > 0) {
      this.lostPresence--
      return
    }
    const { keepers } = this.registrations
    for (const { name } of this.registrations.replicas.removable(keepers, now)) this.#leases.delete(name)
    this.#leases.set(this.name, (this.#leases.get(this.name) ?? 0) + 1)
    this.registrations.listed(
      [...this.#leases].map(([name, version]) => ({ name, version: `${version}` })),
      keepers,
      now,
      now,
    )
  }
}

describe('the registration of workloads by three replicas', () => {
  const [tickMs, machines] = [250, 2]

  class Simulation {
    readonly server = new ModelServer()
    readonly leases = new Map<string, number>()
    readonly replicas: (SimulatedReplica | undefined)[]
    now = 0
    #starts = 0

    constructor() {
      this.replicas = [0, 1, 2].map(() => this.#made())
      this.server.deleted = (name, object) => {
        const entry = entryData(object as never, place, domain)
        const keeper = this.replicas.find((each) => each?.name === entry?.controller)
        const isConnected = keeper?.connections.has(Number(name.split('.').at(-1)) - 1)
        expect(isConnected && entry?.disconnectedAt === '', `${name} deleted while ${keeper?.name} keeps it`).to.not.equal(true)
      }
    }

    #made = () => new SimulatedReplica(`r${++this.#starts}`, this.server, this.leases, this.now)

    start(index: number): void {
      this.replicas[index] ??= this.#made()
    }

    kill(index: number): void {
      this.replicas[index]?.end()
      this.replicas[index] = undefined
    }

    pass(ms: number): void {
      for (const end = this.now + ms; this.now < end; ) {
        this.now += tickMs
        for (const replica of this.replicas) replica?.tick(this.now)
      }
    }

    /** What is so after all calls succeed again for long enough. */
    settle(): void {
      for (const replica of this.replicas) if (replica) Object.assign(replica, { lag: 0, lost: [], lostPresence: 0 })
      this.pass(presenceTimes.deadMs + 5 * presenceTimes.everyMs + graceMs + 40_000)
      for (let machine = 0; machine < machines; machine++) {
        const having = this.replicas.filter((replica) => replica?.connections.has(machine)).map((replica) => replica?.name)
        const entry = this.server.entry(`vms-10.0.0.${machine + 1}`)
        if (having.length === 0) expect(entry, 'left for ever').to.equal(undefined)
        else expect([having.includes(entry?.controller), entry?.disconnectedAt]).to.deep.equal([true, ''])
      }
      const live = this.replicas.flatMap((replica) => replica?.name ?? [])
      this.pass(presenceTimes.keptMs + 3 * presenceTimes.everyMs)
      if (live.length > 0) expect([...this.leases.keys()].sort()).to.deep.equal(live.sort())
    }
  }

  it('moves an entry with its workload without marking or deleting it, and cleans up after a killed replica', () => {
    const simulation = new Simulation()
    const [one, two] = simulation.replicas as [SimulatedReplica, SimulatedReplica]
    one.connect(0, 0)
    simulation.pass(1000)
    one.disconnect(0, simulation.now)
    simulation.pass(500)
    two.connect(0, simulation.now)
    simulation.pass(60_000)
    expect(simulation.server.log).to.deep.equal(['create vms-10.0.0.1', 'patch vms-10.0.0.1'])
    simulation.kill(1)
    simulation.pass(500)
    one.connect(0, simulation.now)
    simulation.pass(60_000)
    expect(simulation.server.log.slice(2)).to.deep.equal(['patch vms-10.0.0.1'])
    simulation.kill(0)
    simulation.pass(20_000)
    expect(simulation.server.log).to.have.length(3)
    simulation.pass(25_000)
    expect(simulation.server.log.slice(3)).to.deep.equal(['delete vms-10.0.0.1'])
  })

  it('leaves no entry for ever and deletes none whose workload is connected, whatever happens', () => {
    const [replica, machine] = [fc.nat(2), fc.nat(machines - 1)]
    const change = fc.oneof(
      { weight: 4, arbitrary: fc.record({ type: fc.constant('connect' as const), replica, machine }) },
      { weight: 3, arbitrary: fc.record({ type: fc.constant('disconnect' as const), replica, machine }) },
      { weight: 4, arbitrary: fc.record({ type: fc.constant('pass' as const), ms: fc.constantFrom(250, 1000, 3000, 11_000, 30_000) }) },
      fc.record({ type: fc.constant('kill' as const), replica }),
      fc.record({ type: fc.constant('start' as const), replica }),
      fc.record({
        type: fc.constant('lose' as const),
        replica,
        calls: fc.array(fc.constantFrom('before' as const, 'after' as const), { maxLength: 4 }),
      }),
      fc.record({ type: fc.constant('unseen' as const), replica }),
      fc.record({ type: fc.constant('lag' as const), replica, ms: fc.constantFrom(0, 250, 2000) }),
      fc.record({ type: fc.constant('jump' as const), replica, ms: fc.constantFrom(-86_400_000, 86_400_000) }),
    )
    fc.assert(
      fc.property(fc.array(change, { maxLength: 50 }), (changes) => {
        const simulation = new Simulation()
        for (const each of changes) {
          if (each.type === 'pass') {
            simulation.pass(each.ms)
            continue
          }
          const of = simulation.replicas[each.replica]
          if (each.type === 'start') simulation.start(each.replica)
          else if (each.type === 'kill') simulation.kill(each.replica)
          else if (!of) continue
          else if (each.type === 'connect') of.connect(each.machine, simulation.now)
          else if (each.type === 'disconnect') of.disconnect(each.machine, simulation.now)
          else if (each.type === 'lose') of.lost.push(...each.calls)
          else if (each.type === 'unseen') of.lostPresence = 1
          else if (each.type === 'lag') of.lag = each.ms
          else of.wall += each.ms
        }
        simulation.settle()
      }),
      { numRuns: runs(400) },
    )
  })
})
