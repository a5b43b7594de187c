/** Each debug page and method of the admin service covers what it says, all replicas of discovery or the one that is asked (docs/operation.md, A3 to A6). */

import { expect } from 'chai'
import { adminService } from '../../actors/discovery/admin/admin-service.ts'
import { methodCoverage } from '../../actors/discovery/admin/coverage.ts'
import { addDebugPages } from '../../actors/discovery/admin/debug-pages.ts'
import { debugPages } from '../../actors/discovery/admin/debug-table.ts'
import { Explanations } from '../../actors/discovery/admin/explanations.ts'
import { OtherReplicas } from '../../actors/discovery/admin/other-replicas.ts'
import { operator } from '../../actors/discovery/admin/page-access.ts'
import { PageSources } from '../../actors/discovery/admin/page-sources.ts'
import { replicaAnswers } from '../../actors/discovery/admin/replica-answers.ts'
import type { AnswerReplica } from '../../actors/discovery/admin/replica-port.ts'
import { PageServer } from '../../actors/http/page-server.ts'
import { adminMethods, adminServiceName, adminStreams } from '../../protocols/messages/admin-call.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { textOf } from '../harness/page-text.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const host = 'shop.example'
const entry = `
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: shop, namespace: shop}
spec: {hosts: [${host}], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}
`
const other = 'replica-1'
const reason = 'it stands still'
const resource = `resource=ServiceEntry/shop/shop&type=cds&name=${encodeURIComponent(`outbound|80||${host}`)}`
const parameters: Readonly<Record<string, string>> = { authz: '', routing: `&host=${host}` }
const queryOf = (page: string, proxy = 'pod.shop') => `${page}?proxyID=${proxy}${parameters[page] ?? `&${resource}`}`

