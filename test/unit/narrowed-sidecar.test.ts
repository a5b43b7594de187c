/** How the hosts of a Sidecar are narrowed to those that are used (docs/commands.md, Q19). */
import type { JsonObject } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { isEgressProxy, narrowedSpec, routedIn } from '../../actors/discovery/commands/narrowed-sidecar.ts'

describe('a Sidecar with fewer hosts', () => {
  const narrowed = (patterns: readonly string[], hosts: readonly string[], routedIn: readonly string[] = []) =>
    narrowedSpec({ egress: [{ hosts: [...patterns] }] }, { hosts, routedIn: new Set(routedIn), viewer: 'shop' }).egress
  const web = 'shop/web.shop.svc.cluster.local'

  it('takes the namespaces of VirtualServices from the metadata of routes, and from no other text', () => {
    const path = (namespace: string) => `/apis/networking.mesh.io/v1alpha3/namespaces/${namespace}/virtual-service/a`
    const route = (namespace: string) => ({ metadata: { filter_metadata: { istio: { config: path(namespace) } } } })
    const answer = { direct_response: { body: { inline_string: path('answered') } }, name: path('named') }
    const configuration: JsonObject = JSON.parse(
      JSON.stringify({ virtual_hosts: [{ name: path('host'), routes: [route('shop'), answer] }, { routes: [route('other')] }] }),
    )
    expect([...routedIn([configuration, { name: path('own'), routes: [route('third')] }, undefined])]).to.deep.equal(['shop', 'other', 'third'])
  })

  it('keeps the namespace of each pattern, and those of VirtualServices that count', () => {
    expect(narrowed(['./*', 'other/*'], [web])).to.deep.equal([{ hosts: ['./web.shop.svc.cluster.local'] }])
    expect(narrowed(['shop/*', 'other/*'], [web], ['other'])).to.deep.equal([
      { hosts: ['shop/web.shop.svc.cluster.local', 'other/web.shop.svc.cluster.local'] },
    ])
    expect(narrowed(['./*', '*/*'], [web])).to.deep.equal([{ hosts: ['*/web.shop.svc.cluster.local'] }])
  })

  it('finds short names, keeps a pattern within a wildcard host, and exclusions', () => {
    expect(narrowed(['./web'], [web])).to.deep.equal([{ hosts: ['./web.shop.svc.cluster.local'] }])
    expect(narrowed(['*/api.example.com'], ['shop/*.example.com'])).to.deep.equal([{ hosts: ['*/api.example.com'] }])
    expect(narrowed(['*/*', '~other/*'], [web])).to.deep.equal([{ hosts: ['*/web.shop.svc.cluster.local', '~other/*'] }])
  })

  it('imports nothing where none of its hosts is used, and keeps other fields', () => {
    const port = { number: 80, protocol: 'HTTP', name: 'http' }
    const spec = { ingress: [{ port }], egress: [{ port, bind: '127.0.0.1', hosts: ['./*'] }] }
    const kept = { hosts: [], routedIn: new Set<string>(), viewer: 'shop' }
    expect(narrowedSpec(spec, kept)).to.deep.equal({ ...spec, egress: [{ port, bind: '127.0.0.1', hosts: ['~/*'] }] })
  })

  it('knows the host to which it sends what goes to unknown hosts', () => {
    const spec = { outboundTrafficPolicy: { egressProxy: { host: 'web' } } }
    expect(isEgressProxy(spec, 'web.shop.svc.cluster.local', 'shop')).to.equal(true)
    expect(isEgressProxy(spec, 'web.other.svc.cluster.local', 'shop')).to.equal(false)
    expect(isEgressProxy({}, 'web.shop.svc.cluster.local', 'shop')).to.equal(false)
  })
})
