/** Gateway secrets in a writer (docs/resources.md, K5 to K9): what streams are sent, and what remains in memory afterwards. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import { SecretSchema } from '../../../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import type { SecretMaterial } from '../../../../protocols/messages/secrets.ts'
import { encodeAuthorities, encodePair } from '../../../../src/xds/secrets/encode-secret.ts'
import { type ReaderParts, ReaderSecrets } from '../../../../src/xds/secrets/reader-secrets.ts'
import { authoritiesName, certificateName, readSecretName } from '../../../../src/xds/secrets/secret-names.ts'
import { SecretPlans, secretFrame } from '../../../../src/xds/secrets/secret-plans.ts'
import { KeyedSums } from '../../../../src/xds/slab/sums.ts'
import { scanFields } from '../../../../src/xds/slab/wire.ts'
import { ConnectionBudget } from '../../../../src/xds/stream/budget.ts'
import { Catalog } from '../../../../src/xds/stream/catalog.ts'
import { Plans } from '../../../../src/xds/stream/plans.ts'
import { readDeltaRequest, readSotwRequest } from '../../../../src/xds/stream/request.ts'
import { XdsSession } from '../../../../src/xds/stream/session.ts'
import { Subscriptions } from '../../../../src/xds/stream/subscription.ts'
import { secretType } from '../../../../src/xds/type-urls.ts'
import '../../../harness/seed.ts'
import { runs } from '../../../harness/seed.ts'

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text))
const pair = (text: string, authorities?: string): SecretMaterial => ({
  pair: { chain: bytesOf(`chain of ${text}`), key: bytesOf(`key of ${text}`) },
  authorities: authorities === undefined ? undefined : bytesOf(authorities),
})
const onlyAuthorities = (text: string): SecretMaterial => ({ pair: undefined, authorities: bytesOf(text) })

/** Returns the name of a secret and its content: `key of <text>` or the CA certificates. */
function contentOf(value: Uint8Array): [name: string, content: string] {
  const { name, type } = fromBinary(SecretSchema, value)
  const text = (source: { specifier: { value?: unknown } } | undefined) => Buffer.from((source?.specifier.value as Uint8Array) ?? []).toString()
  if (type.case === 'tlsCertificate') return [name, text(type.value.privateKey)]
  return [name, type.case === 'validationContext' ? text(type.value.trustedCa) : '']
}

/** A writer with the sessions of one reader. */
class Writer {
  readonly catalog = new Catalog(new KeyedSums('key'))
  readonly subscriptions = new Subscriptions()
  readonly parts: ReaderParts
  asked = 0
  #nonces = 0

  sources: readonly string[] = ['source/files']

  constructor() {
    const wanted = () => void this.asked++
    this.parts = {
      groups: this.catalog.parts,
      plans: new SecretPlans(this.catalog),
      subscriptions: this.subscriptions,
      memory: new WeakSet(),
      sources: () => this.sources,
      wanted,
    }
  }

  reader(namespace = 'edge', account = 'gateway'): ReaderSecrets {
    return new ReaderSecrets({ namespace, account }, this.parts)
  }

  session(delta: boolean): XdsSession {
    const parts = {
      catalog: this.catalog,
      plans: new Plans(this.catalog, { enabled: true, size: 0 }),
      subscriptions: this.subscriptions,
      flowControlTimeoutMs: undefined,
      nonce: () => `n${++this.#nonces}`,
      held: () => undefined,
    }
    const session = new XdsSession(delta, parts, new ConnectionBudget())
    session.classId = 'class'
    return session
  }
}

/** A router: keeps the secrets it is sent for its subscribed names. */
class Router {
  readonly session: XdsSession
  readonly held = new Map<string, string>()
  /** Names that delta reported as removed. */
  readonly missing = new Set<string>()
  readonly frames: Buffer[] = []
  names: readonly string[] = []
  #nonce = ''
  readonly #writer: Writer

  constructor(writer: Writer, delta: boolean, secrets: ReaderSecrets | undefined) {
    this.#writer = writer
    this.session = writer.session(delta)
    this.session.readSecrets(secrets)
  }

  subscribe(names: readonly string[]): this {
    const { delta } = this.session
    const added = names.filter((name) => !this.names.includes(name))
    const removed = this.names.filter((name) => !names.includes(name))
    this.names = names
    for (const name of removed) for (const kept of [this.held, this.missing]) kept.delete(name)
    if (delta && added.length + removed.length > 0) this.#delta(added, removed)
    if (!delta) this.#sotw()
    return this
  }

