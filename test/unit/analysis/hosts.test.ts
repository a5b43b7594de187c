import { expect } from 'chai'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { mesh, service } from '../../harness/faulty-objects.ts'
import { testSettings } from '../../harness/settings.ts'

/** The findings of documents about hosts that are not there, `<code> <path>: <message>`. */
function told(...documents: string[]): string[] {
  const offline = new OfflineMesh(testSettings())
  offline.add('all.yaml', documents.join('\n---\n'))
  expect(offline.faults).to.deep.equal([])
  const analysis = new Analysis(offline.facts())
  analysis.refresh()
  return analysis
    .all()
    .filter(({ code }) => ['IST0101', 'MESH0012', 'MESH0013'].includes(code))
    .map(({ code, path, message }) => `${code} ${path}: ${message}`)
}

const http = '{name: http, port: 80}'
const reviews = service('shop/reviews', http)
const web = service('shop/web', http)
const entry = mesh('ServiceEntry', 'shop/e', '{hosts: [api.example.com, "*.wild.example"], ports: [{number: 80, name: http}]}')
const routed = (host: string, more = '', namespace = 'shop') =>
  mesh('VirtualService', `${namespace}/v`, `{hosts: ["${host}"], ${more}http: [{route: [{destination: {host: web.shop.svc.cluster.local}}]}]}`)
const all = (host: string, more?: string, namespace?: string) => told(reviews, web, entry, routed(host, more, namespace))
const absent = (host: string, near = '') =>
  `MESH0012 spec.hosts[0]: there is no service ${host}, so no request to a service takes these routes${near === '' ? '' : `; did you mean "${near}"?`}`

describe('hosts of VirtualServices of the mesh', () => {
  it('are told where only a Service could have them and none has', () => {
    expect(all('reviws')).to.deep.equal([absent('reviws.shop.svc.cluster.local', 'reviews')])
    expect(all('reviws.shop.svc.cluster.local')).to.deep.equal([absent('reviws.shop.svc.cluster.local', 'reviews.shop.svc.cluster.local')])
    expect(all('other')).to.deep.equal([absent('other.shop.svc.cluster.local')])
    expect(all('reviews', '', 'bank')).to.deep.equal([absent('reviews.bank.svc.cluster.local', 'reviews.shop.svc.cluster.local')])
    expect(all('reviws', 'gateways: [mesh], ')).to.have.length(1)
  })

  it('are told where they stand for a Service without its domain, or with a misspelt one', () => {
    for (const host of ['reviews.shop', 'reviews.shop.svc', 'reviews.shop.svc.cluster.locl', 'reviews.shop.svc.cluster.lcoal'])
      expect(all(host), host).to.deep.equal([
        `MESH0012 spec.hosts[0]: ${host} is not the host of a service, so requests to reviews.shop.svc.cluster.local do not take these routes: write that`,
      ])
  })

  it('are told for information where they are nearly that of a ServiceEntry', () => {
    expect(all('api.exmple.com')).to.deep.equal([
      'MESH0013 spec.hosts[0]: no service has the host api.exmple.com, and one has api.example.com: correct it, if that is meant',
    ])
  })

  it('are not told where a service has them, or may be outside of the mesh', () => {
    const right = ['reviews', 'REVIEWS', 'reviews.shop.svc.cluster.local', 'api.example.com', 'a.wild.example', '*.shop.svc.cluster.local', '*.com']
    const outside = [
      'web-0.web.shop.svc.cluster.local',
      'kubernetes.default.svc.cluster.local',
      'reviews.shop.svc.clusterset.local',
      '10.0.0.1',
      '::1',
    ]
    const others = ['web.example.com', 'shop.example.com', 'api2.example.com', 'orders.shop', 'example.com', 'api.example.org']
    for (const host of [...right, ...outside, ...others]) expect(all(host), host).to.deep.equal([])
    expect(
      told(entry, service('shop/web', http), routed('api1.example.com'), mesh('ServiceEntry', 'shop/a', '{hosts: [api2.example.com]}')),
    ).to.deep.equal([])
  })

  it('are not told of gateways, of services that other namespaces only see, and where a destination is told', () => {
    const gateway = mesh('Gateway', 'shop/edge', '{servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}')
    expect(told(web, gateway, routed('reviws', 'gateways: [edge], '))).to.deep.equal([])
    const hidden = mesh('ServiceEntry', 'bank/e', '{hosts: [api.bank.example], exportTo: ["."], ports: [{number: 80, name: http}]}')
    expect(told(web, hidden, routed('api.bank.example'))).to.deep.equal([])
    const lost = mesh('VirtualService', 'shop/v', '{hosts: [reviws], http: [{route: [{destination: {host: reviws}}]}]}')
    expect(told(reviews, lost)).to.deep.equal([
      'IST0101 spec.http[0].route[0].destination.host: there is no service reviws.shop.svc.cluster.local, so requests are answered with an error; did you mean "reviews"?',
    ])
  })

  it('are not told while Services or ServiceEntries could not be read', () => {
    const unread = (kind: string, host: string) => {
      const offline = new OfflineMesh(testSettings())
      offline.add('all.yaml', [reviews, web, entry, routed(host)].join('\n---\n'))
      offline.setUnread(kind, ['bank'])
      const analysis = new Analysis(offline.facts())
      analysis.refresh()
      return analysis.all().map(({ code }) => code)
    }
    expect(unread('Service', 'reviws')).to.deep.equal([])
    expect(unread('ServiceEntry', 'api.exmple.com')).to.deep.equal([])
    expect(unread('Gateway', 'api.exmple.com')).to.deep.equal(['MESH0013'])
  })

  it('are told and no longer told as ServiceEntries come and go, by what was asked of them only', () => {
    const offline = new OfflineMesh(testSettings())
    offline.add('all.yaml', [web, routed('api.exmple.com')].join('\n---\n'))
    const facts = offline.facts()
    const analysis = new Analysis(facts)
    analysis.refresh()
    expect(analysis.all()).to.deep.equal([])
    const [given] = facts.services('web.shop.svc.cluster.local')
    if (!given) throw new Error('no service')
    facts.setServices('elsewhere.org', [{ ...given, hostname: 'elsewhere.org', provider: 'ServiceEntry' }])
    expect(analysis.due).to.equal(0)
    facts.setServices('api.example.com', [{ ...given, hostname: 'api.example.com', provider: 'ServiceEntry' }])
    analysis.refresh()
    expect(analysis.all().map(({ code }) => code)).to.deep.equal(['MESH0013'])
    facts.setServices('api.example.com', [])
    analysis.refresh()
    expect(analysis.all()).to.deep.equal([])
  })
})

