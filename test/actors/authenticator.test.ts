import { createHmac, generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { SignJWT } from 'jose'
import { actor } from '../../actors/discovery/identity/authenticator.ts'
import { authenticatorConfig } from '../../actors/discovery/identity/settings.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { MeshNamesEvent, TokenAnswer, TokenQuestion, TokenReviewQuestion, TokenVerdict } from '../../protocols/messages/identity.ts'
import type { TrustEvent } from '../../protocols/messages/trust.ts'
import { readFeatures } from '../../src/config/features.ts'
import { startActor } from '../harness/actor.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { Issuer } from '../harness/issuer.ts'
import { OwnTime } from '../harness/own-time.ts'
import { until } from '../harness/until.ts'

const sub = 'system:serviceaccount:shop:cart'
const aud = 'mesh-ca'
const names: MeshNamesEvent = {
  type: 'MeshNamesChanged',
  trustDomain: 'td.example',
  trustDomainAliases: [],
  rootNamespace: 'mesh-system',
  discoveryAddress: '',
}

/** Answers the question `reviewToken`. */
type Reviewer = (question: TokenReviewQuestion) => Promise<TokenVerdict>

/** An authenticator with its log and metrics. */
class Subject {
  readonly dir = mkdtempSync(join(tmpdir(), 'mesh-authn-'))
  readonly log: string[] = []
  readonly metrics = new MetricRegistry()
  #actor: Behaviour<MeshNamesEvent, TrustEvent> | undefined

  async start(environment: Record<string, string>, reviewer?: Reviewer, event: MeshNamesEvent | undefined = names): Promise<this> {
    const { features } = readFeatures({ PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1', MESHD_CA_STATE_DIR: this.dir, ...environment })
    const logged = ({ level, message }: { level: string; message: string }) => this.log.push(`${level} ${message}`)
    const ask = (_: string, question: unknown) => reviewer?.(question as TokenReviewQuestion) ?? Promise.reject(new Error('nobody answers'))
    this.#actor = await startActor(actor, authenticatorConfig(features, reviewer !== undefined), { logged, metrics: this.metrics, ask })
    if (event) this.#actor.receive(event, undefined as never)
    return this
  }

  async ask(token: string, more: Partial<TokenQuestion> = {}): Promise<TokenAnswer> {
    return (await this.#actor?.asks?.authenticate?.({ token, ...more } as never)) as TokenAnswer
  }

  /** Returns the identities of a token, or the reason for its refusal. */
  async whose(token: string, more?: Partial<TokenQuestion>): Promise<string> {
    const answer = await this.ask(token, more)
    return 'caller' in answer ? answer.caller.identities.join() : `${answer.unavailable ? 'unavailable: ' : ''}${answer.refused}`
  }

  counted(authenticator: string, outcome: string): number {
    const family = this.metrics.collect().find(({ name }) => name === 'pilot_token_authentications_total')
    const series = family?.series.find(({ labels }) => labels.authenticator === authenticator && labels.outcome === outcome)
    return series?.values[0] ?? 0
  }

  async stop(): Promise<void> {
    await this.#actor?.drain?.()
    rmSync(this.dir, { recursive: true, force: true })
  }
}

describe('workload tokens', () => {
  const identity = 'spiffe://td.example/ns/shop/sa/cart'
  const issuer = new Issuer('https://issuer.example')
  let subject: Subject
  const rule = (more: object = {}) => JSON.stringify({ issuer: issuer.name, jwks_uri: issuer.jwksUri, ...more })
  const started = async (environment: Record<string, string> = {}, reviewer?: Reviewer) => {
    subject = await new Subject().start({ JWT_RULE: rule(), ...environment }, reviewer)
    return subject
  }

  before(() => issuer.start())
  afterEach(() => subject.stop())
  after(() => issuer.stop())

  it('name a service account in the trust domain of the mesh, until they expire', async () => {
    await started()
    const exp = Math.floor(Date.now() / 1000) + 600
    expect(await subject.ask(await issuer.token({ sub, aud, exp }))).to.deep.equal({
      caller: { identities: [identity], via: 'token', method: `jwt-rule ${issuer.name}`, expiresAt: exp * 1000 },
    })
    expect(subject.counted('jwt-rule', 'accepted')).to.equal(1)
  })

  it('may have several audiences, one of which is required', async () => {
    await started({ TOKEN_AUDIENCES: 'mesh-ca,other' })
    for (const audience of ['other', ['x', 'mesh-ca'], ['other', 7]])
      expect(await subject.whose(await issuer.token({ sub, aud: audience as string }))).to.equal(identity)
  })

  const seconds = Math.floor(Date.now() / 1000)
  for (const [what, claims, reason] of [
    ['for another audience', { aud: 'other' }, 'it is for audience "other"'],
    ['for no audience', { aud: undefined }, 'it is for audience nothing'],
    ['for an audience that begins alike', { aud: 'mesh-ca.evil.com' }, 'it is for audience'],
    ['that have expired', { exp: seconds - 1 }, 'it expired'],
    ['that never expire', { exp: undefined }, 'exp is nothing'],
    ['that expire at no time', { exp: 1e15 }, 'exp is 1000000000000000'],
    ['that expire as text', { exp: '99999999999' as never }, 'exp is "99999999999"'],
    ['of the future', { nbf: seconds + 36_000 }, 'nbf is'],
    ['issued in the future', { iat: seconds + 36_000 }, 'iat is'],
    ['of a node', { sub: 'system:node:a:b' }, 'sub is "system:node:a:b"'],
    ['of an account with a slash', { sub: 'system:serviceaccount:shop/sa/x:cart' }, 'sub is'],
    ['of a SPIFFE id of another trust domain', { sub: 'spiffe://other/ns/shop/sa/cart' }, 'sub is "spiffe://other/ns/shop/sa/cart"'],
    ['of nobody', { sub: undefined }, 'sub is nothing'],
    ['of an unknown issuer', { iss: 'https://other.example' }, 'no rule for the issuer "https://other.example"'],
    ['of several issuers', { iss: ['https://issuer.example'] as never }, 'no rule for the issuer ["https://issuer.example"]'],
  ] as const)
    it(`${what} are refused`, async () => {
      await started()
      const token = await issuer.token({ sub, aud, ...claims } as never)
      expect(await subject.whose(token)).to.contain(reason)
      expect(await subject.whose(await issuer.token({ sub, aud })), 'a good one').to.equal(identity)
      expect(subject.log.join('\n'), 'the log').not.to.contain(token.slice(-40))
    })

  it('may have times up to a minute in the future', async () => {
    await started()
    expect(await subject.whose(await issuer.token({ sub, aud, nbf: seconds + 30, iat: seconds + 30 }))).to.equal(identity)
  })

  describe('with a bad signature or header', () => {
    const parts = (header: object, claims: object) =>
      [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
    const claims = { iss: issuer.name, sub, aud, exp: seconds + 36_000 }

    it('are refused: algorithm none, HMAC with the public key, another key with that kid, changed claims, empty parts', async () => {
      await started()
      const good = await issuer.token({ sub, aud })
      const [head = '', body = '', signature = ''] = good.split('.')
      const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string }
      for (const alg of ['none', 'None', 'NONE', '']) {
        expect(await subject.whose(`${parts({ alg }, claims)}.`)).to.contain('which is none with a public key')
        expect(await subject.whose(`${parts({ alg }, claims)}.${signature}`)).to.contain('which is none with a public key')
      }
      for (const key of [issuer.jwks, JSON.stringify((JSON.parse(issuer.jwks) as { keys: object[] }).keys[0]), '']) {
        const unsigned = parts({ alg: 'HS256', kid }, claims)
        expect(await subject.whose(`${unsigned}.${createHmac('sha256', key).update(unsigned).digest('base64url')}`)).to.contain('"HS256"')
      }
      const other = await new Issuer(issuer.name).rotateOnly('RS256')
      expect(await subject.whose(await other.token({ sub, aud }, { kid }))).to.contain('no key of the issuer fits its signature')
      expect(
        await subject.whose(
          `${head}.${Buffer.from(JSON.stringify({ ...claims, sub: 'system:serviceaccount:mesh-system:admin' })).toString('base64url')}.${signature}`,
        ),
      ).to.contain('no key of the issuer fits')
      expect(await subject.whose(`${parts({ alg: 'ES256', kid }, claims)}.${signature}`), 'another algorithm').to.contain('no key of the issuer fits')
      expect(await subject.whose(`${parts({ alg: 'PS256', kid }, claims)}.${signature}`), 'another padding').to.contain('no key of the issuer fits')
      expect(await subject.whose(`${head}.${body}.`)).to.contain('no key of the issuer fits')
      expect(await subject.whose(`${head}.${body}`)).to.contain('it needs three parts')
      expect(await subject.whose('')).to.contain('it needs three parts')
      expect(await subject.whose(good)).to.equal(identity)
    })

    it('are refused if they carry their own key, or have a file, a URL or a list as kid', async () => {
      await started()
      const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
      const jwk = publicKey.export({ format: 'jwk' })
      const served = new Issuer('https://evil.example')
      await served.start()
      const sign = (header: object) => new SignJWT(claims).setProtectedHeader({ alg: 'RS256', ...header }).sign(privateKey)
      for (const header of [
        { jwk },
        { jwk, kid: 'x' },
        { jku: served.jwksUri, kid: 'x' },
        { x5u: served.jwksUri },
        { kid: '../../dev/null' },
        { kid: '/dev/null' },
        { kid: served.jwksUri },
      ])
        expect(await subject.whose(await sign(header)), JSON.stringify(header).slice(0, 60)).to.contain('no key of the issuer fits')
      for (const kid of [{}, [], 7, null, ['a']])
        expect(await subject.whose(`${parts({ alg: 'RS256', kid }, claims)}.x`)).to.contain('its kid is not text')
      expect(await subject.whose(`${parts({ alg: 'RS256', crit: ['x'], x: 1 }, claims)}.x`)).to.contain('no key of the issuer fits')
      expect(served.fetches).to.equal(0)
      await served.stop()
    })
  })

  it('that are too long or deeply nested are refused without being parsed', async () => {
    await started()
    expect(await subject.whose('x'.repeat(16_385))).to.contain('longer than 16384 characters')
    expect(await subject.whose(`${'.'.repeat(16_000)}`)).to.contain('three parts')
    const deep = Buffer.from(`{"alg":"RS256","a":${'['.repeat(5000)}${']'.repeat(5000)}}`).toString('base64url')
    expect(await subject.whose(`${deep}.e30.x`)).to.contain('no rule for the issuer nothing')
    expect(await subject.whose(`e30.${deep}.x`)).to.contain('its algorithm is nothing')
    for (const strange of [undefined, 7, {}, ['a']]) expect(await subject.whose(strange as never)).to.contain('not a token')
  })

  it('with the kid of another issuer are verified with the keys of their own issuer', async () => {
    const other = await new Issuer('https://other.example').start()
    await started({ JWT_RULE: `[${rule()},${JSON.stringify({ issuer: other.name, jwks_uri: other.jwksUri })}]` })
    expect(await subject.whose(await other.token({ sub, aud }))).to.equal(identity)
    expect(await subject.whose(await other.token({ iss: issuer.name, sub, aud }))).to.contain(`jwt-rule ${issuer.name}: no key of the issuer fits`)
    await other.stop()
  })

  it('of TOKEN_ISSUER are accepted by the certificate authority only', async () => {
    const open = await new Issuer('').start()
    Object.assign(open, { name: `http://127.0.0.1:${open.port}` })
    await started({ JWT_RULE: '', TOKEN_ISSUER: open.name, AUDIENCE: 'x' })
    const token = await open.token({ sub, aud: 'x' })
    expect(await subject.whose(token, { service: 'ca' })).to.equal(identity)
    for (const service of ['xds', 'pages', undefined] as const)
      expect(await subject.whose(token, service ? { service } : {})).to.contain('no rule for the issuer')
    await open.stop()
  })

  it('are accepted with a rotated key, and unknown keys cause at most one fetch', async () => {
    await started()
    await subject.whose(await issuer.token({ sub, aud }))
    const { fetches } = issuer
    await issuer.rotate()
    const tokens = await Promise.all(Array.from({ length: 20 }, () => issuer.token({ sub, aud })))
    expect(new Set(await Promise.all(tokens.map((token) => subject.whose(token))))).to.deep.equal(new Set([identity]))
    expect(issuer.fetches).to.equal(fetches + 1)
    for (let count = 0; count < 20; count++)
      expect(await subject.whose(await issuer.token({ sub, aud }, { kid: `made-up-${count}` }))).to.contain('no key')
    expect(issuer.fetches).to.equal(fetches + 1)
  })

  it('wait for the first keys, and are unavailable while there are none', async () => {
    const slow = await new Issuer('https://slow.example').start()
    let answer: (() => void) | undefined
    slow.answer = (_, response) => {
      answer = () => response.end(slow.jwks)
    }
    await started({ JWT_RULE: JSON.stringify({ issuer: slow.name, jwks_uri: slow.jwksUri }) })
    await until('the fetch', () => answer !== undefined)
    const whose = subject.whose(await slow.token({ sub, aud }))
    answer?.()
    expect(await whose).to.equal(identity)
    await slow.stop()
    await subject.stop()

    const gone = await new Issuer('https://gone.example').start()
    await gone.stop()
    await started({ JWT_RULE: `[${rule()},${JSON.stringify({ issuer: gone.name, jwks_uri: gone.jwksUri })}]` })
    expect(await subject.whose(await gone.token({ sub, aud }))).to.equal(
      'unavailable: jwt-rule https://gone.example: there are no keys of the issuer',
    )
    expect(subject.counted('jwt-rule', 'unavailable')).to.equal(1)
    expect(await subject.whose(await issuer.token({ sub, aud })), 'another issuer').to.equal(identity)
  })

  it('do not wait for a rule whose issuer does not answer when another one accepts them', async () => {
    const hangs = await new Issuer(issuer.name).start()
    let isAsked = false
    hangs.answer = () => {
      isAsked = true
    }
    const rules = [hangs, issuer].map(({ name, jwksUri }) => ({ issuer: name, jwks_uri: jwksUri }))
    await started({ JWT_RULE: JSON.stringify(rules) })
    await until('the fetch', () => isAsked)
    const time = new OwnTime()
    expect(await subject.whose(await issuer.token({ sub, aud }))).to.equal(identity)
    // The keys of the other rule are waited for for three seconds.
    expect(time.ms()).to.be.lessThan(2500)
    await subject.stop()
    await hangs.stop()
  })

  it('are verified with the last good keys while an issuer fails in any way', async () => {
    const changing = await new Issuer('https://changing.example').start()
    await started({ JWT_RULE: JSON.stringify({ issuer: changing.name, jwks_uri: changing.jwksUri }), PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: '100ms' })
    const token = await changing.token({ sub, aud })
    expect(await subject.whose(token)).to.equal(identity)
    const answers: NonNullable<Issuer['answer']>[] = [
      (_, response) => response.end('nonsense'),
      (_, response) => response.end(`{"keys":[${'{},'.repeat(400_000)}{}]}`),
      (_, response) => response.end('{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}'),
      (_, response) => response.writeHead(302, { location: 'http://169.254.169.254/keys' }).end(),
      (_, response) => response.writeHead(302, { location: changing.jwksUri }).end(),
      (_, response) => response.writeHead(500).end(),
      (_, response) => void response.writeHead(200).write('{'),
    ]
    for (const answer of answers) {
      const { fetches } = changing
      changing.answer = answer
      await until('the fetch', () => changing.fetches > fetches)
      expect(await subject.whose(token)).to.equal(identity)
    }
    expect(subject.log.filter((line) => line.includes('could not be fetched'))[0]).to.contain('not JSON; its last keys stay')
    await changing.stop()
  })

  it('are verified with the present keys of a file', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'mesh-keys-')), 'keys.json')
    const written = await new Issuer('https://file.example').rotateOnly('ES256')
    const replace = () => {
      writeFileSync(`${path}.new`, written.jwks)
      renameSync(`${path}.new`, path)
    }
    await started({ JWT_RULE: JSON.stringify({ issuer: written.name, jwks_uri: `file://${path}` }) })
    expect(await subject.whose(await written.token({ sub, aud }))).to.equal(`jwt-rule ${written.name}: there are no keys of the issuer`)
    replace()
    await until('the keys', async () => (await subject.whose(await written.token({ sub, aud }))) === identity)
    const before = await written.token({ sub, aud })
    writeFileSync(path, 'nonsense')
    await until('the fault', () => subject.log.some((line) => line.includes('not JSON; its last keys stay')))
    expect(await subject.whose(before)).to.equal(identity)
    await written.rotateOnly('ES256')
    replace()
    await until('the new keys', async () => (await subject.whose(await written.token({ sub, aud }))) === identity)
    expect(await subject.whose(before)).to.contain('no key of the issuer fits')
    rmSync(join(path, '..'), { recursive: true })
  })

  it('of the local issuer need a key file that nobody else can write', async () => {
    await started({ JWT_RULE: '' })
    const local = await new Issuer('mesh-local').rotateOnly('ES256')
    const path = join(subject.dir, 'token-keys.json')
    writeFileSync(path, local.jwks, { mode: 0o600 })
    await until('the keys', async () => (await subject.whose(await local.token({ sub, aud }))) === identity)
    chmodSync(path, 0o622)
    await until(
      'the refusal',
      async () => (await subject.whose(await local.token({ sub, aud }))) === 'local-issuer mesh-local: there are no keys of the issuer',
    )
    expect(subject.log.join('\n')).to.contain('others than its owner may write it')
    chmodSync(path, 0o600)
    await until('the keys again', async () => (await subject.whose(await local.token({ sub, aud }))) === identity)
    rmSync(path)
    await until('the refusal', async () => (await subject.whose(await local.token({ sub, aud }))).includes('there are no keys'))
  })

  it('of the local issuer are accepted while its key file cannot be read, and are unavailable where it never could', async () => {
    const dir = join(mkdtempSync(join(tmpdir(), 'mesh-authn-')), 'state')
    mkdirSync(dir)
    await started({ JWT_RULE: '', MESHD_CA_STATE_DIR: dir })
    const local = await new Issuer('mesh-local').rotateOnly('ES256')
    const path = join(dir, 'token-keys.json')
    const whose = async () => subject.whose(await local.token({ sub, aud }))
    const write = () => writeFileSync(path, local.jwks, { mode: 0o600 })
    write()
    await until('the keys', async () => (await whose()) === identity)
    // A link to itself cannot be resolved (ELOOP).
    rmSync(path)
    symlinkSync(path, path)
    await until('the reason', () => subject.log.some((line) => line.includes('ELOOP')))
    expect(subject.log.at(-1)).to.match(/^error .*ELOOP.*; its last keys stay$/)
    expect(await whose()).to.equal(identity)
    const other = await new Subject().start({ JWT_RULE: '', MESHD_CA_STATE_DIR: dir })
    expect(await other.whose(await local.token({ sub, aud }))).to.equal('unavailable: local-issuer mesh-local: there are no keys of the issuer')
    await other.stop()
    // The whole directory is away, as when a volume is unmounted.
    renameSync(dir, `${dir}-away`)
    await until('the reason', () => subject.log.some((line) => line.includes('ENOENT')))
    expect(await whose()).to.equal(identity)
    renameSync(`${dir}-away`, dir)
    rmSync(path)
    await until('the keys to be forgotten', async () => (await whose()) === 'local-issuer mesh-local: there are no keys of the issuer')
    rmSync(dirname(dir), { recursive: true })
  })

  it('are reviewed by an orchestrator if no rule accepts them', async () => {
    const reviews: unknown[] = []
    let verdict: TokenVerdict = { account: { namespace: 'a', account: 'b' }, expiresAt: 7 }
    await started({ CLUSTER_ID: 'own' }, async ({ token, audiences, cluster }) => {
      reviews.push([token.length, audiences, cluster])
      return verdict
    })
    expect(await subject.whose(await issuer.token({ sub, aud }))).to.equal(identity)
    expect(reviews).to.deep.equal([])
    const token = await issuer.token({ iss: 'orchestrator', sub, aud })
    expect(await subject.ask(token, { clusterId: 'own' })).to.deep.equal({
      caller: { identities: ['spiffe://td.example/ns/a/sa/b'], via: 'token', method: 'token-review', expiresAt: 7 },
    })
    expect(reviews).to.deep.equal([[token.length, ['mesh-ca'], 'own']])
    verdict = { refused: 'no', unavailable: true }
    expect(await subject.whose(await issuer.token({ sub, aud: 'x' }))).to.match(/^unavailable: jwt-rule .*audience "x".*; token-review: no$/)
    reviews.length = 0
    // Who reviews is a matter of the cluster that the call names.
    verdict = { refused: 'not mine', unavailable: false }
    expect(await subject.whose(token, { clusterId: 'other' }))
      .to.contain('token-review: not mine')
      .and.not.contain('unavailable')
    expect(reviews.splice(0)).to.deep.equal([[token.length, ['mesh-ca'], 'other']])
    expect(await subject.whose(await issuer.token({ iss: 'orchestrator', sub: 'jane', aud }))).to.contain('sub is "jane"')
    expect(await subject.whose(await issuer.token({ iss: 'orchestrator', sub, aud, exp: 1_000_000_000 }))).to.contain('it expired ')
    expect(reviews).to.deep.equal([])
  })

  it('are unavailable before the trust domain is known', async () => {
    subject = await new Subject().start({ JWT_RULE: rule() }, undefined, null as never)
    expect(await subject.whose(await issuer.token({ sub, aud })))
      .to.contain('unavailable: ')
      .and.contain('the trust domain is not known yet')
  })

  it('are refused without a log line, which the caller writes with the address', async () => {
    await started()
    await subject.ask('a.b.c')
    expect(subject.log.filter((line) => line.startsWith('warn'))).to.deep.equal([])
  })
})

describe('the authenticator of a service', () => {
  it('checks tokens again after a restart, with the names of the mesh and its keys', async () => {
    const issuer = await new Issuer('https://issuer.example').start()
    const env = { JWT_RULE: JSON.stringify({ issuer: issuer.name, jwks_uri: issuer.jwksUri }), PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1' }
    const local = new LocalDiscovery({ mode: 'in-thread' }, env)
    try {
      const { supervisor } = await local.start({ trustDomain: 'td.example' })
      const token = await issuer.token({ sub, aud })
      const whose = async () => {
        const answer = await supervisor
          .ask<TokenAnswer>('authenticator', 'authenticate', { token })
          .catch((error: Error) => ({ refused: error.message }))
        return 'caller' in answer ? answer.caller.identities.join() : answer.refused
      }
      for (let death = 0; death < 3; death++) {
        await until('the token to be accepted', async () => (await whose()) === 'spiffe://td.example/ns/shop/sa/cart')
        supervisor.kill('authenticator')
      }
      await until('the token to be accepted', async () => (await whose()) === 'spiffe://td.example/ns/shop/sa/cart')
      expect(local.state('authenticator').restarts).to.equal(3)
    } finally {
      await local.dispose()
      await issuer.stop()
    }
  })
})
