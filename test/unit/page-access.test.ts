import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { type DebugPage, debugPages } from '../../actors/discovery/admin/debug-table.ts'
import { admitOverNetwork, type Viewer } from '../../actors/discovery/admin/page-access.ts'
import { profilePages } from '../../actors/discovery/admin/profile-pages.ts'
import { isOpenOnLoopback } from '../../actors/discovery/given/access.ts'
import { isLoopbackAddress, isLoopbackHost } from '../../actors/http/loopback.ts'
import { Page } from '../../actors/http/page-server.ts'
import type { PeerProgram } from '../../actors/http/peer-programs.ts'
import type { TokenAnswer } from '../../protocols/messages/identity.ts'
import type { SecretOutcome } from '../../protocols/messages/secret-calls.ts'
import { readFeatures } from '../../src/config/features.ts'
import type { ConnectionEnds } from '../../src/identity/socket-table.ts'

describe('addresses and names of the local machine', () => {
  it('are loopback addresses and localhost, and nothing that resembles them', () => {
    for (const address of ['127.0.0.1', '127.255.0.3', '::1', '::ffff:127.0.0.1']) expect(isLoopbackAddress(address), address).to.equal(true)
    for (const address of ['10.0.0.1', '::ffff:10.0.0.1', '::', '0.0.0.0', '127.0.0.1.example', '127.1', '', undefined])
      expect(isLoopbackAddress(address), address).to.equal(false)
    for (const host of ['localhost', 'LOCALHOST:8080', 'localhost.:1', 'a.localhost', '127.0.0.1:80', '[::1]:8080', '[::1]'])
      expect(isLoopbackHost(host), host).to.equal(true)
    for (const host of [
      '',
      'localhost.evil.example',
      'evil.example:8080',
      '127.0.0.1.nip.io',
      '[::1',
      '10.0.0.1',
      'localhost:8080:1',
      'notlocalhost',
    ])
      expect(isLoopbackHost(host), host).to.equal(false)
  })
})

