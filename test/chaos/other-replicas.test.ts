/** The exchange of replicas of discovery over real connections: who may ask, and what a slow, dead or lying one costs (docs/operation.md, A1 to A6). */
import { createServer, type Server, type Socket } from 'node:net'
import { connect } from 'node:tls'
import { expect } from 'chai'
import { OtherReplicas } from '../../actors/discovery/admin/other-replicas.ts'
import { askReplica, ReplicaPort, replicaBounds, replicaKey } from '../../actors/discovery/admin/replica-port.ts'
import { presenceTimes } from '../../src/orchestrator/live-replicas.ts'
import { OwnTime } from '../harness/own-time.ts'

const secrets = { versionKey: '07'.repeat(32), lockedKeys: '' }
const key = replicaKey(secrets, 'mesh-system', '')
const row = { connectionId: 'a-1', namespace: 'shop', bytes: 1 }

describe('replicas that ask each other', () => {
  const ends: { close(): unknown }[] = []
  const replica = async (answer: () => Promise<unknown>, of = key): Promise<number> => {
    const port = new ReplicaPort(of)
    ends.push(port)
    port.answerWith(answer)
    return port.listen('127.0.0.1', 0)
  }
  /** A program that accepts connections and says nothing. */
  const silent = async (): Promise<number> => {
    const sockets: Socket[] = []
    const server: Server = createServer((socket) => void sockets.push(socket.on('error', () => undefined)))
    ends.push({
      close() {
        server.close()
        for (const socket of sockets) socket.destroy()
      },
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return (server.address() as { port: number }).port
  }
  const others = (leases: Readonly<Record<string, string>>, ask?: typeof askReplica) => {
    const made = new OtherReplicas({ own: 'own', revision: '', key, ...(ask && { ask }) })
    const rows = Object.entries({ own: '127.0.0.1:3', ...leases }).map(([name, address]) => ({ name, version: '1', address, revision: '' }))
    made.listed(rows, 0, 0)
    return { made, rows }
  }
  afterEach(async () => {
    for (const each of ends.splice(0)) await each.close()
  })

  it('answer with the rows of all, and name one that does not answer, refuses or lies, within the bound', async () => {
    const { made } = others({
      good: `127.0.0.1:${await replica(async () => [row])}`,
      hangs: `127.0.0.1:${await silent()}`,
      never: `127.0.0.1:${await replica(() => new Promise(() => undefined))}`,
      lies: `127.0.0.1:${await replica(async () => [{ ...row, namespace: 7 }])}`,
      fails: `127.0.0.1:${await replica(() => Promise.reject(new Error('no writer')))}`,
      gone: '127.0.0.1:1',
      mute: '',
      old: `127.0.0.1:${await replica(() => Promise.reject(new Error('there is no such question')))}`,
    })
    const asking = new OwnTime()
    const { answers, replicas } = await made.ask('slow')
    expect(asking.ms()).to.be.below(replicaBounds.ms + 2000)
    expect(answers).to.deep.equal([{ replica: 'good', value: [row] }])
    const reasons = Object.fromEntries(replicas.map(({ name, answered, reason }) => [name, answered || reason]))
    expect(Object.keys(reasons)).to.deep.equal(['fails', 'gone', 'good', 'hangs', 'lies', 'mute', 'never', 'old'])
    expect(reasons.good).to.equal(true)
    expect(reasons.fails).to.equal('it answers with status 500: no writer')
    expect(reasons.gone).to.contain('ECONNREFUSED')
    expect(reasons.old).to.equal('it does not know this question')
    expect(await made.askOne('old', 'slow').catch(String)).to.contain('replica old is of an older release: ')
    expect(reasons.lies).to.contain('has another form than it should')
    expect(reasons.mute).to.contain('MESHD_REPLICA_ADDRESS')
    for (const name of ['hangs', 'never']) expect(reasons[name], name).to.contain(`${replicaBounds.ms} ms`)
  })

  it('refuse whoever has another key: of another revision, another namespace, or a certificate only', async () => {
    let asked = 0
    const port = await replica(async () => ++asked)
    const refused = async (other: Buffer) =>
      askReplica({ host: '127.0.0.1', port, key: other }, 'slow', []).then(
        () => 'answered',
        () => 'refused',
      )
    expect(await refused(replicaKey(secrets, 'mesh-system', 'canary'))).to.equal('refused')
    expect(await refused(replicaKey(secrets, 'shop', ''))).to.equal('refused')
    expect(await refused(replicaKey({ ...secrets, versionKey: '08'.repeat(32) }, 'mesh-system', ''))).to.equal('refused')
    const ended = await new Promise<string>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
      socket.once('secureConnect', () => resolve('connected')).once('error', () => resolve('refused'))
    })
    expect(ended).to.equal('refused')
    expect(asked).to.equal(0)
    expect(await askReplica({ host: '127.0.0.1', port, key }, 'slow', [])).to.equal(1)
  })

  it('name what is longer than the bound, and do not read it whole', async () => {
    const port = await replica(async () => 'x'.repeat(200_000))
    const bounds = { ...replicaBounds, bytes: 100_000 }
    const error = await askReplica({ host: '127.0.0.1', port, key }, 'slow', [], bounds).catch((reason: Error) => reason.message)
    expect(error).to.equal('the answer is longer than 100000 bytes')
  })

  it('are asked by their Leases: one whose Lease is not renewed is named and not asked, and those of another revision are none', async () => {
    const asked: number[] = []
    const ask: typeof askReplica = async ({ port }) => {
      asked.push(port)
      return []
    }
    const { made, rows } = others({ a: '127.0.0.1:11', b: '127.0.0.1:12' }, ask)
    const renewed = (version: string, now: number) => {
      const present = rows.map((lease) => (lease.name === 'b' ? lease : { ...lease, version }))
      made.listed([...present, { name: 'c', version, address: '127.0.0.1:13', revision: 'canary' }], now, now)
    }
    for (let now = 5000; now <= presenceTimes.deadMs; now += 5000) renewed(`${now}`, now)
    expect((await made.ask('slow')).replicas).to.deep.equal([
      { name: 'a', answered: true, reason: '' },
      { name: 'b', answered: false, reason: 'its Lease has not been renewed for 20 s' },
    ])
    expect(asked).to.deep.equal([11])
    renewed('later', presenceTimes.deadMs + 5000)
    expect(made.removable(presenceTimes.deadMs + presenceTimes.keptMs + 1).map(({ name }) => name)).to.deep.equal(['b'])
  })

  it('are not those whose address another one has: their processes are gone', async () => {
    const { made, rows } = others({ a: '127.0.0.1:11', former: '127.0.0.1:11', 'own-before': '127.0.0.1:3', silent: '127.0.0.1:12' }, async () => [])
    const renewed = (now: number) =>
      made.listed(
        rows.map((lease) => (lease.name === 'a' ? { ...lease, version: `${now}` } : lease)),
        now,
        now,
      )
    renewed(5000)
    expect((await made.ask('slow')).replicas.map(({ name }) => name)).to.deep.equal(['a', 'silent'])
    for (let now = 10_000; now <= presenceTimes.deadMs; now += 5000) renewed(now)
    const { replicas } = await made.ask('slow')
    expect(replicas.map(({ name, answered }) => [name, answered])).to.deep.equal([
      ['a', true],
      ['silent', false],
    ])
    expect(made.removable(presenceTimes.deadMs + presenceTimes.keptMs + 1).map(({ name }) => name)).to.include.members(['former', 'own-before'])
  })

  it('ask all that live, however many Leases of dead ones sort before theirs', async () => {
    const ask: typeof askReplica = async () => []
    const dead = Object.fromEntries(Array.from({ length: 40 }, (_, number) => [`a${number}`, '127.0.0.1:1']))
    const { made, rows } = others({ ...dead, r2: '127.0.0.1:2' }, ask)
    for (let now = 5000; now <= presenceTimes.deadMs; now += 5000)
      made.listed(
        rows.map((lease) => (lease.name === 'r2' ? { ...lease, version: `${now}` } : lease)),
        now,
        now,
      )
    const { replicas } = await made.ask('slow')
    expect(replicas.filter(({ answered }) => answered)).to.deep.equal([{ name: 'r2', answered: true, reason: '' }])
    expect(new Set(replicas.flatMap(({ answered, reason }) => (answered ? [] : [reason])))).to.deep.equal(
      new Set(['its Lease has not been renewed for 20 s']),
    )
  })

  it('ask a bounded number of replicas, and a bounded number of questions at a time', async () => {
    const answers: (() => void)[] = []
    const ask = (() => new Promise((resolve) => answers.push(() => resolve([])))) as typeof askReplica
    const { made } = others(
      Object.fromEntries(Array.from({ length: 40 }, (_, number) => [`r${String(number).padStart(2, '0')}`, '127.0.0.1:1'])),
      ask,
    )
    const first = made.ask('slow')
    const more = Array.from({ length: 7 }, () => made.ask('slow'))
    const refused = await made.ask('slow')
    expect(refused.replicas.every(({ reason }) => reason.includes('too many questions'))).to.equal(true)
    for (const answer of answers) answer()
    expect((await first).replicas.filter(({ answered }) => answered)).to.have.length(32)
    await Promise.all(more)
  })
})
