/** The part of a cluster's watcher that follows Secrets, without a cluster (docs/resources.md, K11, K12): what is kept, and who is asked about. */
import { expect } from 'chai'
import { SecretReaders } from '../../actors/discovery/sources/orchestrator/secret-readers.ts'
import { mostOwn, SecretsPart, type SecretsParts } from '../../actors/discovery/sources/orchestrator/secrets-part.ts'
import { SlowSecrets } from '../../actors/discovery/sources/orchestrator/slow-secrets.ts'
import type { Follower } from '../../actors/discovery/sources/orchestrator/watcher-part.ts'
import { SeenReports } from '../../actors/discovery/sources/seen-reports.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { SeenEvent } from '../../protocols/messages/analysis.ts'
import type { SecretEvent, SecretReader } from '../../protocols/messages/secrets.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import { RecordingPeer } from '../harness/actor.ts'
import { type Pair, pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { until } from '../harness/until.ts'

describe('the Secrets of a cluster', () => {
  const made = new SiteCertificates()
  let sites: Pair[]
  before(() => {
    const root = made.authority('sites')
    sites = ['a', 'b'].map((name) => made.issue(`${name}.example`, root))
  })
  after(() => made.dispose())

  /** A part whose API server is the test. */
  class Subject {
    readonly log: string[] = []
    readonly writer = new RecordingPeer<SecretEvent>('xds-writer/0')
    /** What is followed, by path. */
    readonly followed = new Map<string, Follower>()
    /** How many lists were begun. */
    begun = 0
    /** The faults that were told later than their objects were read. */
    readonly late: string[] = []
    readonly reports = new SeenReports('orchestrator')
    readonly part: SecretsPart

    constructor(...namespaces: readonly string[]) {
      this.part = new SecretsPart({ ...{ names: meshNames('mesh.io'), cluster: 'c1', namespaces }, ...this.#parts })
    }

    readonly #parts: Omit<SecretsParts, 'names' | 'cluster' | 'namespaces'> = {
      following: {
        follow: (follower) => {
          this.followed.set(follower.resource.path, follower)
          this.begun++
        },
        unfollow: (path) => void this.followed.delete(path),
        tellFaults: (_, key, faults) => void this.late.push(...faults.map(({ path, reason }) => `${key} ${path}: ${reason}`)),
      },
      metrics: new MetricRegistry(),
      log: createLogger({ output: { fallback: 'debug', scopes: {} }, stackTrace: { fallback: 'none', scopes: {} }, callers: [] }, ({ message }) =>
        this.log.push(message),
      ),
      seen: this.reports,
      mayList: async ({ account }) => account !== 'other',
      lingerMs: 20,
    }

    /** The first that is followed. */
    get follower(): Follower | undefined {
      return [...this.followed.values()][0]
    }

    /** What tells of a Secret: that of its namespace, or the one for all. */
    #teller(path: string): Follower | undefined {
      return this.of(path.split('/')[0] ?? '') ?? this.follower
    }

    /** What is followed of a namespace. */
    of(namespace: string): Follower | undefined {
      return [...this.followed.values()].find((each) => each.resource.namespace === namespace)
    }

    want(...wanted: readonly (readonly [reader: string, ...names: string[]])[]): void {
      const command = wanted.map(([reader, ...names]) => {
        const [namespace = '', account = ''] = reader.split('/')
        return { reader: { namespace, account }, names }
      })
      this.part.wanted(this.writer, { type: 'SecretsWanted', wanted: command })
    }

    /** Tells of a Secret with the certificate of a site. */
    tell(path: string, site: number, accounts: string | null = null): void {
      this.tellValues(path, pairValues(sites[site] as Pair), accounts)
    }

    tellValues(path: string, values: Record<string, string>, accounts: string | null = null): void {
      const document = JSON.parse(secretDocument(path, values, 'kubernetes.io/tls', accounts))
      const follower = this.#teller(path)
      const { object } = follower?.cut(document) ?? {}
      // One that cannot be used is not set.
      if (object !== undefined) follower?.set(path, object)
    }

    /** What the writer was told last: the site, `none`, or `refused`. */
    last(reader: string, name: string): string | undefined {
      const event = this.writer.received.filter((each) => `${each.reader.namespace}/${each.reader.account}` === reader && each.name === name).at(-1)
      if (!event) return undefined
      const key = event.material?.pair && Buffer.from(event.material.pair.key).toString()
      return event.isRefused ? 'refused' : key === undefined ? 'none' : String(sites.findIndex((site) => site.key === key))
    }
  }

  it('are followed by namespace, when the first of one is wanted, and for a while after the last', async () => {
    const subject = new Subject()
    subject.want()
    expect(subject.begun).to.equal(0)
    subject.want(['edge/gw', 'one', 'two'])
    expect([...subject.followed.keys()].map((path) => path.replace(/[?].*/, ''))).to.deep.equal(['/api/v1/namespaces/edge/secrets'])
    subject.tell('edge/one', 0)
    subject.tell('edge/two', 1)
    expect(subject.last('edge/gw', 'absent')).to.equal(undefined)
    subject.of('edge')?.listed?.()
    await until('the first', () => subject.last('edge/gw', 'one') === '0')
    subject.want(['edge/gw', 'one', 'two', 'absent'], ['shop/gw', 'one'])
    expect(subject.last('edge/gw', 'absent')).to.equal('none')
    expect(subject.last('shop/gw', 'one'), 'of a namespace that is not listed yet').to.equal(undefined)
    expect(subject.begun, 'only the further namespace is listed').to.equal(2)
    subject.tell('shop/one', 1)
    await until('that of the other namespace', () => subject.last('shop/gw', 'one') === '1')
    expect(subject.part.summaries().map(({ namespace, name }) => `${namespace}/${name}`)).to.deep.equal(['edge/one', 'edge/two', 'shop/one'])
    // A gateway that comes again at once finds its namespace followed.
    subject.want(['shop/gw', 'one'])
    subject.want(['shop/gw', 'one'], ['edge/gw', 'one'])
    expect([subject.begun, subject.last('edge/gw', 'one')]).to.deep.equal([2, '0'])
    subject.want(['edge/gw', 'one'])
    await until('the end of the other', () => subject.of('shop') === undefined)
    expect(subject.part.summaries().map(({ namespace, name }) => `${namespace}/${name}`)).to.deep.equal(['edge/one', 'edge/two'])
    subject.want(['edge/gw', 'one'], ['shop/gw', 'one'])
    expect([subject.begun, subject.part.summaries().length]).to.deep.equal([3, 2])
    subject.part.close()
  })

  it('are told to the analyzer with the keys that they have, where they are read, and with nothing of their values', async () => {
    const subject = new Subject()
    const analyzer = new RecordingPeer<SeenEvent>('analyzer')
    subject.reports.linked(analyzer)
    const last = (namespace: string) => {
      const event = analyzer.received.findLast((each) => each.type === 'SecretsSeen' && each.namespace === namespace)
      return event?.type === 'SecretsSeen' ? event.secrets?.map(({ name, keys }) => `${name}: ${keys?.join(' ')}`) : undefined
    }
    subject.want(['edge/gw', 'one'])
    subject.tell('edge/one', 0)
    // Not one of these can be used by gateways.
    subject.tellValues('edge/half', { 'tls.crt': 'x', 'tls.key': '', token: 'hunter2' })
    expect(last('edge'), 'before all are read').to.equal(undefined)
    subject.of('edge')?.listed?.()
    expect(last('edge')).to.deep.equal(['one: tls.crt tls.key', 'half: tls.crt'])
    subject.of('edge')?.set('edge/half', undefined)
    subject.part.settled()
    expect(last('edge')).to.deep.equal(['one: tls.crt tls.key'])
    subject.of('edge')?.failed?.('forbidden')
    expect(last('edge'), 'while they cannot be read').to.equal(undefined)
    subject.of('edge')?.recovered?.()
    expect(last('edge')).to.deep.equal(['one: tls.crt tls.key'])
    subject.want(['shop/gw', 'one'])
    await until('the end of the namespace', () => subject.of('edge') === undefined)
    expect([last('edge'), last('shop')]).to.deep.equal([undefined, undefined])
    const text = JSON.stringify(analyzer.received)
    for (const secret of ['hunter2', 'PRIVATE', (sites[0] as Pair).key.slice(40, 80)]) expect(text).not.to.include(secret)
    subject.part.close()
  })

  it('of many namespaces are followed together, listed again for each that comes, and by namespace again when there are few', async () => {
    const subject = new Subject()
    const many = (number: number) => Array.from({ length: number }, (_, index) => [`n${index}/gw`, 'one'] as const)
    subject.want(['edge/gw', 'one', 'two'], ...many(mostOwn - 1))
    expect([subject.begun, subject.followed.size]).to.deep.equal([mostOwn, mostOwn])
    subject.tell('edge/one', 0)
    subject.tell('edge/two', 1)
    subject.of('edge')?.listed?.()
    await until('the first', () => subject.last('edge/gw', 'two') === '1')
    subject.want(['edge/gw', 'one', 'two'], ['shop/gw', 'one'], ...many(mostOwn - 1))
    await until('one list for all', () => subject.begun === mostOwn + 1)
    expect([subject.followed.size, subject.follower?.resource.namespace]).to.deep.equal([1, undefined])
    subject.tell('edge/one', 0)
    subject.tell('shop/one', 1)
    subject.tell('none/one', 1)
    expect(subject.last('edge/gw', 'two'), 'not told yet').to.equal('1')
    subject.follower?.listed?.()
    expect(subject.last('edge/gw', 'two'), 'removed between the lists').to.equal('none')
    await until('that of the other namespace', () => subject.last('shop/gw', 'one') === '1')
    subject.want(['edge/gw', 'one', 'two'], ['shop/gw', 'one'], ['late/gw', 'one'], ...many(mostOwn))
    await until('a list for a further one', () => subject.begun === mostOwn + 2)
    subject.tell('edge/one', 0)
    subject.tell('shop/one', 1)
    subject.follower?.listed?.()
    subject.want(['edge/gw', 'one', 'two'])
    expect(subject.followed.size).to.equal(1)
    expect(subject.of('edge')).not.to.equal(undefined)
    expect(subject.part.summaries().map(({ namespace, name }) => `${namespace}/${name}`)).to.deep.equal(['edge/one'])
    subject.of('edge')?.listed?.()
    expect(subject.last('edge/gw', 'one')).to.equal('none')
    subject.part.close()
  })

  it('with many certificates are read in turns, namespace by namespace, and are not missing before', async () => {
    const subject = new Subject()
    const root = (sites[0] as Pair).chain
    const authorities = (number: number) => ({ ...pairValues(sites[0] as Pair), 'ca.crt': root.repeat(number) })
    subject.want(['edge/gw', 'large', 'faulty', 'gone'], ['shop/gw', 'one', 'large'])
    subject.tell('edge/faulty', 1)
    await until('a good state', () => subject.last('edge/gw', 'faulty') === '1')
    for (const name of ['large', 'gone']) subject.tellValues(`edge/${name}`, authorities(990))
    subject.tellValues('edge/faulty', authorities(1001))
    subject.tellValues('shop/large', authorities(60))
    subject.tell('shop/one', 1)
    subject.of('edge')?.set('edge/gone', undefined)
    for (const name of ['edge', 'shop']) subject.of(name)?.listed?.()
    expect([subject.last('edge/gw', 'large'), subject.last('edge/gw', 'gone')], 'not read yet').to.deep.equal([undefined, 'none'])
    await until('the small one', () => subject.last('shop/gw', 'one') === '1')
    await until('that of the other namespace', () => subject.last('shop/gw', 'large') === '0')
    expect(subject.last('edge/gw', 'large'), 'it does not hold up others').to.equal(undefined)
    await until('the large one', () => subject.last('edge/gw', 'large') === '0')
    await until('what is wrong', () => subject.late.length > 0)
    expect(subject.late).to.deep.equal(['edge/faulty data.ca.crt: more than 1000 certificates'])
    expect([subject.last('edge/gw', 'faulty'), subject.last('edge/gw', 'gone')]).to.deep.equal(['1', 'none'])
    subject.part.close()
  })

  it('that are read in turns leave the thread to others, and are read though they change again and again', async () => {
    let steps = 0
    const done: string[] = []
    const slow = new SlowSecrets<string>(0)
    const secret = (name: string, number: number) => ({
      begin: function* () {
        for (let at = 0; at < number; at++) {
          steps++
          yield
        }
        return name
      },
      done: (result: string) => void done.push(result),
    })
    slow.add('edge', 'a', secret('a1', 3))
    slow.add('edge', 'a', secret('a2', 3))
    slow.add('edge', 'b', secret('b', 1))
    slow.add('shop', 'c', secret('c', 2))
    expect(steps, 'nothing is read at once').to.equal(0)
    await until('the first', () => steps > 0)
    slow.add('edge', 'a', secret('a3', 1))
    await until('all', () => done.length === 4)
    expect(done).to.deep.equal(['c', 'a2', 'b', 'a3'])
    slow.close()
  })

  it('go to whom the server permits to list them, and where they have an annotation, to those of them that it names', async () => {
    const subject = new Subject()
    subject.want(['edge/gw', 'free', 'named', 'wrong'], ['edge/second', 'free', 'named', 'wrong'], ['edge/other', 'free', 'named'])
    await until('the list', () => subject.begun === 1)
    subject.tell('edge/free', 0)
    subject.tell('edge/named', 1, 'gw, other')
    subject.tell('edge/wrong', 1, 'no name!')
    subject.follower?.listed?.()
    await until('the decisions', () => subject.last('edge/other', 'named') !== undefined && subject.last('edge/gw', 'free') !== undefined)
    const outcomes = ['gw', 'second', 'other'].map((account) => ['free', 'named', 'wrong'].map((name) => subject.last(`edge/${account}`, name)))
    expect(outcomes).to.deep.equal([
      ['0', '1', 'refused'],
      ['0', 'refused', 'refused'],
      ['refused', 'refused', undefined],
    ])
    expect(subject.log.filter((line) => line.includes('Secret/edge/named'))).to.have.length(2)
    expect(subject.log.join()).to.contain('its annotation security.mesh.io/service-accounts names others only')
  })

  it('are not said to be missing while they cannot be used or cannot be read', async () => {
    const subject = new Subject()
    subject.want(['edge/gw', 'faulty', 'absent'])
    await until('the list', () => subject.begun === 1)
    const document = JSON.parse(secretDocument('edge/faulty', { 'tls.crt': 'x', 'tls.key': 'y' }, 'kubernetes.io/tls', null))
    const { object, faults } = subject.follower?.cut(document) ?? { object: 1, faults: [] }
    expect([object, faults.map(({ path }) => path)]).to.deep.equal([undefined, ['data.tls.crt', 'data.tls.key']])
    subject.follower?.failed?.('it is forbidden')
    subject.follower?.failed?.('it is forbidden')
    subject.follower?.listed?.()
    expect(subject.writer.received).to.deep.equal([])
    expect(subject.log.filter((line) => line.endsWith('which cannot be read at present, and wait for it: it is forbidden'))).to.have.length(2)
    subject.follower?.recovered?.()
    expect([subject.last('edge/gw', 'absent'), subject.last('edge/gw', 'faulty')]).to.deep.equal(['none', undefined])
    subject.follower?.set('edge/faulty', undefined)
    subject.want(['edge/gw', 'absent'])
    subject.want(['edge/gw', 'faulty', 'absent'])
    expect(subject.last('edge/gw', 'faulty')).to.equal('none')
  })

  it('are those of some namespaces, each by a list of its own, where only these are followed', async () => {
    const subject = new Subject('edge', 'shop')
    subject.want(['edge/gw', 'absent'], ['far/gw', 'one'], ['shop/gw', 'one'])
    expect([...subject.followed.keys()].map((path) => path.replace(/[?].*/, ''))).to.deep.equal([
      '/api/v1/namespaces/edge/secrets',
      '/api/v1/namespaces/shop/secrets',
    ])
    subject.of('shop')?.failed?.('it is forbidden')
    subject.of('edge')?.listed?.()
    expect(['edge', 'shop', 'far'].map((namespace) => subject.last(`${namespace}/gw`, namespace === 'edge' ? 'absent' : 'one'))).to.deep.equal([
      'none',
      undefined,
      undefined,
    ])
    expect(subject.log.map((line) => line.replace(/^gateways.* request /, ''))).to.have.members([
      'Secret/far/one, which cannot be read at present, and wait for it: its namespace is none of --appNamespace',
      'Secret/shop/one, which cannot be read at present, and wait for it: it is forbidden',
    ])
  })

  it('are decided on again and again; a decision stays while it cannot be made, and is forgotten with its reader', async () => {
    const reader: SecretReader = { namespace: 'edge', account: 'gw' }
    const answers: (boolean | 'away')[] = ['away', true, 'away', 'away', true, false, false, true]
    const changes: (boolean | undefined)[] = []
    let isWanted = true
    let asked = 0
    const readers = new SecretReaders(
      {
        mayList: async () => {
          asked++
          const answer = answers.shift() ?? true
          if (answer === 'away') throw new Error('away')
          return answer
        },
        isWanted: () => isWanted,
        changed: () => changes.push(readers.may(reader)),
      },
      { allowedMs: 1, deniedMs: 1, pauses: { firstMs: 1, longestMs: 1, jitter: 0 } },
    )
    expect(readers.may(reader)).to.equal(undefined)
    await until('the decisions', () => answers.length === 0)
    await until('the last', () => changes.length === 3)
    expect(changes).to.deep.equal([true, false, true])
    isWanted = false
    await until('it to be forgotten', () => {
      const before = asked
      return readers.may(reader) === undefined && asked === before + 1
    })
    readers.close()
  })
})
