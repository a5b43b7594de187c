/**
 * Which callers may fetch configuration from the secured port, and for which node, with certificates of an authority that `--caCertFile`
 * names.
 */
import { connect as http2Connect } from 'node:http2'
import { credentials, Metadata } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { adsPath, sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('callers of the secured port', () => {
  const service = new Service({ env: { PILOT_XDS_CREDENTIAL_GRACE: '500ms' } })
  const made = new ServingCertificates(service.dir)
  const clients: XdsClient[] = []
  let port = 0

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('shop', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    port = await freePort()
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    await service.start()
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  /** Connects. Returns the status with which the stream was ended, undefined if it is served. */
  async function outcome(node: { namespace: string; account?: string }, identity?: string, token?: string, delta = false) {
    const [key, cert] =
      identity === undefined ? [null, null] : [made.text(`${identity}-key.pem`), made.text(`${identity}.pem`)].map((text) => Buffer.from(text))
    const tls = credentials.createSsl(Buffer.from(made.text('ca.pem')), key, cert, { checkServerIdentity: () => undefined })
    const bearer = (give: (error: null, metadata: Metadata) => void) => {
      const metadata = new Metadata()
      metadata.set('authorization', `Bearer ${token}`)
      give(null, metadata)
    }
    const channel =
      token === undefined
        ? tls
        : credentials.combineChannelCredentials(
            tls,
            credentials.createFromMetadataGenerator((_, give) => bearer(give as never)),
          )
    const metadata = node.account === undefined ? {} : { SERVICE_ACCOUNT: node.account }
    const client = new XdsClient(port, sidecarNode('10.7.0.9', 'pod', node.namespace, metadata), delta, channel).connect()
    clients.push(client)
    await until('the client to be served or refused', () => client.closed !== undefined || client.responses.has(clusterType))
    return client.closed
  }
  const refused = async (reason: string) =>
    Number(new RegExp(`^pilot_xds_refused_streams_total{reason="${reason}"} (\\d+)$`, 'm').exec(await service.metrics())?.[1])

  it('need a client certificate or a token', async () => {
    for (const delta of [false, true])
      expect(await outcome({ namespace: 'shop' }, undefined, undefined, delta)).to.deep.equal({ code: 16, details: 'authentication failure' })
    expect(await refused('authentication')).to.equal(2)
    await service.output.says('refused: authentication failure: neither a client certificate nor a token')
    await service.output.says(
      `127.0.0.1:${port} serves configuration over TLS to callers with a client certificate or a token of the mesh, for their own namespaces`,
    )
  })

  it('get configuration for the namespace and account of their certificate, and for no other', async () => {
    for (const delta of [false, true]) {
      expect(await outcome({ namespace: 'shop' }, 'shop', undefined, delta)).to.equal(undefined)
      expect(await outcome({ namespace: 'shop', account: 'cart' }, 'shop', undefined, delta)).to.equal(undefined)
      expect((await outcome({ namespace: 'bank' }, 'shop', undefined, delta))?.code).to.equal(7)
      expect((await outcome({ namespace: 'shop', account: 'owner' }, 'shop', undefined, delta))?.code).to.equal(7)
    }
    expect(await refused('identity')).to.equal(4)
  })

  it('without credentials are refused before their first request is read', async () => {
    const session = http2Connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
    const stream = session.request({ ':method': 'POST', ':path': adsPath, 'content-type': 'application/grpc', te: 'trailers' })
    let trailers: Record<string, unknown> = {}
    stream.on('response', () => undefined)
    stream.on('trailers', (headers) => (trailers = headers))
    stream.on('error', () => undefined)
    stream.resume()
    // The prefix of a message of four megabytes without its content: the stream is refused nevertheless.
    stream.write(Buffer.from([0, 0, 0x40, 0, 0]))
    await until('the status', () => trailers['grpc-status'] !== undefined)
    expect(trailers['grpc-status']).to.equal('16')
    session.destroy()
  })

  it('may claim any node in plaintext, with a log line at start', async () => {
    const client = await new XdsClient(service.grpcPort, sidecarNode('10.7.0.9', 'pod', 'bank'), true).connect().ready()
    client.close()
    await service.output.says('serves configuration in plain text without authentication')
  })
})

describe('an identity above its limits', () => {
  const service = new Service({ env: { PILOT_XDS_IDENTITY_STREAMS: '4', PILOT_XDS_IDENTITY_CLASSES: '2' } })
  const made = new ServingCertificates(service.dir)
  const clients: XdsClient[] = []
  let port = 0

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    for (const name of ['greedy', 'modest']) made.workload(name, 'ca', [`spiffe://cluster.local/ns/shop/sa/${name}`])
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    port = await freePort()
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    await service.start()
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  it('is refused on any connection and writer, by name, and no other identity is affected', async () => {
    const connect = async (identity: string, metadata: Record<string, unknown> = {}) => {
      const [key, cert] = [made.text(`${identity}-key.pem`), made.text(`${identity}.pem`)].map((text) => Buffer.from(text)) as [Buffer, Buffer]
      const channel = credentials.createSsl(Buffer.from(made.text('ca.pem')), key, cert, { checkServerIdentity: () => undefined })
      const client = new XdsClient(port, sidecarNode('10.7.0.9', identity, 'shop', metadata), true, channel).connect()
      clients.push(client)
      await until('the client to be served or refused', () => client.closed !== undefined || client.responses.has(clusterType))
      return client
    }
    const network = (name: string) => ({ NETWORK: name })
    const first = await connect('greedy', network('one'))
    for (const name of ['one', 'two']) expect((await connect('greedy', network(name))).closed).to.equal(undefined)
    const whose = 'spiffe://cluster.local/ns/shop/sa/greedy'
    expect((await connect('greedy', network('three'))).closed).to.deep.equal({
      code: 8,
      details: `the streams of ${whose} belong to more than 2 classes of proxies`,
    })
    expect((await connect('greedy', network('two'))).closed).to.equal(undefined)
    expect((await connect('greedy', network('two'))).closed).to.deep.equal({ code: 8, details: `more than 4 streams of ${whose}` })
    for (let time = 0; time < 4; time++) expect((await connect('modest')).closed).to.equal(undefined)
    const shares = await service.debug<{ identity: string; streams: number; classes: number }[]>('identityz')
    expect(shares.map(({ identity, streams, classes }) => [identity, streams, classes])).to.have.deep.members([
      [whose, 4, 2],
      ['spiffe://cluster.local/ns/shop/sa/modest', 4, 1],
    ])
    const exceeded = await service.debug<{ reason: string }[]>('budgetz')
    expect(exceeded.filter(({ reason }) => reason.includes(whose))).to.have.length(2)
    first.close()
    await until('its stream to be given back', async () => (await connect('greedy', network('two'))).closed === undefined)
  })
})
