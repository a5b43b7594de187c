/** Workload tokens as credentials of XDS streams on the secured port. */
import { credentials, Metadata } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { Issuer } from '../harness/issuer.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('tokens on the secured port', () => {
  const service = new Service({ env: { PILOT_XDS_CREDENTIAL_GRACE: '500ms' } })
  const made = new ServingCertificates(service.dir)
  const clients: XdsClient[] = []
  let issuer: Issuer
  let stranger: Issuer
  let port = 0

  before(async () => {
    issuer = await new Issuer('https://issuer.test').rotateOnly('ES256')
    stranger = await new Issuer('https://issuer.test').rotateOnly('ES256')
    service.env.JWT_RULE = JSON.stringify({ issuer: issuer.name, jwks: issuer.jwks, audiences: ['mesh-ca'] })
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('cart', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    port = await freePort()
    service.flags.push('--writers', '1', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    await service.start()
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  const tokenFor = (who: Issuer, seconds = 3600, account = 'cart', claims = {}) =>
    who.token({ sub: `system:serviceaccount:shop:${account}`, aud: 'mesh-ca', exp: Math.floor(Date.now() / 1000) + seconds, ...claims })
  const connect = async (token: () => string, namespace = 'shop', delta = true, certificate?: string) => {
    const [key, cert] =
      certificate === undefined
        ? [null, null]
        : [made.text(`${certificate}-key.pem`), made.text(`${certificate}.pem`)].map((text) => Buffer.from(text))
    const tls = credentials.createSsl(Buffer.from(made.text('ca.pem')), key, cert, { checkServerIdentity: () => undefined })
    const bearer = credentials.createFromMetadataGenerator((_, give) => {
      const metadata = new Metadata()
      metadata.set('authorization', `Bearer ${token()}`)
      give(null, metadata)
    })
    const channel = credentials.combineChannelCredentials(tls, bearer)
    const client = new XdsClient(port, sidecarNode('10.7.0.9', 'pod', namespace, { SERVICE_ACCOUNT: 'cart' }), delta, channel).connect()
    clients.push(client)
    await until('the client to be served or refused', () => client.closed !== undefined || client.responses.has(clusterType))
    return client
  }

  it('open streams for the namespace and account that they name', async () => {
    const token = await tokenFor(issuer)
    for (const delta of [false, true]) {
      expect((await connect(() => token, 'shop', delta)).closed).to.equal(undefined)
      expect((await connect(() => token, 'bank', delta)).closed?.code).to.equal(7)
    }
    const other = await tokenFor(issuer, 3600, 'owner')
    expect((await connect(() => other)).closed?.code).to.equal(7)
  })

  it('that are invalid are all refused with the same status, and do not appear in the log', async () => {
    const bad = [
      await tokenFor(stranger),
      await tokenFor(issuer, -10),
      await tokenFor(issuer, 3600, 'cart', { aud: 'other' }),
      await issuer.token({ sub: 'somebody', aud: 'mesh-ca' }),
      'garbage',
      'a.b.c',
    ]
    expect((await connect(() => 'once')).closed?.code).to.equal(16)
    await service.output.says('refused: authentication failure', 1, 1)
    for (const token of bad) expect((await connect(() => token)).closed).to.deep.equal({ code: 16, details: 'authentication failure' })
    for (const token of bad.slice(0, 4)) service.output.lacks(token.split('.')[2] as string)
  })

  it('are ignored if there is a client certificate', async () => {
    expect((await connect(() => 'garbage', 'shop', true, 'cart')).closed).to.equal(undefined)
  })

  it('end their streams soon after they expire, and other streams continue', async () => {
    const short = await tokenFor(issuer, 15)
    const long = await tokenFor(issuer)
    const [ends, stays] = [await connect(() => short), await connect(() => long)]
    expect(ends.closed).to.equal(undefined)
    await until('the stream to end', () => ends.closed !== undefined)
    expect(ends.closed).to.deep.equal({ code: 14, details: 'the token of this stream has expired' })
    expect(stays.closed).to.equal(undefined)
    service.write('a.yaml', serviceEntry('a', '10.0.0.2'))
    const endpoint = () => [...stays.resources.values()].some((held) => [...held.values()].some((value) => value.includes('10.0.0.2')))
    await until('the other to be sent changes', endpoint)
    expect((await connect(() => short)).closed?.code).to.equal(16)
  })
})

describe('an expired client certificate', () => {
  const service = new Service({ env: { PILOT_XDS_CREDENTIAL_GRACE: '500ms' } })
  const made = new ServingCertificates(service.dir)
  after(() => service.dispose())

  it('ends its streams after the grace period with UNAVAILABLE', async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    const port = await freePort()
    service.flags.push('--writers', '1', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    await service.start()
    const now = Date.now()
    made.between('cart', 'ca', 'spiffe://cluster.local/ns/shop/sa/cart', now - 60_000, now + 15_000)
    const [key, cert] = [made.text('cart-key.pem'), made.text('cart.pem')].map((text) => Buffer.from(text)) as [Buffer, Buffer]
    const channel = credentials.createSsl(Buffer.from(made.text('ca.pem')), key, cert, { checkServerIdentity: () => undefined })
    const client = new XdsClient(port, sidecarNode('10.7.0.9', 'pod', 'shop'), true, channel).connect()
    await until('the client to be served', () => client.responses.has(clusterType))
    await until('the stream to end', () => client.closed !== undefined)
    expect(client.closed).to.deep.equal({ code: 14, details: 'the client certificate has expired' })
    client.close()
  })
})
