/** The part of a cluster's watcher that follows Secrets, without a cluster (docs/resources.md, K11, K12): what is kept, and who is asked about. */
import { expect } from 'chai'
import { SecretReaders } from '../../actors/discovery/sources/orchestrator/secret-readers.ts'
import { SecretsPart, type SecretsParts } from '../../actors/discovery/sources/orchestrator/secrets-part.ts'
import type { Follower } from '../../actors/discovery/sources/orchestrator/watcher-part.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
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
    /** How often everything was listed. */
    begun = 0
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
      },
      metrics: new MetricRegistry(),
      log: createLogger({ output: { fallback: 'debug', scopes: {} }, stackTrace: { fallback: 'none', scopes: {} }, callers: [] }, ({ message }) =>
        this.log.push(message),
      ),
      mayList: async ({ account }) => account !== 'other',
    }

    /** The only one that is followed. */
    get follower(): Follower | undefined {
      return [...this.followed.values()][0]
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
      const document = JSON.parse(secretDocument(path, pairValues(sites[site] as Pair), 'kubernetes.io/tls', accounts))
      this.follower?.set(path, this.follower.cut(document).object)
    }

    /** What the writer was told last: the site, `none`, or `refused`. */
    last(reader: string, name: string): string | undefined {
      const event = this.writer.received.filter((each) => `${each.reader.namespace}/${each.reader.account}` === reader && each.name === name).at(-1)
      if (!event) return undefined
      const key = event.material?.pair && Buffer.from(event.material.pair.key).toString()
      return event.isRefused ? 'refused' : key === undefined ? 'none' : String(sites.findIndex((site) => site.key === key))
    }
  }

  it('are followed when the first is wanted, and kept for namespaces that want some; others are listed again', async () => {
    const subject = new Subject()
    subject.want()
    expect(subject.begun).to.equal(0)
    subject.want(['edge/gw', 'one', 'two'])
    await until('the first list', () => subject.begun === 1)
    subject.tell('edge/one', 0)
    subject.tell('edge/two', 1)
    subject.tell('shop/one', 1)
    expect(subject.last('edge/gw', 'absent')).to.equal(undefined)
    subject.follower?.listed?.()
    await until('the first', () => subject.last('edge/gw', 'one') === '0')
    expect(subject.part.summaries().map(({ namespace, name }) => `${namespace}/${name}`)).to.deep.equal(['edge/one', 'edge/two'])
    subject.want(['edge/gw', 'one', 'two', 'absent'], ['shop/gw', 'one'])
    expect(subject.last('edge/gw', 'absent')).to.equal('none')
    expect(subject.last('shop/gw', 'one'), 'of a namespace that is not listed yet').to.equal(undefined)
    await until('the second list', () => subject.begun === 2)
    subject.tell('edge/one', 0)
    subject.tell('shop/one', 1)
    expect(subject.last('edge/gw', 'two'), 'not told yet').to.equal('1')
    const { length } = subject.writer.received.filter(({ name, reader }) => name === 'one' && reader.namespace === 'edge')
    subject.follower?.listed?.()
    expect(subject.last('edge/gw', 'two'), 'removed between the lists').to.equal('none')
    await until('that of the other namespace', () => subject.last('shop/gw', 'one') === '1')
    expect(subject.writer.received.filter(({ name, reader }) => name === 'one' && reader.namespace === 'edge')).to.have.length(length)
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
    subject.want(['edge/gw', 'absent'], ['far/gw', 'one'])
    await until('the lists', () => subject.begun === 2)
    expect([...subject.followed.keys()].map((path) => path.replace(/[?].*/, ''))).to.deep.equal([
      '/api/v1/namespaces/edge/secrets',
      '/api/v1/namespaces/shop/secrets',
    ])
    subject.of('shop')?.failed?.('it is forbidden')
    subject.want(['edge/gw', 'absent'], ['far/gw', 'one'], ['shop/gw', 'one'])
    await until('the lists again', () => subject.begun === 4)
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