  /** Receives and acknowledges all responses that are due. Returns their number. */
  take(): number {
    let count = 0
    for (let response = this.session.next(0); response; response = this.session.next(0)) {
      count++
      const frame = secretFrame(response, this.session.delta, (chunk) => this.#writer.parts.memory.has(chunk.buffer))
      this.frames.push(frame)
      expect(response.typeUrl).to.equal(secretType)
      this.#nonce = response.nonce
      if (this.session.delta) {
        const { resources, removedResources } = fromBinary(DeltaDiscoveryResponseSchema, frame.subarray(5))
        for (const { resource } of resources) this.#keep(resource?.value ?? new Uint8Array())
        for (const name of removedResources) {
          this.held.delete(name)
          this.missing.add(name)
        }
        this.#delta([], [])
      } else {
        for (const { value } of fromBinary(DiscoveryResponseSchema, frame.subarray(5)).resources) this.#keep(value)
        this.#sotw()
      }
    }
    return count
  }

  #keep(value: Uint8Array): void {
    const [name, content] = contentOf(value)
    expect(this.names, 'what was sent').to.include(name)
    this.held.set(name, content)
    this.missing.delete(name)
  }

  #delta(resourceNamesSubscribe: string[], resourceNamesUnsubscribe: string[]): void {
    const message = create(DeltaDiscoveryRequestSchema, {
      typeUrl: secretType,
      resourceNamesSubscribe,
      resourceNamesUnsubscribe,
      responseNonce: this.#nonce,
    })
    this.#nonce = ''
    this.session.takeDelta(readDeltaRequest(Buffer.from(toBinary(DeltaDiscoveryRequestSchema, message))), 0)
  }

  #sotw(): void {
    const message = create(DiscoveryRequestSchema, { typeUrl: secretType, resourceNames: [...this.names], responseNonce: this.#nonce })
    this.session.takeSotw(readSotwRequest(Buffer.from(toBinary(DiscoveryRequestSchema, message))), 0)
  }
}

/** Whether bytes have been overwritten. */
const isClear = (bytes: Uint8Array | undefined) => bytes?.every((byte) => byte === 0)

describe('secret names', () => {
  it('are built from a credentialName, and resolved for the namespace of a reader', () => {
    expect([certificateName('site'), authoritiesName('site')]).to.deep.equal(['kubernetes://site', 'kubernetes://site-cacert'])
    expect(authoritiesName('kubernetes://edge/site')).to.equal('kubernetes://edge/site-cacert')
    expect(authoritiesName('site-cacert')).to.equal('kubernetes://site-cacert')
    expect(readSecretName('kubernetes://site', 'edge')).to.deep.equal({ name: 'site', part: 'pair' })
    expect(readSecretName('kubernetes://edge/site-cacert', 'edge')).to.deep.equal({ name: 'site', part: 'authorities' })
    for (const name of [
      'kubernetes://other/site',
      'site',
      'default',
      'kubernetes://',
      'kubernetes:///site',
      'kubernetes://edge/a/b',
      'kubernetes://*',
      'kubernetes://../x',
    ])
      expect(readSecretName(name, 'edge'), name).to.equal(undefined)
  })
})

describe('encoded secrets', () => {
  it('are list elements with the message that Envoy reads', () => {
    const elementOf = (bytes: Buffer) => {
      const [any] = [...scanFields(bytes)]
      const [url, value] = [...scanFields(any?.bytes ?? Buffer.alloc(0))]
      expect([any?.field, url?.bytes?.toString(), value?.field]).to.deep.equal([2, secretType, 2])
      return fromBinary(SecretSchema, value?.bytes ?? Buffer.alloc(0))
    }
    const long = 'x'.repeat(70_000)
    const inline = (text: string) => ({ specifier: { case: 'inlineBytes' as const, value: bytesOf(text) } })
    const certificate = { certificateChain: inline(long), privateKey: inline('k') }
    expect(elementOf(encodePair('kubernetes://a', { chain: bytesOf(long), key: bytesOf('k') }))).to.deep.equal(
      create(SecretSchema, { name: 'kubernetes://a', type: { case: 'tlsCertificate', value: certificate } }),
    )
    expect(elementOf(encodeAuthorities('b', bytesOf('root')))).to.deep.equal(
      create(SecretSchema, { name: 'b', type: { case: 'validationContext', value: { trustedCa: inline('root') } } }),
    )
  })
})

