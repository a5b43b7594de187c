/** Namespaces, nodes and pods in files, through the real command: what proxies are sent follows from their labels (docs/resources.md, O1 to O5). */

import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const pod = (name: string, namespace: string, labels: string, more = '') =>
  `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: ${namespace}, labels: ${labels}}\n${more}\n`
const entry = (name: string, namespace: string, more = '') =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec:\n  hosts: [${name}.${namespace}.test]\n  location: MESH_INTERNAL\n  resolution: STATIC\n  ports: [{number: 80, name: http}]\n  ${more}\n`
const sidecar = (name: string, labels: string, host: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: ${name}, namespace: shop}\nspec: {workloadSelector: {labels: ${labels}}, egress: [{hosts: ["${host}"]}]}\n`

for (const delta of [false, true])
  describe(`namespaces, nodes and pods in files, ${delta ? 'delta' : 'state of the world'}`, () => {
    const clients: XdsClient[] = []
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const endpoint = 'endpoints: [{address: 10.9.0.1}]'
    before(async () => {
      service.write('services.yaml', [entry('a', 'shop', endpoint), entry('b', 'shop', endpoint)].join('---\n'))
      service.write(
        'sidecars.yaml',
        [sidecar('only-a', '{tier: front}', './a.shop.test'), sidecar('only-b', '{tier: back}', './b.shop.test')].join('---\n'),
      )
      service.write('pod.yaml', pod('web-1', 'shop', '{tier: front}'))
      await service.start()
    })
    after(async () => {
      for (const client of clients) client.close()
      await service.dispose()
    })

    const connect = async (address: string, name: string, namespace: string, metadata: Record<string, unknown> = {}) => {
      const client = new XdsClient(service.grpcPort, sidecarNode(address, name, namespace, metadata), delta)
      clients.push(client.connect())
      return client.ready()
    }
    const hosts = (client: XdsClient) =>
      [...(client.resources.get(clusterType)?.keys() ?? [])]
        .flatMap((name) => (name.startsWith('outbound|') ? name.slice(name.lastIndexOf('|') + 1) : []))
        .sort()
    const sees = (what: string, client: XdsClient, ...expected: string[]) => until(what, () => hosts(client).join() === expected.join())

    it('a changed label of a pod changes what its proxy is sent, and nothing for another', async () => {
      const web = await connect('10.8.0.1', 'web-1', 'shop', { LABELS: { tier: 'back' } })
      const other = await connect('10.8.0.2', 'web-2', 'shop', { LABELS: { tier: 'front' } })
      expect([hosts(web), hosts(other)]).to.deep.equal([['a.shop.test'], ['a.shop.test']])
      const sent = JSON.stringify([...other.responses])
      service.write('pod.yaml', pod('web-1', 'shop', '{tier: back}'))
      await sees('the services of the other Sidecar', web, 'b.shop.test')
      expect(JSON.stringify([...other.responses])).to.equal(sent)
      service.write('pod.yaml', pod('web-1', 'shop', '{tier: [of, the, pod]}'))
      await service.output.says('Pod/shop/web-1, field metadata.labels')
      expect(hosts(web)).to.deep.equal(['b.shop.test'])
      service.write('pod.yaml', pod('web-1', 'shop', '{tier: front}'))
      await sees('the services of the first', web, 'a.shop.test')
      service.remove('pod.yaml')
      await sees('those of the labels in the metadata', web, 'b.shop.test')
    })

    it('discoverySelectors decide by the labels of namespaces whose services and configuration count', async () => {
      const selectors = (...all: string[]) => service.write('mesh-config', `discoverySelectors: [${all.join()}]\n`)
      const namespace = (labels: string) =>
        service.write('namespaces.yaml', `apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: ${labels}}\n`)
      const enabled = '{matchLabels: {mesh-discovery: enabled}}'
      const seer = await connect('10.8.0.3', 'seer', 'else')
      expect(hosts(seer)).to.deep.equal(['a.shop.test', 'b.shop.test'])
      selectors(enabled)
      await sees('no service', seer)
      await service.output.says(/shop.*no source has a Namespace of this name/)
      namespace('{mesh-discovery: enabled}')
      await sees('the services of the labelled namespace', seer, 'a.shop.test', 'b.shop.test')
      namespace('{mesh-discovery: disabled}')
      await sees('none of another label', seer)
      selectors(enabled, '{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [shop]}]}')
      await sees('those that a second entry selects by name', seer, 'a.shop.test', 'b.shop.test')
      selectors(enabled)
      await sees('none again', seer)
      service.write('mesh-config', '')
      await sees('all without selectors', seer, 'a.shop.test', 'b.shop.test')
      service.remove('namespaces.yaml')
    })

    it('an entry that selects pods has their addresses, with the locality of their nodes, and follows both', async () => {
      service.write('selecting.yaml', entry('web', 'shop', 'workloadSelector: {labels: {app: web}}'))
      const on = (node: string, address: string) => pod('web-7', 'shop', '{app: web}', `spec: {nodeName: ${node}}\nstatus: {podIP: ${address}}`)
      const node = (name: string, region: string) =>
        service.write(`${name}.yaml`, `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}, labels: {topology.kubernetes.io/region: ${region}}}\n`)
      service.write('pod.yaml', on('n1', '10.9.1.1'))
      node('n1', 'north')
      const caller = await connect('10.8.0.4', 'caller', 'else')
      const name = 'outbound|80||web.shop.test'
      const sent = () => {
        const bytes = caller.resources.get(endpointType)?.get(name)
        return (bytes ? fromBinary(ClusterLoadAssignmentSchema, bytes).endpoints : []).map(({ locality, lbEndpoints }) => {
          const [host] = lbEndpoints
          const address = host?.hostIdentifier.case === 'endpoint' ? host.hostIdentifier.value.address?.address : undefined
          return `${locality?.region ?? ''} ${address?.case === 'socketAddress' ? address.value.address : ''}`
        })
      }
      const has = (what: string, ...expected: string[]) => until(what, () => JSON.stringify(sent()) === JSON.stringify(expected))
      await has('the pod on its node', 'north 10.9.1.1')
      node('n1', 'south')
      await has('the changed region of the node', 'south 10.9.1.1')
      node('n2', 'east')
      service.write('pod.yaml', on('n2', '10.9.1.2'))
      await has('the pod on another node', 'east 10.9.1.2')
      service.remove('n2.yaml')
      await has('no locality without the node', ' 10.9.1.2')
      service.remove('pod.yaml')
      await has('no endpoint without the pod')
      service.remove('selecting.yaml')
      service.remove('n1.yaml')
    })
  })
