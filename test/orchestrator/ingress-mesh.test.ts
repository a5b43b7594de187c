/**
 * Ingresses of a real cluster with a real gateway (docs/resources.md, I1 to I8 and K11): discovery as `manifests/` deploys it, a gateway of the chart that
 * gets the certificate of the Ingress's Secret from discovery, and pods that requests over TLS reach.
 */
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { deployDiscovery, installChart, programImages, settled } from '../harness/cluster-mesh.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const host = 'web.example'
const documents = `{apiVersion: v1, kind: Namespace, metadata: {name: edge}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop},
  spec: {replicas: 2, selector: {matchLabels: {app: web}},
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: echo, image: echo, readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}}]}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: outside, namespace: shop}, spec: {containers: [{name: idle, image: idle}]}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: mesh}, spec: {controller: mesh.io/ingress-controller}}
---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: other}, spec: {controller: example.com/other}}`
const ingress = (className: string) => `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web, namespace: shop},
  spec: {ingressClassName: ${className}, tls: [{hosts: [${host}], secretName: web-cert}],
    rules: [{host: ${host}, http: {paths: [{path: /shop, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]}}]}}`
/** A Service of the gateways. */
const gateways = (name: string, type: string, more = '') =>
  `{apiVersion: v1, kind: Service, metadata: {name: ${name}, namespace: edge}, spec: {type: ${type}, selector: {app: gateway}, ports: [{name: http, port: 80, targetPort: 8080}, {name: https, port: 443, targetPort: 8443}]${more}}}`

describe('a gateway of Ingresses in a cluster', () => {
  let cluster: TestCluster
  const made = new SiteCertificates()
  const roots = ['first', 'second'].map((name) => made.authority(name))
  const pairs = roots.map((root) => made.issue(host, root))

  const curl = (input: string, ...args: readonly string[]): string => {
    const to = ['--connect-to', '::gateways.edge.svc:', '-s', '-m', '5']
    try {
      return cluster.kubectl(['exec', '-i', '-n', 'shop', 'outside', '--', 'curl', ...to, ...args], input)
    } catch (error) {
      return /exit code (\d+)/.exec((error as Error).message)?.[0] ?? (error as Error).message
    }
  }
  /** The status of a request over TLS by a client that trusts an authority, or how curl ended. */
  const status = (root: number, path = '/shop') =>
    curl(roots[root]?.chain ?? '', '--cacert', '/dev/stdin', '-o', '/dev/null', '-w', '%{http_code}', `https://${host}${path}`)
  const is = (what: string, wanted: string, root = 0) => until(what, () => status(root) === wanted)
  const keep = (pair: number) => cluster.apply(secretDocument('edge/web-cert', pairValues(pairs[pair] as (typeof pairs)[0]), undefined, null))
  const settings = (mesh: string) =>
    cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mesh', namespace: 'mesh-system' }, data: { mesh } }))
  const addresses = () => cluster.kubectl(['get', 'ingress', '-n', 'shop', 'web', '-o', 'jsonpath={.status.loadBalancer.ingress[*]}'])
  const has = (wanted: string) => until(`the status ${wanted}`, () => addresses() === wanted)
  const label = (value: string) => cluster.kubectl(['label', 'pod', '-n', 'edge', '-l', 'app=gateway', `mesh=${value}`, '--overwrite'])

  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    programImages(cluster, envoy)
    deployDiscovery(cluster, { ORCH_INGRESS_NS: 'edge' }, documents)
    keep(0)
    cluster.apply(gateways('gateways', 'ClusterIP'), ingress('mesh'))
    installChart(cluster, 'gateway', { namespace: 'edge', values: { labels: { mesh: 'ingressgateway' }, service: { type: 'None' } } })
    settled(cluster, 'shop', 'web')
  })
  after(async () => {
    made.dispose()
    await cluster?.dispose()
  })

  it('carries requests over TLS to its pods, with the certificate of the Secret, and no others', async () => {
    await is('a request over TLS', '200')
    const answer = JSON.parse(curl(roots[0]?.chain ?? '', '--cacert', '/dev/stdin', `https://${host}/shop/a`)) as {
      pod: string
      path: string
      host: string
    }
    expect([answer.pod.startsWith('web-'), answer.path, answer.host]).to.deep.equal([true, '/shop/a', host])
    expect([status(0, '/other'), status(1), curl('', '-o', '/dev/null', '-w', '%{http_code}', `http://${host}/shop`)]).to.deep.equal([
      '404',
      'exit code 60',
      '200',
    ])
    expect(curl('', '-k', 'https://unknown.example/shop')).to.match(/exit code (35|56)/)
  })

  it('serves the new certificate when the Secret is rotated, and the last good one while it is broken', async () => {
    keep(1)
    await is('the new certificate', '200', 1)
    expect(status(0)).to.equal('exit code 60')
    cluster.apply(secretDocument('edge/web-cert', { 'tls.crt': pairs[0]?.chain ?? '', 'tls.key': pairs[1]?.key ?? '' }, undefined, null))
    await until('the reason', () => cluster.kubectl(['logs', '-n', 'mesh-system', 'deploy/meshd']).includes('not the key of the first certificate'))
    expect(status(1)).to.equal('200')
    keep(0)
    await is('the first certificate again', '200')
  })

  it('has its addresses in the status of the Ingress: of a balancer, of the Service of the settings, of its nodes', async () => {
    expect(addresses()).to.equal('')
    cluster.apply(gateways('mesh-ingressgateway', 'LoadBalancer', ', loadBalancerIP: 192.0.2.7'))
    const balance = (balancer: object) =>
      cluster.kubectl([
        ...['patch', 'service', '-n', 'edge', 'mesh-ingressgateway', '--subresource', 'status', '--type', 'merge', '-p'],
        JSON.stringify({ status: { loadBalancer: { ingress: [balancer] } } }),
      ])
    await has('{"ip":"192.0.2.7"}')
    balance({ hostname: 'edge.example.com' })
    await has('{"hostname":"edge.example.com"}')
    cluster.apply(gateways('mine', 'ClusterIP', ', externalIPs: [192.0.2.9]'))
    settings('{ingressService: mine, ingressSelector: ingressgateway}')
    await has('{"ip":"192.0.2.9"}')
    // Those of the nodes of its pods.
    const external = JSON.stringify({ status: { addresses: [{ type: 'ExternalIP', address: '203.0.113.5' }] } })
    settings('ingressService: ""')
    await until('the address of the node', () => {
      // Its kubelet, which knows of none, removes it.
      cluster.kubectl(['patch', 'node', 'n1', '--subresource', 'status', '-p', external])
      return addresses() === '{"ip":"203.0.113.5"}'
    })
    expect(status(0)).to.equal('200')
  })

  it('serves what the settings and the class of the Ingress say, live', async () => {
    settings('ingressSelector: special')
    await is('the end of the listener', 'exit code 7')
    label('special')
    await is('the listener of gateways with the other label', '200')
    // With the name of a Service it is the label of the gateways.
    cluster.apply(gateways('special', 'ClusterIP', ', externalIPs: [192.0.2.10]'))
    settings('ingressService: special')
    await has('{"ip":"192.0.2.10"}')
    expect(status(0)).to.equal('200')
    cluster.apply(ingress('other'))
    await is('the end of the Ingress', 'exit code 7')
    cluster.apply(ingress('mesh'))
    await is('the Ingress again', '200')
    settings('ingressControllerMode: "OFF"')
    await is('the end of all Ingresses', 'exit code 7')
  })
})
