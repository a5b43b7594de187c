import { expect } from 'chai'
import { addDebugPages } from '../../actors/discovery/admin/debug-pages.ts'
import { debugPages } from '../../actors/discovery/admin/debug-table.ts'
import { Explanations } from '../../actors/discovery/admin/explanations.ts'
import type { Viewer } from '../../actors/discovery/admin/page-access.ts'
import { PageSources } from '../../actors/discovery/admin/page-sources.ts'
import { PageServer } from '../../actors/http/page-server.ts'
import { freePort } from '../../bench/ports.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { textOf } from '../harness/page-text.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

/** Objects, services and endpoints of a namespace, named after it. */
const objects = (namespace: string, address: string) => `
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: ${namespace}-entry, namespace: ${namespace}}
spec: {hosts: [${namespace}.example], exportTo: ["."], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: ${address}, labels: {app: ${namespace}-app}}]}
---
apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: ${namespace}-policy, namespace: ${namespace}}
spec: {rules: [{to: [{operation: {paths: [/${namespace}]}}]}]}
`

describe('debug pages for callers of one namespace', () => {
  const discovery = new LocalDiscovery({ mode: 'in-thread' })
  const server = new PageServer()
  const clients: XdsClient[] = []
  const said: string[] = []
  let base = ''
  const viewers: Record<string, Viewer> = {
    own: { name: 'own', isOperator: false, mayAct: true, sees: (namespace) => namespace === 'own', isDeliberate: true },
    operator: { name: 'operator', isOperator: true, mayAct: true, sees: () => true, isDeliberate: true },
    misled: { name: 'misled', isOperator: true, mayAct: true, sees: () => true, isDeliberate: false },
    local: { name: 'local', isOperator: true, mayAct: false, sees: () => true, isDeliberate: true },
  }
  const ask = async (path: string, viewer: 'own' | 'operator' | 'misled' | 'local', method = 'GET') => {
    const answer = await fetch(`${base}${path}`, { method, headers: { 'x-viewer': viewer } })
    return { status: answer.status, text: await textOf(answer), headers: answer.headers }
  }
  const text = async (path: string, viewer: 'own' | 'operator') => (await ask(path, viewer)).text

  before(async () => {
    const { supervisor, ready } = await discovery.start()
    await ready()
    discovery.write('a.yaml', `${objects('own', '10.0.0.1')}---${objects('foreign', '10.0.0.2')}`)
    for (const [namespace, address] of [
      ['own', '10.0.0.1'],
      ['foreign', '10.0.0.2'],
    ] as const)
      clients.push(await new XdsClient(discovery.grpcPort, sidecarNode(address, 'pod', namespace), true).connect().ready())
    addDebugPages(server, {
      sources: new PageSources(supervisor, true, new Explanations()),
      admit: async ({ headers }) => viewers[String(headers['x-viewer'])] as Viewer,
      admin: true,
      log: { info: (line: string) => said.push(line) } as never,
    })
    const port = await freePort()
    await server.listen('127.0.0.1', port)
    base = `http://127.0.0.1:${port}/debug`
    const isThere = async (name: string) => (await text('/configz', 'operator')).includes(name)
    await until('both namespaces', async () => (await isThere('own-policy')) && (await isThere('foreign-policy')))
  })
  after(async () => {
    for (const client of clients) client.close()
    await server.close()
    await discovery.dispose()
  })

  for (const [name, { shows }] of Object.entries(debugPages)) {
    it(`${name} shows nothing of another namespace`, async () => {
      for (const query of ['', '?proxyID=pod', '?proxyID=pod.foreign', '?resource=ServiceEntry/own/own-entry', '?push=false&brief=1']) {
        const { status, text, headers } = await ask(`/${name}${query}`, 'own')
        expect(text.replaceAll('pod.foreign', ''), query).not.to.match(/foreign|10\.0\.0\.2/)
        if (shows === 'mesh') expect(status).to.equal(403)
        else expect(status).to.be.oneOf([200, 400, 404, 405, 422])
        expect([headers.get('x-content-type-options'), headers.get('cache-control')]).to.deep.equal(['nosniff', 'no-store'])
      }
    })
  }

  it("show the caller's namespace, and everything to operators", async () => {
    for (const name of [
      'adsz',
      'syncz',
      'configz',
      'registryz',
      'endpointz',
      'endpointShardz',
      'instancesz',
      'authorizationz',
      'sidecarz?proxyID=pod.own',
    ])
      expect(await text(`/${name}`, 'own'), name).to.match(/own/)
    for (const name of ['adsz', 'syncz', 'configz', 'registryz', 'endpointz', 'endpointShardz', 'instancesz', 'authorizationz'])
      expect(await text(`/${name}`, 'operator'), name)
        .to.match(/own/)
        .and.to.match(/foreign/)
    expect((await ask('/mesh', 'operator')).status).to.equal(200)
  })

  it('offer the proxies that the caller sees where one is needed, to browsers as links', async () => {
    const wanted = 'You must provide a proxyID in the query string'
    expect(await ask('/edsz?brief=1', 'own')).to.include({ status: 400, text: `${wanted}\n/debug/edsz?brief=1&proxyID=pod.own` })
    expect((await ask('/edsz', 'operator')).text).to.equal(`${wanted}\n/debug/edsz?proxyID=pod.foreign\n/debug/edsz?proxyID=pod.own`)
    const shown = await fetch(`${base}/edsz`, { headers: { 'x-viewer': 'own', accept: 'text/html' } })
    const page = await shown.text()
    expect([shown.status, page.includes('foreign')]).to.deep.equal([400, false])
    expect(page).to.contain('<a href="/debug/edsz?proxyID=pod.own">pod.own</a>')
  })

  it('say to programs what they may be asked with when something is missing', async () => {
    const { status, text: missing } = await ask('/config_distribution', 'operator')
    expect([status, missing.split('\n')]).to.deep.equal([
      422,
      [
        'You must provide a resource in the query string: <Kind>/<namespace>/<name>',
        '',
        'Parameters of /debug/config_distribution:',
        '  resource         the object: <Kind>/<namespace>/<name>; required',
        '  proxy_namespace  only proxies of this namespace',
        '  count            how many proxies have each generation',
      ],
    ])
    for (const query of ['routing?proxyID=pod.own', 'routing', 'authz'])
      expect(await text(`/${query}`, 'operator')).to.contain('\n  header         header of the request, name:value; may be repeated\n')
    expect(await text('/explain?proxyID=pod.own', 'operator')).to.contain('\n  type     type of the resource; required (cds, eds, lds, rds, vhds)\n')
  })

  it('can be filtered by namespace, and refuse a foreign one whether it exists or not', async () => {
    expect(await text('/configz?namespace=own', 'operator')).not.to.match(/foreign/)
    for (const namespace of ['foreign', 'nowhere'])
      for (const query of [`configz?namespace=${namespace}`, `config_distribution?resource=ServiceEntry/${namespace}/x`]) {
        const { status, text } = await ask(`/${query}`, 'own')
        expect([status, text]).to.deep.equal([403, `namespace "${namespace}": callers see their own namespace only`])
      }
  })

  it('treat a proxy of another namespace like one that is not connected', async () => {
    for (const name of ['edsz', 'ndsz', 'config_dump', 'sidecarz', 'authz', 'routing'])
      expect(await ask(`/${name}?proxyID=pod.foreign`, 'own').then(({ status, text }) => [status, text])).to.deep.equal(
        await ask(`/${name}?proxyID=pod.nowhere`, 'own').then(({ status, text }) => [status, text]),
      )
  })

  it('execute actions only for operators with POST, and log who requested them', async () => {
    expect((await ask('/adsz?push=true', 'own', 'POST')).status).to.equal(403)
    expect((await ask('/force_disconnect?proxyID=pod.own', 'own', 'POST')).status).to.equal(403)
    const asked = await ask('/adsz?push=true', 'operator')
    expect([asked.status, asked.headers.get('allow'), asked.text]).to.deep.equal([
      405,
      'POST',
      'this action needs the method POST: POST /debug/adsz with push=true',
    ])
    for (const path of ['/adsz?push=true', '/force_disconnect?proxyID=pod.own', '/ca_rotate'])
      expect(await ask(path, 'misled', 'POST').then((answer) => [answer.status, answer.text])).to.deep.equal([
        403,
        'this action changes state: the request must have the header x-mesh-introspection',
      ])
    for (const [path, form] of [
      ['/adsz?push=true', 'push=true'],
      ['/force_disconnect?proxyID=pod.own', 'proxyID=<name or id of a proxy>'],
      ['/ca_rotate', 'force=<true or false>'],
    ] as const)
      expect(await ask(path, 'local', 'POST').then((answer) => [answer.status, answer.text])).to.deep.equal([
        403,
        `this action changes state: it needs the admin socket (pilot-discovery request POST /debug${path.split('?')[0]} '${form}') or a token of the root namespace`,
      ])
    expect((await ask('/adsz', 'misled', 'POST')).status, 'what only shows').to.equal(200)
    expect(said).to.deep.equal([])
    expect((await ask('/adsz?push=true', 'operator', 'POST')).text).to.equal('Pushed to 2 servers')
    expect(said).to.deep.equal(['POST /debug/adsz by operator'])
    expect((await ask('/force_disconnect', 'operator', 'POST')).status).to.equal(400)
  })
})