describe('suggestions of hosts', () => {
  const near = (host: string, namespace = 'shop') =>
    told(
      reviews,
      web,
      service('bank/web', http),
      service('bank/vault', http),
      entry,
      mesh('DestinationRule', `${namespace}/r`, `{host: ${host}}`),
    ).map((line) => /"(.*)"/.exec(line)?.[1])

  it('complete names with their namespace alone, or one that does not exist or has no such service', () => {
    expect(near('web.s')).to.deep.equal(['web.shop.svc.cluster.local'])
    expect(near('web.s', 'bank')).to.deep.equal(['web.bank.svc.cluster.local'])
    expect(near('web.bank')).to.deep.equal(['web.bank.svc.cluster.local'])
    expect(near('web.bnak')).to.deep.equal(['web.bank.svc.cluster.local'])
    expect(near('web.bank.svc')).to.deep.equal(['web.bank.svc.cluster.local'])
    expect(near('reviws.shop')).to.deep.equal(['reviews.shop.svc.cluster.local'])
    expect(near('vault.shop')).to.deep.equal(['vault.bank.svc.cluster.local'])
    expect(near('vault.shop.svc.cluster.local')).to.deep.equal(['vault.bank.svc.cluster.local'])
    expect(near('vault')).to.deep.equal(['vault.bank.svc.cluster.local'])
    expect(near('api.exmple.com')).to.deep.equal(['api.example.com'])
  })

  it('are not made of names that have nothing in common but the domain', () => {
    expect(near('users.shop.svc.cluster.local')).to.deep.equal([undefined])
    expect(near('users.example.com')).to.deep.equal([undefined])
  })
})

describe('imports of Sidecars', () => {
  const imported = (...hosts: string[]) =>
    told(
      reviews,
      service('bank/vault', http),
      entry,
      mesh('Sidecar', 'shop/s', `{egress: [{hosts: [${hosts.map((host) => `"${host}"`).join(', ')}]}]}`),
    )

  it('are told with what may be meant', () => {
    expect(imported('./reviws.shop.svc.cluster.local')).to.deep.equal([
      'IST0101 spec.egress[0].hosts[0]: there is no service reviws.shop.svc.cluster.local, so nothing is imported; did you mean "reviews.shop.svc.cluster.local"?',
    ])
    expect(imported('./vault.bank.svc.cluster.local')).to.deep.equal([
      'IST0101 spec.egress[0].hosts[0]: the service vault.bank.svc.cluster.local is in the namespace bank, not in shop, so nothing is imported: write bank/vault.bank.svc.cluster.local',
    ])
  })

  it('are not told of short names, wildcards and any namespace, and of routes of the namespace for the host', () => {
    expect(imported('./reviews', '*/vault.bank.svc.cluster.local', 'bank/*', './*.svc.cluster.local', 'shop/a.wild.example')).to.deep.equal([])
    const routes = mesh('VirtualService', 'shop/v', '{hosts: [vault.bank.svc.cluster.local], http: [{route: [{destination: {host: reviews}}]}]}')
    expect(
      told(reviews, service('bank/vault', http), routes, mesh('Sidecar', 'shop/s', '{egress: [{hosts: ["./vault.bank.svc.cluster.local"]}]}')),
    ).to.deep.equal([])
  })

  it('are told of an egress proxy that is not there', () => {
    const proxy = (host: string) =>
      told(reviews, mesh('Sidecar', 'shop/s', `{outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: ${host}, port: {number: 80}}}}`))
    expect(proxy('reviews.shop.svc.cluster.local')).to.deep.equal([])
    expect(proxy('reviws.shop.svc.cluster.local')).to.deep.equal([
      'IST0101 spec.outboundTrafficPolicy.egressProxy.host: there is no service reviws.shop.svc.cluster.local, so connections to unknown hosts are closed; did you mean "reviews.shop.svc.cluster.local"?',
    ])
  })
})