describe('secrets of a reader', () => {
  for (const delta of [false, true]) {
    const variant = delta ? 'delta' : 'state of the world'
    /** Returns a proxy on a new writer, with a function that delivers answers of the source. */
    const start = (names: readonly string[]) => {
      const writer = new Writer()
      const secrets = writer.reader()
      const proxy = new Router(writer, delta, secrets).subscribe(names)
      const say = (name: string, material: SecretMaterial | undefined) => {
        proxy.session.secretsKnown(secrets.said('source/files', name, material))
        return proxy.take()
      }
      return { writer, secrets, proxy, say }
    }

    it(`${variant}: are sent as soon as they are known, without waiting for others`, () => {
      const { writer, secrets, proxy, say } = start(['kubernetes://a', 'kubernetes://edge/a', 'kubernetes://b'])
      expect(proxy.take()).to.equal(0)
      expect([...secrets.names]).to.deep.equal(['a', 'b'])
      expect(writer.asked).to.equal(1)
      expect(say('a', pair('a'))).to.equal(1)
      expect(Object.fromEntries(proxy.held)).to.deep.equal({ 'kubernetes://a': 'key of a', 'kubernetes://edge/a': 'key of a' })
      expect([...proxy.missing]).to.deep.equal([])
      expect(say('b', undefined)).to.equal(delta ? 1 : 0)
      expect([...proxy.missing]).to.deep.equal(delta ? ['kubernetes://b'] : [])
      expect(say('b', pair('b'))).to.equal(1)
      expect(proxy.held.get('kubernetes://b')).to.equal('key of b')
    })

    it(`${variant}: are sent when they change, and not when the source repeats them`, () => {
      const { proxy, say } = start(['kubernetes://a', 'kubernetes://b'])
      say('a', pair('a'))
      say('b', pair('b'))
      expect(say('a', pair('a'))).to.equal(0)
      expect(say('a', pair('a2'))).to.equal(1)
      expect(proxy.held.get('kubernetes://a')).to.equal('key of a2')
      expect(say('nobody-wants', pair('x'))).to.equal(0)
    })

    it(`${variant}: take CA certificates from the -cacert Secret, or else from the certificate's Secret`, () => {
      const { secrets, proxy, say } = start(['kubernetes://a-cacert'])
      expect([...secrets.names]).to.deep.equal(['a-cacert', 'a'])
      expect(say('a', pair('a', 'beside'))).to.equal(0)
      expect(say('a-cacert', undefined)).to.equal(1)
      expect(proxy.held.get('kubernetes://a-cacert')).to.equal('beside')
      expect(say('a-cacert', onlyAuthorities('own'))).to.equal(1)
      expect(proxy.held.get('kubernetes://a-cacert')).to.equal('own')
      expect(say('a', pair('a', 'another'))).to.equal(0)
      expect(say('a-cacert', pair('of something else'))).to.equal(1)
      expect(proxy.held.get('kubernetes://a-cacert')).to.equal('another')
    })

    it(`${variant}: do not exist under names of another namespace or invalid names, which no source is asked for`, () => {
      const { secrets, proxy } = start(['kubernetes://other/a', 'default', 'kubernetes://a/b/c'])
      expect(proxy.take()).to.equal(delta ? 1 : 0)
      expect(proxy.held.size).to.equal(0)
      expect([...proxy.missing]).to.have.members(delta ? proxy.names : [])
      expect([...secrets.names]).to.deep.equal([])
    })

    it(`${variant}: do not exist for a proxy without permission, even if another proxy has them`, () => {
      const { writer, say } = start(['kubernetes://a'])
      say('a', pair('a'))
      const stranger = new Router(writer, delta, undefined).subscribe(['kubernetes://a', '*'])
      stranger.take()
      expect([...stranger.held]).to.deep.equal([])
    })

    it(`${variant}: are not matched by a wildcard`, () => {
      const { writer, secrets, say } = start(['kubernetes://a'])
      say('a', pair('a'))
      const other = new Router(writer, delta, secrets).subscribe(['*'])
      other.take()
      expect([...other.held]).to.deep.equal([])
      other.subscribe(['*', 'kubernetes://a'])
      other.take()
      expect([...other.held.keys()]).to.deep.equal(['kubernetes://a'])
    })

    it(`${variant}: are sent to a stream that is permitted later, for all names it has subscribed to`, () => {
      const { writer, secrets, say } = start(['kubernetes://a'])
      say('a', pair('a'))
      const late = new Router(writer, delta, undefined).subscribe(['kubernetes://a'])
      late.take()
      expect(late.held.size).to.equal(0)
      late.session.readSecrets(secrets)
      late.take()
      expect(late.held.get('kubernetes://a')).to.equal('key of a')
    })

    it(`${variant}: leave nothing in memory when the last stream is gone`, () => {
      const { writer, secrets, proxy, say } = start(['kubernetes://a', 'kubernetes://a-cacert'])
      const [one, two] = [pair('a', 'root'), pair('a2', 'root')]
      say('a', one)
      say('a-cacert', undefined)
      const entries = () => [...secrets.state.entries()].flatMap(({ chunks }) => chunks)
      const first = entries()
      expect(first).to.have.length(2)
      say('a', two)
      for (const bytes of [...first, one.pair?.key, one.pair?.chain, one.authorities]) expect(isClear(bytes)).to.equal(true)
      const second = entries()
      const other = new Router(writer, delta, secrets).subscribe(['kubernetes://a'])
      other.take()
      proxy.session.close()
      expect(second.map(isClear)).to.have.members([false, true])
      expect([...secrets.names]).to.deep.equal(['a'])
      other.session.close()
      for (const bytes of [...second, two.pair?.key, two.pair?.chain, two.authorities]) expect(isClear(bytes)).to.equal(true)
      expect([...secrets.names]).to.deep.equal([])
      expect([...secrets.state.entries()]).to.deep.equal([])
      const stray = pair('x')
      secrets.said('source/files', 'a', stray)
      expect(isClear(stray.pair?.key)).to.equal(true)
    })

    it(`${variant}: are those of the first source that has them, and of the next when it is removed`, () => {
      const writer = new Writer()
      writer.sources = ['source/files', 'source/fs/a', 'source/fs/b']
      const secrets = writer.reader()
      const proxy = new Router(writer, delta, secrets).subscribe(['kubernetes://a'])
      const [first, second] = [pair('first'), pair('second')]
      const served = () => Buffer.concat([...secrets.state.entries()].flatMap(({ chunks }) => [...chunks])).toString('latin1')
      expect(secrets.said('source/fs/b', 'a', second)).to.deep.equal([])
      expect(secrets.said('source/fs/a', 'a', undefined), 'a source before it has not answered').to.deep.equal([])
      expect(secrets.said('source/files', 'a', undefined)).to.deep.equal(['kubernetes://a'])
      expect(served()).to.contain('key of second')
      secrets.said('source/fs/a', 'a', first)
      expect(served()).to.contain('key of first').and.not.to.contain('second')
      // A new source that has not answered changes nothing, and a removed one is forgotten.
      writer.sources = ['source/files', 'source/fs/new', 'source/fs/a', 'source/fs/b']
      expect(secrets.sourcesChanged()).to.deep.equal([])
      expect(served()).to.contain('key of first')
      writer.sources = ['source/files', 'source/fs/b']
      secrets.sourcesChanged()
      expect(served()).to.contain('key of second')
      expect(isClear(first.pair?.key)).to.equal(true)
      writer.sources = ['source/files']
      secrets.sourcesChanged()
      expect(served()).to.equal('')
      expect(isClear(second.pair?.key)).to.equal(true)
      proxy.session.close()
    })

    it(`${variant}: are copied into the response, and the buffers of its parts are cleared`, () => {
      const writer = new Writer()
      const secrets = writer.reader()
      const session = new Router(writer, delta, secrets).subscribe(['kubernetes://a', 'kubernetes://b']).session
      const large = 'y'.repeat(40_000)
      session.secretsKnown(secrets.said('source/files', 'a', pair('a')))
      session.secretsKnown(secrets.said('source/files', 'b', pair(large)))
      const response = session.next(0)
      if (!response) throw new Error('nothing is due')
      const frame = secretFrame(response, delta, (chunk) => writer.parts.memory.has(chunk.buffer))
      const text = frame.toString('latin1')
      expect(text).to.contain('key of a').and.to.contain(large)
      const cleared = response.plan.chunks.filter((chunk) => !writer.parts.memory.has(chunk.buffer))
      expect(cleared.length > 0, 'only delta responses have buffers beside those that the reader keeps').to.equal(delta)
      for (const chunk of cleared) expect(chunk.every((byte) => byte === 0)).to.equal(true)
      secrets.said('source/files', 'b', pair('changed'))
      expect(frame.toString('latin1')).to.equal(text)
    })

    it(`${variant}: have versions that depend on their content and on a server key`, () => {
      const version = (key: string) => {
        const catalog = new Catalog(new KeyedSums(key))
        const parts = {
          groups: catalog.parts,
          plans: new SecretPlans(catalog),
          subscriptions: new Subscriptions(),
          memory: new WeakSet(),
          sources: () => ['source/files'],
          wanted: () => {},
        }
        const secrets = new ReaderSecrets({ namespace: 'edge', account: 'gateway' }, parts)
        secrets.use({}, { id: 9, wildcard: false, names: new Set(['kubernetes://a']) })
        secrets.said('source/files', 'a', pair('a'))
        return [...secrets.state.entries()][0]?.version
      }
      expect(version('one')).to.equal(version('one')).and.to.not.equal(version('two'))
    })
  }

  it('are the same over SotW and delta after any history, and only those of the reader', () => {
    const names = ['a', 'b', 'c']
    const resources = [
      ...names.map((name) => `kubernetes://${name}`),
      'kubernetes://edge/a',
      'kubernetes://a-cacert',
      'kubernetes://b-cacert',
      'kubernetes://x/a',
      'no',
    ]
    const material = fc.oneof(
      fc.constant(undefined),
      fc.tuple(fc.nat(2), fc.boolean()).map(([version, rooted]) => ['pair', version, rooted] as const),
      fc.nat(2).map((version) => ['authorities', version, true] as const),
    )
    const action = fc.oneof(
      fc.record({ do: fc.constant('subscribe' as const), who: fc.nat(3), names: fc.subarray(resources) }),
      fc.record({ do: fc.constant('change' as const), name: fc.constantFrom(...names, 'a-cacert', 'b-cacert'), material }),
      fc.record({ do: fc.constant('answer' as const), most: fc.nat(3) }),
      fc.record({ do: fc.constant('take' as const), who: fc.nat(3) }),
      fc.record({ do: fc.constant('ask again' as const) }),
    )
    const made = (of: readonly ['pair' | 'authorities', number, boolean] | undefined, name: string) =>
      of && (of[0] === 'pair' ? pair(`${name}${of[1]}`, of[2] ? `root of ${name}${of[1]}` : undefined) : onlyAuthorities(`root of ${name}${of[1]}`))
    fc.assert(
      fc.property(fc.array(action, { maxLength: 40 }), (actions) => {
        const writer = new Writer()
        const secrets = writer.reader()
        const proxies = [false, true, false, true].map((delta) => new Router(writer, delta, secrets))
        const there = new Map<string, readonly ['pair' | 'authorities', number, boolean]>()
        /** Names that the source has answered so far. */
        const answered = new Set<string>()
        const say = (name: string) => {
          answered.add(name)
          const known = secrets.said('source/files', name, made(there.get(name), name))
          for (const { session } of proxies) session.secretsKnown(known)
        }
        const wanted = () => {
          const now = new Set(secrets.names)
          for (const name of answered) if (!now.has(name)) answered.delete(name)
          return now
        }
        const answer = (most: number) => {
          for (const name of [...wanted()].filter((name) => !answered.has(name)).slice(0, most)) say(name)
        }
        for (const step of actions) {
          wanted()
          if (step.do === 'subscribe') proxies[step.who]?.subscribe(step.names)
          else if (step.do === 'take') proxies[step.who]?.take()
          else if (step.do === 'answer') answer(step.most)
          else if (step.do === 'ask again') for (const { session } of proxies) session.sendAgain()
          else {
            if (step.material) there.set(step.name, step.material)
            else there.delete(step.name)
            if (answered.has(step.name)) say(step.name)
          }
        }
        answer(99)
        for (const proxy of proxies) proxy.take()
        for (const proxy of proxies) {
          expect(proxy.session.isDue()).to.equal(false)
          for (const name of proxy.names) {
            const of = readSecretName(name, 'edge')
            const found = (secret: string, part: 'pair' | 'authorities') => {
              const material = made(there.get(secret), secret)
              const bytes = part === 'pair' ? material?.pair?.key : material?.authorities
              return bytes && Buffer.from(bytes).toString()
            }
            const right =
              of && (of.part === 'pair' ? found(of.name, 'pair') : (found(`${of.name}-cacert`, 'authorities') ?? found(of.name, 'authorities')))
            if (right !== undefined) expect(proxy.held.get(name), name).to.equal(right)
            else if (proxy.session.delta) expect([proxy.held.get(name), proxy.missing.has(name)], name).to.deep.equal([undefined, true])
          }
        }
      }),
      { numRuns: runs(500) },
    )
  })
})
