/** The registration of workloads by one replica (docs/registration.md). */
import { expect } from 'chai'
import type { RegisteringWorkload } from '../../../protocols/messages/registration.ts'
import { status } from '../../../src/model/status-codes.ts'
import { entryName } from '../../../src/orchestrator/registered-entry.ts'
import { Registrations } from '../../../src/orchestrator/registrations.ts'
import { graceMs, groupId, groupOf, ModelServer, place, type Stored, settings, vms, workload } from '../../harness/model-entries.ts'

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
    const namespaces = new Map<string, string>()
    this.server.watchers.add((name, entry) => {
      if (entry) namespaces.set(name, entry.namespace)
      this.registrations.setEntry(`workloadentries.networking.mesh.io ${namespaces.get(name)}/${name}`, entry, this.now)
    })
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

  /** The API server answers all the time. */
  later(ms: number): string[] {
    for (const end = this.now + ms; this.now < end; ) {
      this.now = Math.min(end, this.now + 5000)
      this.registrations.listed([], [], this.now, this.now)
    }
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
    expect(refused(workload('10.0.0.1', { callers: [] }))[0]).to.contain(
      `${status.unauthenticated} its caller is not authenticated as a workload of this cluster`,
    )
    const of = (namespace: string, account: string) => workload('10.0.0.1', { callers: [{ namespace, account }] })
    expect(refused(of('other', 'vm'))).to.deep.equal([`${status.permissionDenied} its identity is not of namespace "shop"`])
    expect(refused(of('shop', 'cart'))).to.deep.equal([
      `${status.permissionDenied} ${group} is for service account "vm", which its identity is not of`,
    ])
    expect(refused(of('shop', 'vm'), groupOf({ template: {} }))[0]).to.contain('is for service account "default"')
    for (const address of [
      '127.0.0.1',
      '0.0.0.0',
      '::1',
      'fe80::1',
      '224.0.0.1',
      '100.100.100.200',
      '64:ff9b::7f00:1',
      '10.1',
      '0x0a000001',
      '167772161',
      'name',
    ])
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

  it('does not ask the server again at once for an entry that it does not permit, until its group changes', () => {
    const subject = new Subject()
    const { registrations } = subject
    let calls = 0
    const reconnect = (times: number, ms: number) => {
      for (let time = 0; time < times; time++) {
        subject.now += ms
        registrations.connected('w0', `c${subject.now}`, workload(), undefined, subject.now)
        const due = registrations.next(subject.now, '')
        if (due) calls++
        if (due) registrations.answered(due, { outcome: 'failed', reason: 'labels: invalid', concerns: 'object' }, subject.now, 0)
        expect(registrations.takeRefused().map(({ code, reason }) => [code, reason])).to.deep.equal([[status.failedPrecondition, 'labels: invalid']])
      }
    }
    reconnect(600, 100)
    expect(calls).to.be.within(4, 10)
    if (vms) registrations.setGroup(groupId, { ...vms, labels: {} }, subject.now)
    registrations.connected('w0', 'c', workload(), undefined, subject.now)
    expect(subject.work()).to.deep.equal(['create vms-10.0.0.1'])
  })

  it('does not make an entry anew for a workload that its group is not for any more', () => {
    const subject = new Subject()
    subject.registrations.connected('w0', 'c1', workload(), undefined, subject.now)
    subject.work()
    subject.registrations.setGroup(groupId, groupOf({ template: { serviceAccount: 'other' } }), subject.now)
    expect([subject.later(1000), subject.registrations.takeRefused()]).to.deep.equal([[], []])
    const { uid = '', resourceVersion = '' } = subject.server.entry('vms-10.0.0.1') ?? {}
    subject.server.do({ verb: 'delete', ...place, namespace: 'shop', name: 'vms-10.0.0.1', uid, resourceVersion })
    expect(subject.later(1000)).to.deep.equal([])
    expect(subject.registrations.takeRefused().map(({ connection, code }) => [connection, code])).to.deep.equal([['c1', status.permissionDenied]])
    expect(subject.registrations.counts).to.deep.equal({ connected: 0, kept: 0, waiting: 0 })
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
    // After its start a replica deletes nothing for a while (R7).
    subject.later(30_000)
    subject.registrations.connected('w0', 'c1', workload(), undefined, subject.now)
    subject.work()
    subject.registrations.disconnected('w0', 'c1', subject.now)
    expect(subject.later(999)).to.deep.equal([])
    expect(subject.later(1)).to.deep.equal(['patch vms-10.0.0.1'])
    expect(subject.server.entry('vms-10.0.0.1')).to.include({ connectedAt: '', disconnectedAt: 'date 32000', controller: 'r1' })
    expect(subject.later(graceMs - 1)).to.deep.equal([])
    expect(subject.later(1)).to.deep.equal(['delete vms-10.0.0.1'])
    expect(subject.registrations.counts).to.deep.equal({ connected: 0, kept: 0, waiting: 0 })
  })

  it('leaves the entries of a dead replica for as long as another one may need that takes all of them over', () => {
    const subject = new Subject()
    const annotations = { 'mesh.io/autoRegistrationGroup': 'vms', 'mesh.io/workloadController': 'dead' }
    const make = (number: number) => {
      const name = `vms-${number}`
      subject.server.do({ verb: 'create', ...place, namespace: 'shop', name, object: { metadata: { name, namespace: 'shop', annotations } } })
    }
    for (let number = 0; number < 1000; number++) make(number)
    const began = subject.now
    const isDeleting = () => {
      subject.registrations.listed([], ['dead'], subject.now, subject.now)
      return subject.work().length > 0
    }
    while (!isDeleting()) subject.now += 5000
    expect(subject.now - began).to.be.within(60_000 + 1000 * 100, 60_000 + 1000 * 100 + 10_000)
  })

  it('registers as many entries of the groups of an account as are permitted, and again when some are gone', () => {
    const subject = new Subject()
    const { registrations } = subject
    const second = { ...groupOf({ template: { serviceAccount: 'vm' } }), name: 'more', uid: 'g2' } as never
    const others = { ...groupOf({ template: { serviceAccount: 'other' } }), name: 'others', uid: 'g3' } as never
    registrations.setGroup('workloadgroups.networking.mesh.io shop/more', second, subject.now)
    registrations.setGroup('workloadgroups.networking.mesh.io shop/others', others, subject.now)
    const join = (number: number, more: Partial<RegisteringWorkload> = {}) =>
      registrations.connected('w0', `c${number}`, workload(`10.1.${number >> 8}.${number & 255}`, more), undefined, subject.now)
    const all = (list: readonly number[], more: Partial<RegisteringWorkload> = {}) => {
      for (const number of list) join(number, more)
    }
    const numbers = (from: number, count: number) => Array.from({ length: count }, (_, index) => from + index)
    all(numbers(1, 200))
    all(numbers(201, 100), { workloadGroup: 'more' })
    // What is waiting to be created counts.
    expect(registrations.takeRefused()).to.deep.equal([])
    for (const more of [{}, { workloadGroup: 'more' }]) {
      join(301, more)
      const [refused] = registrations.takeRefused()
      expect([refused?.code, refused?.connection]).to.deep.equal([status.resourceExhausted, 'c301'])
      expect(refused?.reason).to.contain('service account "vm" of namespace "shop" has 300 WorkloadEntries, and may have 300')
    }
    join(302, { workloadGroup: 'others', callers: [{ namespace: 'shop', account: 'other' }] })
    expect(registrations.takeRefused()).to.deep.equal([])
    while (subject.server.objects.size < 301) subject.later(1000)
    // Those that have entries connect again.
    registrations.connected('w0', 'again', workload('10.1.0.1'), undefined, subject.now)
    expect(registrations.takeRefused()).to.deep.equal([])
    registrations.disconnected('w0', 'c2', subject.now)
    while (subject.server.objects.size > 300) subject.later(1000)
    join(303)
    expect([registrations.takeRefused(), subject.later(1000)]).to.deep.equal([[], ['create vms-10.1.1.47']])
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

  it('does not leave an entry healthy whose workload has begun anew within the grace period and is broken', () => {
    const subject = new Subject()
    const { registrations, server } = subject
    const said = () => JSON.parse(server.entry('vms-10.0.0.1')?.conditions || '[]').map((each: Condition) => [each.status, each.message])
    const healthy = { isHealthy: true, message: '' }
    registrations.connected('w0', 'c1', workload(), undefined, subject.now)
    registrations.reported('w0', 'c1', healthy)
    expect(subject.work()).to.deep.equal(['create vms-10.0.0.1', 'health vms-10.0.0.1'])
    for (const awayMs of [0, 5000]) {
      registrations.disconnected('w0', 'c1', subject.now)
      subject.later(awayMs)
      registrations.connected('w0', 'c1', workload(), undefined, subject.now)
      subject.work()
      expect(subject.later(2999)).to.deep.equal([])
      expect(said(), 'an agent that goes on reports at once').to.deep.equal([['True', '']])
      expect(subject.later(1)).to.deep.equal(['health vms-10.0.0.1'])
      expect(said()).to.deep.equal([['False', 'the workload has connected again and has not reported that it is healthy']])
      registrations.reported('w0', 'c1', healthy)
      expect(subject.later(1000)).to.deep.equal(['health vms-10.0.0.1'])
      expect(said()).to.deep.equal([['True', '']])
    }
    // The earlier connection of the agent is not known to be gone yet.
    registrations.connected('w0', 'c2', workload(), undefined, subject.now)
    expect(subject.later(3000)).to.deep.equal(['health vms-10.0.0.1'])
    expect(said()[0][0]).to.equal('False')
    registrations.reported('w0', 'c2', healthy)
    registrations.disconnected('w0', 'c1', subject.now)
    subject.later(1000)
    expect(said()).to.deep.equal([['True', '']])
    // Without a probe nothing is reported.
    registrations.disconnected('w0', 'c2', subject.now)
    registrations.connected('w0', 'c3', workload('10.0.0.1', { isProbed: false }), undefined, subject.now)
    subject.later(60_000)
    expect(said()).to.deep.equal([['True', '']])
  })

  it('says which machines share an entry, as long as they do', () => {
    const subject = new Subject()
    const { registrations } = subject
    const machine = (node: string) => workload('10.0.0.1', { node })
    registrations.connected('w0', 'c1', machine('one'), undefined, subject.now)
    registrations.connected('w0', 'c2', machine('one'), undefined, subject.now)
    expect(registrations.shared).to.deep.equal([])
    registrations.connected('w1', 'c1', machine('two'), undefined, subject.now)
    expect(registrations.shared).to.have.length(1)
    expect(registrations.shared[0]).to.match(
      /^machines "one" and "two" register for WorkloadGroup "vms" of namespace "shop" with the same address 10\.0\.0\.1: they share one WorkloadEntry/,
    )
    registrations.disconnected('w1', 'c1', subject.now)
    expect(registrations.shared).to.deep.equal([])
  })

  it('says which machine has lost its entry to one at another replica, once its own connection cannot be one that has ended without a word', () => {
    const subject = new Subject()
    const { registrations } = subject
    registrations.connected('w0', 'c1', workload('10.0.0.1', { node: 'one' }), undefined, subject.now)
    subject.work()
    const keep = (controller: string) => {
      const { uid, resourceVersion } = subject.server.objects.get('vms-10.0.0.1')?.metadata ?? {}
      const annotations = { 'mesh.io/workloadController': controller, 'mesh.io/connectedAt': `by ${controller}` }
      const order = {
        verb: 'patch',
        ...place,
        namespace: 'shop',
        name: 'vms-10.0.0.1',
        patch: { metadata: { uid, resourceVersion, annotations } },
      } as const
      expect(subject.server.do(order).outcome).to.equal('done')
    }
    keep('r2')
    expect(subject.later(55_000), 'what is done').to.deep.equal([])
    expect(registrations.shared).to.deep.equal([])
    subject.later(5000)
    expect(registrations.shared).to.have.length(1)
    expect(registrations.shared[0]).to.match(
      /^machine "one" is connected to this replica, and its WorkloadEntry shop\/vms-10\.0\.0\.1 is kept by replica "r2", to which another machine/,
    )
    keep('r1')
    subject.later(5000)
    expect(registrations.shared).to.deep.equal([])
    keep('r2')
    subject.later(60_000)
    expect(registrations.shared).to.have.length(1)
    registrations.disconnected('w0', 'c1', subject.now)
    subject.later(5000)
    expect(registrations.shared).to.deep.equal([])
  })

  it('serves namespaces in turns, so that one with many calls delays its own: creations, health and what somebody has marked', () => {
    const subject = new Subject()
    const { registrations } = subject
    const others = { ...groupOf({ template: { serviceAccount: 'vm' } }), namespace: 'other', uid: 'g2' } as never
    registrations.setGroup('workloadgroups.networking.mesh.io other/vms', others, subject.now)
    const all = Array.from({ length: 250 }, (_, number) => number)
    for (const number of all) registrations.connected('w0', `c${number}`, workload(`10.0.1.${number}`), undefined, subject.now)
    const own = { namespace: 'other', callers: [{ namespace: 'other', account: 'vm' }] }
    const calls = subject.work()
    expect(calls).to.have.length(20)
    registrations.connected('w0', 'own', workload('10.0.2.1', own), undefined, subject.now)
    const soon = () => [...subject.later(50), ...subject.later(50), ...subject.later(50)]
    expect(soon()).to.include('create vms-10.0.2.1')
    while (subject.server.objects.size < 251) subject.later(50)
    const report = (of: readonly number[], isHealthy: boolean) => {
      for (const number of of) registrations.reported('w0', `c${number}`, { isHealthy, message: '' })
    }
    report(all, true)
    subject.later(1000)
    registrations.reported('w0', 'own', { isHealthy: true, message: '' })
    expect(soon()).to.include('health vms-10.0.2.1')
    // Somebody says of many entries that this replica keeps them, and so it marks them.
    for (const number of all.slice(0, 200)) {
      const [name, annotations] = [`more-${number}`, { 'mesh.io/autoRegistrationGroup': 'vms', 'mesh.io/workloadController': 'r1' }]
      subject.server.do({ verb: 'create', ...place, namespace: 'shop', name, object: { metadata: { name, namespace: 'shop', annotations } } })
    }
    subject.later(1000)
    registrations.connected('w0', 'more', workload('10.0.2.2', own), undefined, subject.now)
    expect(soon()).to.include('create vms-10.0.2.2')
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
