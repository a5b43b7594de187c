/**
 * An API server that is away for longer than everything lasts that depends on it (docs/disaster.md): certificates end and are renewed, Leases run out, and
 * its store forgets what watches would go on from. Certificates that live for seconds do what those of a day do in a day.
 */
import { X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import { status } from '../../src/model/status-codes.ts'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { HostileRelay } from '../harness/hostile-relay.ts'
import { SecuredDiscovery } from '../harness/secured-discovery.ts'
import { keys } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'
import type { XdsClient } from '../harness/xds-client.ts'

const service = (name: string) =>
  `{apiVersion: v1, kind: Service, metadata: {name: ${name}, namespace: shop}, spec: {ports: [{name: http, port: 80, targetPort: 8080}]}}`
/** Endpoints that need no pods. */
const slice = (name: string, address: string) =>
  `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: ${name}, namespace: shop, labels: {kubernetes.io/service-name: ${name}}},
    addressType: IPv4, ports: [{name: http, port: 8080}], endpoints: [{addresses: ["${address}"]}]}`

describe('an API server that is away for longer than everything lasts', () => {
  let cluster: TestCluster
  let relay: HostileRelay
  let discovery: SecuredDiscovery
  /** A proxy that is connected all the time. */
  let proxy: XdsClient
  let first: { readonly key: string; readonly cert: string }
  let renewed: { readonly key: string; readonly cert: string }

  const token = () => cluster.kubectl(['create', 'token', 'cart', '-n', 'shop', '--audience', 'mesh-ca']).trim()
  const hasEndpoint = (client: XdsClient, name: string, address: string) =>
    client.resources.get(endpointType)?.get(`outbound|80||${name}.shop.svc.cluster.local`)?.includes(address) === true
  const endOf = ({ cert }: { readonly cert: string }) => new X509Certificate(cert).validToDate.getTime()
  const outcome = async (client: XdsClient) => {
    await until('an answer', () => client.responses.has(clusterType) || client.closed !== undefined)
    return client.closed ? `${client.closed.code}` : 'served'
  }
  const leases = () =>
    (
      JSON.parse(cluster.kubectl(['get', 'leases', '-n', 'mesh-system', '-o', 'json'])) as {
        items: { spec: { holderIdentity?: string; leaseDurationSeconds: number; renewTime: string } }[]
      }
    ).items.filter(({ spec }) => spec.holderIdentity)
  const areOver = () =>
    leases().every(({ spec: { renewTime, leaseDurationSeconds } }) => Date.parse(renewTime) + leaseDurationSeconds * 1000 < Date.now())

  before(async () => {
    cluster = await TestCluster.start()
    cluster.stopControllers()
    cluster.apply(...['mesh-system', 'shop'].map((name) => `{apiVersion: v1, kind: Namespace, metadata: {name: ${name}}}`))
    cluster.apply('{apiVersion: v1, kind: ServiceAccount, metadata: {name: cart, namespace: shop}}', service('web'), service('old'))
    cluster.apply(slice('web', '10.1.0.1'), slice('old', '10.1.0.2'))
    relay = await HostileRelay.start(cluster.server, cluster.dir)
    discovery = await SecuredDiscovery.start(cluster.roleConfig(relay.address), { DEFAULT_WORKLOAD_CERT_TTL: '20s', PILOT_DEBOUNCE_AFTER: '10ms' })
    first = await discovery.certify(keys.p256, { authorization: `Bearer ${token()}` })
    proxy = discovery.open({ authorization: `Bearer ${token()}` })
    await until('its endpoints', () => hasEndpoint(proxy, 'web', '10.1.0.1') && hasEndpoint(proxy, 'old', '10.1.0.2'))
    await until('a leader', () => leases().length > 0 && !areOver())
  })
  after(async () => {
    await discovery?.dispose()
    relay?.close()
    await cluster?.dispose()
  })

  it('costs workloads neither their certificates nor what they know; new tokens are neither refused nor accepted', async () => {
    relay.away()
    await discovery.service.output.says(/failed: .*the last state stays/)
    renewed = first
    await until('renewals until the first certificate has ended', async () => {
      if (endOf(renewed) < Date.now() + 10_000) renewed = await discovery.certify(keys.p256, {}, renewed)
      return endOf(first) + 1000 < Date.now()
    })
    const refusal = await discovery.certify(keys.p256, {}, first).catch((error: Error) => error.message)
    expect(refusal, 'the first certificate').to.match(/^14 /)
    const again = discovery.open({}, renewed)
    await until('what was known', () => hasEndpoint(again, 'web', '10.1.0.1') && hasEndpoint(again, 'old', '10.1.0.2'))
    expect(await outcome(discovery.open({ authorization: `Bearer ${token()}` }))).to.equal(`${status.unavailable}`)
    await until('the Leases to have run out', areOver)
    expect(proxy.closed).to.equal(undefined)
    expect((await fetch(`http://127.0.0.1:${discovery.service.httpPort}/ready`)).status).to.equal(200)
  })

  it('comes back with a store that forgot what was known: all that changed meanwhile arrives, and somebody leads again', async () => {
    cluster.apply(service('new'), slice('new', '10.1.0.3'), slice('web', '10.1.0.4'), '{apiVersion: v1, kind: Namespace, metadata: {name: later}}')
    cluster.kubectl(['delete', 'service,endpointslice', '-n', 'shop', 'old'])
    cluster.compactStore()
    // What it keeps in memory of former versions goes with it.
    cluster.signalServer('SIGKILL')
    await until('the API server to be there again', () => cluster.kubectl(['get', '--raw', '/readyz']) === 'ok')
    relay.back()
    await until('what was added and changed', () => hasEndpoint(proxy, 'new', '10.1.0.3') && hasEndpoint(proxy, 'web', '10.1.0.4'))
    await until('the end of what was removed', () => !proxy.resources.get(clusterType)?.has('outbound|80||old.shop.svc.cluster.local'))
    expect(proxy.closed, 'the stream that was open all the time').to.equal(undefined)
    expect(await outcome(discovery.open({ authorization: `Bearer ${token()}` }))).to.equal('served')
    await until('the roots in a namespace that was made meanwhile', () => {
      const names = cluster.kubectl(['get', 'configmap', '-n', 'later', '-o', 'jsonpath={.items[*].metadata.name}'])
      return names.includes('mesh-ca-root-cert')
    })
    expect(areOver(), 'the Leases').to.equal(false)
  })
})
