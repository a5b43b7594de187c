import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import type { LbEndpoint } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_components_pb.js'
import { ClusterLoadAssignmentSchema } from '../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshNetworks } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import type { ResourceFault } from '../../../src/model/faults.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { slicesOf } from '../../../src/registry/slices.ts'
import { endpointType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { names, testSettings } from '../../harness/settings.ts'

const entry = (name: string, endpoints: string, ports = '[{number: 80, name: http}]') =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ns}\nspec: {hosts: [${name}.com], location: MESH_INTERNAL, resolution: STATIC, ports: ${ports}, endpoints: ${endpoints}}\n`

class Mesh {
  /** Faults in the order in which they were reported. */
  readonly found: ResourceFault[] = []
  readonly planner = new Planner(testSettings(), (fault) => this.found.push(fault))

  constructor(networks: string) {
    this.networks(networks)
    this.set(entry('a', '[{address: 10.0.0.1, serviceAccount: x}, {address: 10.7.0.1, serviceAccount: x}]'))
    for (const network of ['', 'far'])
      this.planner.connect(
        network,
        readNode(
          { id: 'sidecar~10.1.0.1~p.ns~ns.svc.cluster.local', metadata: network ? { NETWORK: network } : {}, locality: undefined },
          names,
          false,
        ),
      )
  }

  set(document: string): void {
    for (const object of parseConfigFile('f', document, names).objects) this.planner.state.setConfig(configKey(object), object)
    this.planner.advance()
    this.planner.takePush()
  }

  networks(text: string): void {
    const read = readMeshNetworks(text)
    if ('error' in read) throw new Error(read.error)
    this.planner.state.setNetworks(read.value)
    this.planner.advance()
  }

  /** Returns addresses and ports of the endpoints of `a` as a proxy of a network sees them. */
  seen(network: string): string[] {
    return this.#endpoints(network).map(({ hostIdentifier }) => {
      const address = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined
      return address?.case === 'socketAddress' ? `${address.value.address}:${address.value.portSpecifier.value}` : '?'
    })
  }

  /** Returns the weights of the same endpoints. */
  weights(network: string): (number | undefined)[] {
    return this.#endpoints(network).map(({ loadBalancingWeight }) => loadBalancingWeight)
  }

  #endpoints(network: string): LbEndpoint[] {
    const resources = resourcesOf(this.planner, network).get(endpointType) ?? []
    this.planner.takePush()
    const resource = resources.find(({ name }) => name === 'outbound|80||a.com')
    const assignment = fromBinary(ClusterLoadAssignmentSchema, resource ? this.planner.groups.valueOf(resource) : new Uint8Array())
    return assignment.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints)
  }

  faults(): string[] {
    return this.planner.faults.all().map(({ type, resource, reason, consequence }) => `${type} ${resource}: ${reason}; ${consequence}`)
  }
}

describe('mesh networks', () => {
  it('assign endpoints by fromCidr, and proxies of other networks reach them through the gateway', () => {
    const mesh = new Mesh('networks: {far: {endpoints: [{fromCidr: 10.7.0.0/16}], gateways: [{address: 1.2.3.4, port: 15000}]}}')
    expect(mesh.seen('')).to.deep.equal(['10.0.0.1:80', '1.2.3.4:15000'])
    expect(mesh.seen('far')).to.deep.equal(['10.0.0.1:80', '10.7.0.1:80'])
    mesh.networks('networks: {}')
    expect(mesh.seen('')).to.deep.equal(['10.0.0.1:80', '10.7.0.1:80'])
  })

  it('assign endpoints by fromRegistry, after explicit networks and CIDRs', () => {
    const mesh = new Mesh(
      'networks: {far: {endpoints: [{fromRegistry: ServiceEntry}], gateways: [{address: 1.2.3.4}]}, near: {endpoints: [{fromCidr: 10.0.0.0/16}], gateways: []}}',
    )
    expect(mesh.seen('')).to.deep.equal(['10.0.0.1:80', '1.2.3.4:15443'])
    expect(mesh.seen('far')).to.deep.equal(['10.0.0.1:80', '10.7.0.1:80'])
  })

  it('assign the endpoints of a cluster by fromRegistry with the cluster id', () => {
    const mesh = new Mesh('networks: {far: {endpoints: [{fromRegistry: west}, {fromRegistry: ""}], gateways: [{address: 1.2.3.4}]}}')
    const [state] = mesh.planner.snapshot.services.get('a.com') ?? []
    if (!state) throw new Error('there is no service')
    for (const [cluster, address] of [
      ['east', '10.2.0.1'],
      ['west', '10.2.0.2'],
    ] as const) {
      const endpoints = state.endpoints.slice(0, 1).map((endpoint) => ({ ...endpoint, address }))
      mesh.planner.state.services.set(`Orchestrator/${cluster}`, 'ns/a.com', {
        service: { ...state.service, provider: 'Orchestrator', cluster },
        slices: slicesOf(endpoints),
      })
    }
    mesh.planner.advance()
    expect(mesh.seen('')).to.deep.equal(['10.0.0.1:80', '10.7.0.1:80', '10.2.0.1:80', '1.2.3.4:15443'])
  })

  it('use the endpoints of a service as gateways by registryServiceName, and follow their changes', () => {
    const mesh = new Mesh('networks: {far: {endpoints: [{fromCidr: 10.7.0.0/16}], gateways: [{registryServiceName: gw.com, port: 443}]}}')
    expect(mesh.seen('')).to.deep.equal(['10.0.0.1:80', '10.7.0.1:80'])
    expect(mesh.faults()).to.deep.equal(['network far: gateway gw.com: there is no such service; it is left out'])
    mesh.set(entry('gw', '[{address: 5.5.5.5}, {address: 6.6.6.6}]', '[{number: 443, name: tls, targetPort: 15443}]'))
    expect(mesh.seen('')).to.deep.equal(['10.0.0.1:80', '5.5.5.5:15443', '6.6.6.6:15443'])
    expect(mesh.faults()).to.deep.equal([])
    mesh.set(entry('gw', '[{address: 7.7.7.7}]', '[{number: 443, name: tls, targetPort: 15443}]'))
    expect(mesh.seen('')).to.deep.equal(['10.0.0.1:80', '7.7.7.7:15443'])
  })

  it('report a persistent fault once, however often something else changes', () => {
    const mesh = new Mesh('networks: {far: {gateways: [{address: not.resolved}]}}')
    expect(mesh.found.filter(({ type }) => type === 'network')).to.have.length(1)
    for (const name of ['b', 'c', 'd']) mesh.set(entry(name, '[{address: 10.0.0.9}]'))
    expect(mesh.found.filter(({ type }) => type === 'network')).to.have.length(1)
    expect(mesh.faults()).to.have.length(1)
    mesh.networks('networks: {}')
    expect(mesh.faults()).to.deep.equal([])
  })

  it("give weights within Envoy's limit for 1,100 networks with two gateways each", () => {
    const networks = Array.from(
      { length: 1100 },
      (_, n) => `n${n}: {gateways: [{address: 1.${n >> 8}.${n & 255}.1}, {address: 1.${n >> 8}.${n & 255}.2}]}`,
    )
    const mesh = new Mesh(
      `networks: {far: {endpoints: [{fromCidr: 10.7.0.0/16}], gateways: [{address: 1.2.3.4}, {address: 1.2.3.5}]}, ${networks.join()}}`,
    )
    expect(mesh.seen('')).to.deep.equal(['10.0.0.1:80', '1.2.3.4:15443', '1.2.3.5:15443'])
    const [own, one, other] = mesh.weights('')
    expect([one, (own ?? 0) / (one ?? 1)]).to.deep.equal([other, 2])
    expect((own ?? 0) + (one ?? 0) + (other ?? 0)).to.be.lessThan(2 ** 32)
    expect(mesh.faults()).to.deep.equal([])
  })

  it('report gateways without a usable address, and reject invalid CIDRs', () => {
    const mesh = new Mesh('networks: {far: {gateways: [{address: not.resolved}, {port: 1}]}}')
    expect(mesh.faults()).to.deep.equal([
      'network far: gateway not.resolved: not an IP address, and not resolved; it is left out',
      'network far: a gateway has neither address nor registryServiceName; it is left out',
    ])
    for (const wrong of ['fromCidr: 10.0.0.0', 'fromCidr: x/8'])
      expect(readMeshNetworks(`networks: {net: {endpoints: [{${wrong}}]}}`)).to.have.property('error')
  })
})
