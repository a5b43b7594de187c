/** Configuration objects served to other control planes: the generator `api` (docs/xds-protocol.md, "Configuration objects"). */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import {
  DeltaDiscoveryRequestSchema,
  type DeltaDiscoveryResponse,
  DeltaDiscoveryResponseSchema,
} from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { readConfigResource } from '../../src/xds/config-objects/config-resource.ts'
import { bytesField } from '../../src/xds/slab/struct.ts'
import { textField } from '../../src/xds/slab/wire.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { Watcher } from '../harness/status-watcher.ts'
import { until } from '../harness/until.ts'
import { adsPath } from '../harness/xds-client.ts'

const entries = 'networking.istio.io/v1alpha3/ServiceEntry'
const routes = 'networking.mesh.io/v1/VirtualService'

describe('served configuration objects', () => {
  const service = new Service()
  const made = new ServingCertificates(service.dir)
  const open: { close(): void }[] = []
  let secured = 0
  const tls = (identity: string) => {
    const [ca, key, cert] = ['ca.pem', `${identity}-key.pem`, `${identity}.pem`].map((name) => Buffer.from(made.text(name)))
    return credentials.createSsl(ca as Buffer, key as Buffer, cert as Buffer, { checkServerIdentity: () => undefined })
  }
  const watch = (identity: string, namespace: string) => {
    const watcher = new Watcher(secured, { generator: 'api', namespace, channel: tls(identity) })
    open.push(watcher)
    return watcher
  }
  const namesIn = (resources: readonly { readonly typeUrl: string; readonly value: Uint8Array }[], typeUrl: string) =>
    resources
      .map(({ typeUrl: type, value }) => readConfigResource(Buffer.concat([textField(1, type), bytesField(2, value)]), typeUrl).document.metadata)
      .map((metadata) => (metadata as { name: string }).name)
      .sort()

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('root', 'ca', ['spiffe://cluster.local/ns/mesh-system/sa/meshd'])
    made.workload('shop', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    secured = await freePort()
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${secured}`, '--writers', '1', ...made.servingFlags())
    service.write('a.yaml', serviceEntry('a'))
    await service.start()
  })
  afterEach(() => {
    for (const each of open.splice(0)) each.close()
  })
  after(() => service.dispose())

  it('come as a whole in the state of the world, after each acknowledgement if they differ', async () => {
    const watcher = watch('root', 'mesh-system')
    const first = await watcher.ask(entries).ask(routes).ask('networking.istio.io/v9/ServiceEntry').ask('MeshConfig').answered(entries)
    expect([first.resources.map(({ typeUrl }) => typeUrl), namesIn(first.resources, entries)]).to.deep.equal([
      ['type.googleapis.com/istio.mcp.v1alpha1.Resource'],
      ['a'],
    ])
    for (const type of [routes, 'networking.istio.io/v9/ServiceEntry', 'MeshConfig'])
      expect((await watcher.answered(type)).resources).to.deep.equal([])
    service.write('b.yaml', serviceEntry('b'))
    // The change waits for the answer to the first response.
    watcher.ask(entries, [], first.nonce)
    const second = await watcher.answered(entries, 2)
    expect(namesIn(second.resources, entries)).to.deep.equal(['a', 'b'])
    expect(second.nonce).not.to.equal(first.nonce)
    watcher.ask(entries, [], second.nonce)
    service.remove('b.yaml')
    expect(namesIn((await watcher.answered(entries, 3)).resources, entries)).to.deep.equal(['a'])
  })

  it('come in delta as differences, large sets in parts of which the last one says that it is the last', async () => {
    service.write('many.yaml', Array.from({ length: 3000 }, (_, index) => serviceEntry(`s${index}`)).join('---\n'))
    const client = new Client(`localhost:${secured}`, tls('root'), { 'grpc.use_local_subchannel_pool': 1 })
    open.push(client)
    const connected = (initialResourceVersions: Record<string, string>) => {
      const stream = client.makeBidiStreamRequest(
        adsPath.replace('Stream', 'Delta'),
        (bytes: Uint8Array) => Buffer.from(bytes),
        (bytes) => fromBinary(DeltaDiscoveryResponseSchema, bytes),
      )
      const responses: DeltaDiscoveryResponse[] = []
      const request = (more: object) =>
        stream.write(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl: entries, ...more })))
      stream.on('error', () => undefined)
      stream.on('data', (response: DeltaDiscoveryResponse) => {
        responses.push(response)
        request({ responseNonce: response.nonce })
      })
      const node = { id: 'sidecar~0.0.0.0~meshd.mesh-system~x', metadata: { GENERATOR: 'api', NAMESPACE: 'mesh-system' } }
      request({ node, initialResourceVersions })
      return { stream, responses }
    }
    const { stream, responses } = connected({ 'ns/a': 'old', 'ns/gone': 'old' })
    const names = (all = responses) => new Map(all.flatMap(({ resources }) => resources.map(({ name, version }) => [name, version] as const)))
    await until('all of them', () => names().size === 3001 && (responses.at(-1)?.systemVersionInfo ?? '') !== '')
    expect(responses.length).to.be.above(1)
    expect(responses.flatMap(({ removedResources }) => removedResources)).to.deep.equal(['ns/gone'])
    const before = responses.length
    service.write('a.yaml', serviceEntry('a', '10.0.0.77'))
    await until('the change', () => responses.length > before)
    expect([...names(responses.slice(before)).keys()]).to.deep.equal(['ns/a'])
    stream.cancel()
    const again = connected(Object.fromEntries(names()))
    await until('the answer', () => again.responses.length > 0)
    expect([again.responses[0]?.resources, again.responses[0]?.removedResources]).to.deep.equal([[], []])
    again.stream.cancel()
    service.remove('many.yaml')
  })

  it('are for identities of the root namespace only, and for nobody in plain text', async () => {
    const shop = watch('shop', 'shop').ask(entries)
    await until('the refusal', () => shop.ended !== undefined)
    expect([shop.ended?.code, shop.ended?.details]).to.deep.equal([
      7,
      'spiffe://cluster.local/ns/shop/sa/cart may not read configuration objects: identities of the root namespace may',
    ])
    const plain = new Watcher(service.grpcPort, { generator: 'api' }).ask(entries)
    open.push(plain)
    await until('the refusal', () => plain.ended !== undefined)
    expect([plain.ended?.code, plain.ended?.details]).to.deep.equal([
      16,
      'configuration objects are served on the secured port only, to identities of the root namespace',
    ])
    // Such a stream is no proxy.
    const { clients } = await service.debug<{ clients: unknown[] }>('adsz')
    expect(clients).to.deep.equal([])
  })
})