describe('access to debug pages over the network', () => {
  const names = { trustDomain: 'cluster.local', trustDomainAliases: ['old.example'], rootNamespace: 'mesh-system' }
  const caller = (...identities: string[]): TokenAnswer => ({ caller: { identities, via: 'token', method: 'test', expiresAt: 0 } })
  const answers: Record<string, TokenAnswer> = {
    shop: caller('spiffe://cluster.local/ns/shop/sa/a'),
    root: caller('spiffe://cluster.local/ns/mesh-system/sa/a'),
    alias: caller('spiffe://old.example/ns/mesh-system/sa/a'),
    foreign: caller('spiffe://other.example/ns/mesh-system/sa/a'),
    bad: { refused: 'expired: a detail for the log' },
    later: { refused: 'no keys', unavailable: true },
  }
  const said: string[] = []
  /** What is at the other end of local connections. */
  let program: PeerProgram = 'ordinary'
  const admission = (onLoopback: boolean) =>
    admitOverNetwork({
      peers: { of: async () => program },
      onLoopback,
      authenticate: async ({ token, service }) => {
        expect(service).to.equal('pages')
        return answers[token] ?? Promise.reject(new Error('nobody to ask'))
      },
      names: async () => names,
      warn: (line) => said.push(line),
    })
  const local: ConnectionEnds = { localAddress: '::ffff:127.0.0.1', remoteAddress: '::ffff:127.0.0.1' }
  const ask = (headers: Record<string, string>, from = local, onLoopback = true) =>
    admission(onLoopback)({
      headers: { host: 'localhost:8080', ...headers },
      connection: from,
    })
  const outcome = (admitted: Viewer | Page) =>
    admitted instanceof Page ? `${admitted.status} ${admitted.headers['WWW-Authenticate'] ?? ''}` : admitted.isOperator ? 'operator' : admitted.name
  const of = async (...given: Parameters<typeof ask>) => outcome(await ask(...given))

  it('is given to local requests, unless that is switched off', async () => {
    expect(await of({})).to.equal('operator')
    expect(await of({}, local, false)).to.equal('401 Bearer')
    expect(await of({ 'sec-fetch-site': 'none' })).to.equal('operator')
    expect(await of({ 'sec-fetch-site': 'same-origin', origin: 'http://localhost:8080' })).to.equal('operator')
  })

  it('is refused without a token if either end of the connection is remote, whatever the headers', async () => {
    for (const from of [
      { localAddress: '10.0.0.1', remoteAddress: '127.0.0.1' },
      { localAddress: '127.0.0.1', remoteAddress: '10.0.0.1' },
      { localAddress: '10.0.0.1', remoteAddress: '10.0.0.1' },
    ])
      expect(await of({ 'x-forwarded-for': '127.0.0.1', forwarded: 'for=127.0.0.1' }, from)).to.equal('401 Bearer')
  })

  it('allows actions only with a token, and none for being local, whatever the headers', async () => {
    const mayAct = async (...given: Parameters<typeof ask>) => {
      const { mayAct, isDeliberate } = (await ask(...given)) as Viewer
      return [mayAct, isDeliberate]
    }
    expect([await mayAct({}), await mayAct({ 'x-mesh-introspection': '' })]).to.deep.equal([
      [false, false],
      [false, false],
    ])
    expect(await mayAct({ authorization: 'Bearer root' })).to.deep.equal([true, true])
  })

  it('is refused to a proxy at the other end, and where nothing is there, or it takes too long to find out', async () => {
    const outcomes: Record<string, string> = {}
    for (program of ['ordinary', 'unknown', 'suspect', 'elsewhere', 'busy'] as const) outcomes[program] = await of({})
    program = 'suspect'
    expect(await of({ authorization: 'Bearer root' }), 'with a token').to.equal('operator')
    program = 'ordinary'
    expect(outcomes).to.deep.equal({ ordinary: 'operator', unknown: 'operator', suspect: '403 ', elsewhere: '401 Bearer', busy: '503 ' })
  })

  it('is refused to connections that a local sidecar forwards', async () => {
    for (const remoteAddress of ['127.0.0.6', '::ffff:127.0.0.6', '::6']) expect(await of({}, { ...local, remoteAddress })).to.equal('401 Bearer')
  })

  it('is refused to pages of other sites and to other host names', async () => {
    expect(await of({ host: 'evil.example:8080' })).to.equal('403 ')
    expect(await of({ host: '' })).to.equal('403 ')
    for (const site of ['cross-site', 'same-site', 'new-value']) expect(await of({ 'sec-fetch-site': site })).to.equal('403 ')
    for (const origin of ['http://evil.example', 'http://localhost:3000', 'null', 'https://localhost:8080'])
      expect(await of({ origin })).to.equal('403 ')
  })

  it("with a token covers the caller's namespace, and everything for the root namespace of the mesh", async () => {
    const bearer = (token: string) => ask({ authorization: `Bearer ${token}`, host: 'pilot.example' }, { localAddress: '10.0.0.1' })
    expect(outcome(await bearer('root'))).to.equal('operator')
    expect(outcome(await bearer('alias'))).to.equal('operator')
    const shop = (await bearer('shop')) as Viewer
    expect([shop.isOperator, shop.sees('shop'), shop.sees('mesh-system'), shop.sees('')]).to.deep.equal([false, true, false, false])
    const foreign = (await bearer('foreign')) as Viewer
    expect([foreign.isOperator, foreign.sees('mesh-system')]).to.deep.equal([false, false])
  })

  it('is decided by the token alone if one is sent; the reason of a refusal is only logged', async () => {
    const bad = (await ask({ authorization: 'Bearer bad' })) as Page
    expect([bad.status, bad.body, bad.headers['WWW-Authenticate']]).to.deep.equal([401, 'the token is not accepted', 'Bearer'])
    expect(said.at(-1)).to.equal('debug page refused to ::ffff:127.0.0.1: expired: a detail for the log')
    for (const authorization of ['Bearer ', 'Basic abc', 'Bearer a b', 'bearer\tbad']) expect(await of({ authorization })).to.equal('401 Bearer')
    expect(await of({ authorization: 'bearer root' })).to.equal('operator')
    for (const token of ['later', 'nobody']) expect(await of({ authorization: `Bearer ${token}` })).to.equal('503 ')
  })

  it('is open to the local machine by default while no TLS material is configured', async () => {
    const root = mkdtempSync(join(tmpdir(), 'mesh-root-'))
    const open = (value: string | undefined, tlsCertFile: string) =>
      isOpenOnLoopback({ tlsCertFile }, readFeatures({ ENABLE_DEBUG_ON_LOOPBACK: value, ROOT_CA_DIR: root }).features)
    expect([await open(undefined, ''), await open('auto', 'cert.pem'), await open('true', 'cert.pem'), await open('0', '')]).to.deep.equal([
      true,
      false,
      true,
      false,
    ])
    // Where the state is in Secrets of a cluster, an authority is plugged in as one. What cannot be found out counts as one.
    const beside = (outcome: SecretOutcome) =>
      isOpenOnLoopback({ tlsCertFile: '' }, readFeatures({ ROOT_CA_DIR: root }).features, { call: async () => outcome })
    const secret = { name: 'cacerts', type: '', others: {}, data: {}, resourceVersion: '1' }
    expect([
      await beside({ outcome: 'missing' }),
      await beside({ outcome: 'done', secret }),
      await beside({ outcome: 'failed', reason: 'no', mayPass: true }),
    ]).to.deep.equal([true, false, false])
    writeFileSync(join(root, 'ca-key.pem'), '')
    expect([await open(undefined, ''), await open('true', '')]).to.deep.equal([false, true])
    rmSync(root, { recursive: true })
    expect(() => readFeatures({ ENABLE_DEBUG_ON_LOOPBACK: 'perhaps' })).to.throw(
      'environment variable ENABLE_DEBUG_ON_LOOPBACK: "perhaps" is not true, false or auto',
    )
  })
})

describe('the scope of each debug page', () => {
  it('is documented in docs/operation.md', () => {
    const docs = readFileSync(fileURLToPath(new URL('../../docs/operation.md', import.meta.url)), 'utf8')
    /** Returns the names in code marks between `words` and the end of the sentence or clause. */
    const named = (words: string) => {
      const [list = ''] = docs.split(words)[1]?.split(/`[.;]/) ?? []
      return [...`${list}\``.matchAll(/`(\w+)`/g)].map(([, name]) => name).sort()
    }
    const pages = Object.entries({ ...debugPages, ...profilePages }).map(([path, { shows }]) => ({ name: path.split('/')[0] as string, shows }))
    const of = (shows: DebugPage['shows']) => [...new Set(pages.filter((page) => page.shows === shows).map(({ name }) => name))].sort()
    expect(named('About the mesh as a whole')).to.deep.equal(of('mesh'))
    expect(named('About one proxy')).to.deep.equal(of('proxy'))
    const actions = Object.keys(debugPages).filter((name) => debugPages[name]?.action)
    expect(actions.filter((name) => !docs.includes(`POST /debug/${name}`))).to.deep.equal([])
  })
})
