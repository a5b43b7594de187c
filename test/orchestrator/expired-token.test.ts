/**
 * A credential of discovery that ends while its file stays as it is: the last state is served, and everything is followed again with the
 * credential that the file has later (docs/operation.md, C2, C4).
 */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { endpointType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const service = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80}]}`
const slice = (...addresses: string[]) => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [${addresses.map((address) => `{addresses: [${address}], conditions: {ready: true}}`).join(', ')}]`

describe('a token of discovery that ends', () => {
  let cluster: TestCluster
  let discovery: Service
  let client: XdsClient

  /** A token that ends with the Secret of this name. */
  const tokenOf = (secret: string): string => {
    cluster.kubectl(['create', 'secret', 'generic', '-n', 'shop', secret])
    return cluster.kubectl(['create', 'token', '-n', 'shop', 'pilot', '--bound-object-kind', 'Secret', '--bound-object-name', secret]).trim()
  }
  const write = (token: string) => {
    const path = join(cluster.dir, 'ending.token')
    writeFileSync(`${path}.new`, token)
    renameSync(`${path}.new`, path)
  }
  const endpoints = () => client.resources.get(endpointType)?.get('outbound|80||web.shop.svc.cluster.local')?.toString('latin1') ?? ''

  before(async () => {
    cluster = await TestCluster.start()
    cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}')
    cluster.apply('apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: pilot, namespace: shop}', service, slice('10.1.0.1'))
    cluster.kubectl(['create', 'clusterrolebinding', 'pilot', '--clusterrole', 'cluster-admin', '--serviceaccount', 'shop:pilot'])
    write(tokenOf('first'))
    const config = cluster.userConfig('ending', '{tokenFile: ending.token}')
    discovery = new Service({
      env: { PILOT_DEBOUNCE_AFTER: '10ms' },
      flags: ['--registries', 'Orchestrator', '--orchconfig', config, '--resync', '1s'],
    })
    await discovery.start()
    client = await new XdsClient(discovery.grpcPort, sidecarNode('10.99.0.1', 'a', 'shop'), true).connect().ready()
    await until('the endpoint', () => endpoints().includes('10.1.0.1'))
  })
  after(async () => {
    client?.close()
    await discovery?.dispose()
    await cluster?.dispose()
  })

  it('costs no endpoint while the server refuses it, and is replaced by the one that its file has later', async () => {
    const second = tokenOf('second')
    cluster.kubectl(['delete', 'secret', '-n', 'shop', 'first'])
    // The comparisons with lists are refused first; watches that go on were authorized before, and end with the server.
    await discovery.output.says(/list of \S+ failed: .*Unauthorized/)
    cluster.signalServer('SIGKILL')
    await discovery.output.says(/watch of endpointslices\.discovery\.k8s\.io failed: .*Unauthorized.*the last state stays/)
    await until('the server', () => {
      try {
        cluster.apply(slice('10.1.0.1', '10.1.0.2'))
        return true
      } catch {
        return false
      }
    })
    expect(endpoints()).to.include('10.1.0.1').and.not.include('10.1.0.2')
    expect((await fetch(`http://127.0.0.1:${discovery.httpPort}/ready`)).status).to.equal(200)
    write(second)
    await until('what changed meanwhile', () => endpoints().includes('10.1.0.2'))
    expect(endpoints()).to.include('10.1.0.1')
    expect(client.closed).to.equal(undefined)
    await discovery.output.says(/endpointslices\.discovery\.k8s\.io are followed again/)
  })
})
