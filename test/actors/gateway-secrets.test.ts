/** Gateway secrets across failures of actors: of the source that read them, and of a writer that serves them. */
import { fromBinary } from '@bufbuild/protobuf'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { SecretSchema } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import { clusterType, secretType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { type Pair, pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { XdsClient } from '../harness/xds-client.ts'

describe('gateway secrets when actors die', () => {
  const control = new LocalDiscovery({ mode: 'threads' }, { PILOT_MOCK_SERVICES: '0' })
  const mesh = new ServingCertificates(control.dir)
  const made = new SiteCertificates()
  const clients: XdsClient[] = []
  let sites: Pair[]
  let port = 0
  const write = (name: string, site: number) => control.write(`${name}.json`, secretDocument(`edge/${name}`, pairValues(sites[site] as Pair)))
  const end = async (name: string) => {
    const before = control.state(name).restarts
    control.service.supervisor.kill(name)
    await until(`${name} to run again`, () => control.state(name).state === 'running' && control.state(name).restarts > before)
  }
  /** A router that subscribes to secrets of its namespace. */
  const router = async (delta: boolean, ...names: string[]) => {
    const text = (name: string) => Buffer.from(mesh.text(name))
    const node = { id: 'router~10.7.0.9~gateway.edge~edge.svc.cluster.local', metadata: { NAMESPACE: 'edge' } }
    const channel = credentials.createSsl(text('ca.pem'), text('edge-key.pem'), text('edge.pem'), { checkServerIdentity: () => undefined })
    const client = new XdsClient(port, node, delta, channel).connect()
    clients.push(client)
    await until('the first configuration', () => client.responses.has(clusterType))
    return client.watch(
      secretType,
      names.map((name) => `kubernetes://${name}`),
    )
  }
  /** Returns the index of the site whose key a client has. */
  const held = (client: XdsClient, name: string) => {
    const value = client.resources.get(secretType)?.get(`kubernetes://${name}`)
    const { type } = value ? fromBinary(SecretSchema, value) : { type: undefined }
    const key = type?.case === 'tlsCertificate' ? Buffer.from((type.value.privateKey?.specifier.value as Uint8Array) ?? []).toString() : undefined
    return sites.findIndex((site) => site.key === key)
  }

  before(async () => {
    const root = made.authority('sites')
    sites = ['a', 'b', 'c'].map((name) => made.issue(`${name}.example`, root))
    mesh.authority('ca')
    mesh.issue('server', 'ca')
    mesh.workload('edge', 'ca', ['spiffe://cluster.local/ns/edge/sa/gateway'])
    write('one', 0)
    write('two', 1)
    port = await freePort()
    const files = { tlsCertFile: mesh.file('server.pem'), tlsKeyFile: mesh.file('server-key.pem'), caCertFile: mesh.file('ca.pem') }
    await (await control.start({ ...files, secureGRPCAddr: `127.0.0.1:${port}`, writers: 1 })).ready()
  })
  after(async () => {
    for (const client of clients) client.close()
    await control.dispose()
    made.dispose()
  })

  it('stay while their source is gone, are not sent again when it is back, and then follow changes', async () => {
    const [one, two] = await Promise.all([router(false, 'one', 'two'), router(true, 'one', 'two')])
    for (const client of [one, two]) await until('the secrets', () => held(client, 'one') === 0 && held(client, 'two') === 1)
    control.write('one.json', secretDocument('edge/one', { ...pairValues(sites[2] as Pair), 'tls.key': 'x' }))
    await until('the fault', () => control.log().includes('Secret/edge/one, field data.tls.key'))
    const responses = () => [one, two].map((client) => client.responses.get(secretType))
    const before = responses()
    await end('source/files')
    const late = await router(true, 'one', 'two')
    await until('what is known of the faulty one', () => held(late, 'one') === 0 && held(late, 'two') === 1)
    expect(responses()).to.deep.equal(before)
    write('two', 2)
    for (const client of [one, two, late]) await until('the change', () => held(client, 'two') === 2)
    control.remove('one.json')
    await until('delta to receive the removal', () => two.removed.includes('kubernetes://one'))
    expect(held(one, 'one'), 'state of the world').to.equal(0)
    write('one', 1)
    for (const client of [one, two, late]) await until('the new one', () => held(client, 'one') === 1)
  })

  it('are requested again by a restarted writer', async () => {
    await end('xds-writer/0')
    await until('the writer to listen', () => control.ready().then(({ status }) => status === 200))
    for (const delta of [false, true]) {
      const client = await router(delta, 'one')
      await until('the secret', () => held(client, 'one') === 1)
    }
  })

  it('are sent to subscribers that asked while there was no source', async () => {
    write('three', 0)
    const client = await router(true, 'two')
    await until('a secret', () => held(client, 'two') === 2)
    control.service.supervisor.kill('source/files')
    client.watch(secretType, ['kubernetes://two', 'kubernetes://three'])
    await until('the other', () => held(client, 'three') === 0)
    expect(client.removed).to.deep.equal([])
  })
})