describe('answers of one of two replicas', () => {
  const discovery = new LocalDiscovery({ mode: 'in-thread' })
  const server = new PageServer()
  let client: XdsClient
  let base = ''
  /** What the other replica was asked, and how it answers. */
  const asked: string[] = []
  let same: AnswerReplica
  const stands: AnswerReplica = () => Promise.reject(new Error(reason))
  let answer = stands
  const debug = async (page: string, method = 'GET') => {
    const reply = await fetch(`${base}/debug/${page}`, { method })
    return { status: reply.status, text: await textOf(reply) }
  }
  const call = async (method: string, request: object = {}) => {
    const headers = { 'content-type': 'application/json' }
    const reply = await fetch(`${base}/${adminServiceName}/${method}`, { method: 'POST', headers, body: JSON.stringify(request) })
    return { status: reply.status, text: await reply.text() }
  }

  before(async () => {
    const { supervisor, ready } = await discovery.start()
    await ready()
    discovery.write('a.yaml', entry)
    client = await new XdsClient(discovery.grpcPort, sidecarNode('10.0.0.1', 'pod', 'shop'), true).connect().ready()
    await until('the service', () => client.resources.get(clusterType)?.has(`outbound|80||${host}`) ?? false)
    const others = new OtherReplicas({
      ...{ own: 'replica-0', revision: '', key: Buffer.alloc(32) },
      async ask(_, question, details) {
        asked.push(question)
        return JSON.parse(JSON.stringify(await answer(question, details))) as unknown
      },
    })
    others.listed([{ name: other, version: '1', address: '127.0.0.1:1', revision: '' }], 0, 0)
    const sources = new PageSources(supervisor, true, new Explanations(), { others })
    same = replicaAnswers(sources.own, async () => ({ proxies: 1, isReady: true, most: 0 }))
    const viewer = { ...operator('a test', { mayAct: true }), isDeliberate: true }
    const log = { info: () => undefined, error: () => undefined } as never
    const levels = {
      get: () => ({ output: { fallback: 'info' as const, scopes: {} }, stackTrace: { fallback: 'none' as const, scopes: {} }, callers: [] }),
    }
    const parts = {
      sources,
      log,
      domain: 'mesh.io',
      settings: async () => ({ settings: [], misspelt: [] }),
      levels: { ...levels, set: async () => undefined },
    }
    addDebugPages(server, { sources, log, admin: true, admit: async () => viewer })
    server.addRpcs(
      adminService(parts, true, async () => viewer),
      () => undefined,
    )
    await server.listen('127.0.0.1', 0)
    base = `http://127.0.0.1:${server.port}`
  })
  after(async () => {
    client?.close()
    await server.close()
    await discovery.dispose()
  })
  beforeEach(() => {
    asked.length = 0
    answer = stands
  })

  for (const [name, page] of Object.entries(debugPages)) {
    if (page.shows === 'nothing') continue
    const isOfAll = page.covers === 'replicas'
    it(`/debug/${name} ${isOfAll ? 'asks the other and names it when it does not answer' : `asks nobody: ${page.covers}`}`, async () => {
      const shows = (await debug(queryOf(name))).text
      expect(asked.length > 0, asked.join()).to.equal(isOfAll)
      if (!isOfAll) return
      // A page about one proxy has found it here already.
      if (page.shows !== 'proxy') expect(shows).to.contain(other).and.to.contain(reason)
      else expect((await debug(queryOf(name, 'gone.shop'))).status).to.equal(503)
      asked.length = 0
      await debug(`${queryOf(name)}&replicas=own`)
      expect(asked).to.deep.equal([])
      answer = same
      const both = await debug(queryOf(name))
      expect(both.text).not.to.match(/another form than it should|"answered": false/)
      expect(both.status).to.equal(200)
    })
  }

  for (const method of adminMethods) {
    const isOfAll = methodCoverage[method] === 'replicas'
    // Streams are served on the gRPC ports only; acts of the authority are no questions.
    if (adminStreams.includes(method) || /^(Rotate|Distrust|Trust|Accept|Set)/.test(method)) continue
    it(`${method} ${isOfAll ? 'asks the other and names it when it does not answer' : `asks nobody: ${methodCoverage[method]}`}`, async () => {
      const request = {
        ...(/Proxy|Explain|Route/.test(method) && { proxy: 'gone.shop' }),
        ...(method === 'ExplainResource' && { type: 'cds', name: `outbound|80||${host}` }),
      }
      const shows = (await call(method, request)).text
      expect(asked.length > 0, asked.join()).to.equal(isOfAll)
      if (isOfAll) expect(shows).to.contain(other).and.to.contain(reason)
    })
  }

  it('have the rows of both, each once where they do not tell of a proxy or a connection', async () => {
    answer = same
    const placed = JSON.parse((await debug('syncz')).text) as readonly { readonly replica: string }[]
    expect(placed.map(({ replica }) => replica)).to.deep.equal(['replica-0', other])
    const once = await debug('noeffectz')
    expect(once.text).to.equal((await debug('noeffectz?replicas=own')).text)
  })

  it('name a replica that was found to have a proxy and fails meanwhile, as not available', async () => {
    answer = (question, details) => (question === 'connections' ? Promise.resolve(elsewhere()) : stands(question, details))
    const elsewhere = () => [{ ...found, connectionId: 'sidecar~10.0.0.9~far.shop~x-1', nodeId: 'sidecar~10.0.0.9~far.shop~x' }]
    const [found] = (await same('connections', [])) as readonly object[]
    const said = `replica ${other} has not answered: ${reason}`
    for (const page of ['config_dump', 'edsz', 'ndsz', 'sidecarz', 'authz', 'explain'])
      expect(await debug(queryOf(page, 'far.shop')), page).to.deep.equal({ status: 503, text: said })
    expect(await debug('force_disconnect?proxyID=far.shop', 'POST')).to.deep.equal({ status: 503, text: said })
    const refused = await call('GetProxyConfig', { proxy: 'far.shop' })
    expect([refused.status, JSON.parse(refused.text)]).to.deep.equal([503, { code: 'unavailable', message: said }])
  })

  it('go on from where each replica was: the cursor of one that does not answer stays', async () => {
    const pushes = async (after: string) => JSON.parse((await debug(`pushz?after=${encodeURIComponent(after)}`)).text)
    answer = same
    const first = await pushes('')
    const made = first.pushes.map((push: { replica: string }) => push.replica)
    expect(new Set(made)).to.deep.equal(new Set(['replica-0', other]))
    expect((await pushes(first.cursor)).pushes).to.deep.equal([])
    answer = stands
    discovery.write('a.yaml', entry.replace('10.0.0.1', '10.0.0.2'))
    let own = first
    await until('the push here', async () => (own = await pushes(own.cursor)).pushes.length > 0)
    expect(own.pushes.map((push: { replica: string }) => push.replica)).to.deep.equal(['replica-0'])
    expect(own.replicas.map(({ answered }: { answered: boolean }) => answered)).to.deep.equal([true, false])
    answer = same
    const late = await pushes(own.cursor)
    expect(late.pushes.map((push: { replica: string }) => push.replica)).to.include(other)
  })
})
