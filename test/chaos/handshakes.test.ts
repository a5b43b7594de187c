/** TLS handshakes of strangers that cost the writer as much as possible: proxies are served beside them, and agents get certificates. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { costlyChain, costlyShapes } from '../../bench/costly-chain.ts'
import { freePort } from '../../bench/ports.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { type AttackOptions, attackers, HandshakeAttack } from '../harness/handshake-attack.ts'
import { Issuer } from '../harness/issuer.ts'
import { OwnTime } from '../harness/own-time.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { requestPem } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

/** The costliest chain of 16 KB: 0.1 s. */
const withinBounds = { names: 0, authorities: 10, constraints: 0, rsaBits: 3072 }
/** A chain of 22 KB that costs little, so that a busy machine does not take the first ones for a hung writer. */
const beyondBounds = { names: 0, authorities: 5, constraints: 0, rsaBits: 16_384 }
const ordinary = { names: 1, authorities: 0, constraints: 0 }
const chainOf = (shape: typeof withinBounds | typeof ordinary) => costlyChain(shape, Date.now())

describe('beside TLS handshakes of strangers', () => {
  const plugged = mkdtempSync(join(tmpdir(), 'mesh-test-root-'))
  const service = new Service()
  const attacks: HandshakeAttack[] = []
  let issuer: Issuer
  let proxy: XdsClient
  let port = 0
  let changes = 0

  before(async () => {
    issuer = await new Issuer('https://issuer.test').rotateOnly('ES256')
    mkdirSync(join(plugged, 'in'))
    Object.assign(service.env, {
      JWT_RULE: JSON.stringify({ issuer: issuer.name, jwks: issuer.jwks, audiences: ['mesh-ca'] }),
      ROOT_CA_DIR: join(plugged, 'in'),
    })
    service.write('a.yaml', serviceEntry('a'))
    port = await freePort()
    service.flags.push('--writers', '1', '--secureGRPCAddr', `127.0.0.1:${port}`)
    await service.start()
    proxy = new XdsClient(service.grpcPort, sidecarNode('10.7.0.9', 'pod', 'ns'), true).connect()
    await until('the proxy to be served', () => proxy.responses.has(clusterType))
  })
  afterEach(async () => {
    await Promise.all(attacks.splice(0).map((attack) => attack.stop()))
    expect(proxy.closed).to.equal(undefined)
    await service.output.lacks('did not answer for')
  })
  after(async () => {
    proxy?.close()
    await service.dispose()
    rmSync(plugged, { recursive: true, force: true })
  })

  const attack = (options: Omit<AttackOptions, 'port'>) => {
    const started = new HandshakeAttack({ port, ...options })
    attacks.push(started)
    return started
  }
  /** The longest time in which a change reaches the proxy, of `count` changes. */
  const slowestChange = async (count: number): Promise<number> => {
    let slowest = 0
    for (let left = count; left > 0; left--) {
      const name = `s${changes++}`
      const time = new OwnTime()
      service.write('b.yaml', serviceEntry(name, '10.0.0.2'))
      await until('the change', () => [...(proxy.resources.get(clusterType)?.keys() ?? [])].some((cluster) => cluster.includes(`|${name}.`)))
      slowest = Math.max(slowest, time.ms())
    }
    return slowest
  }
  /** Milliseconds until an agent that has only a token, at an address of this machine, has its first certificate. */
  const firstCertificate = async (address?: string): Promise<number> => {
    const root = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\\n/s.exec(readFileSync(join(service.authorityDir, 'state.json'), 'utf8'))
    const time = new OwnTime()
    const forwarder = address === undefined ? undefined : await forwarderFrom(address)
    const agent = new CertificateClient(forwarder === undefined ? port : (forwarder.address() as AddressInfo).port, {
      roots: root?.[0].replaceAll('\\n', '\n') ?? '',
      token: await issuer.token({ sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca' }),
    })
    const outcome = await agent.obtain(requestPem())
    agent.close()
    forwarder?.close()
    expect(outcome).to.have.property('chain')
    return time.ms()
  }

  /** A server that passes on its connections from an address of this machine. */
  const forwarderFrom = async (address: string): Promise<Server> => {
    const forwarder = createServer((incoming) => {
      const onward = connect({ host: '127.0.0.1', port, localAddress: address })
      incoming.on('error', () => onward.destroy()).pipe(onward)
      onward.on('error', () => incoming.destroy()).pipe(incoming)
    })
    await new Promise<void>((resolve) => forwarder.listen(0, '127.0.0.1', resolve))
    return forwarder
  }

  for (const [name, shape] of Object.entries(costlyShapes))
    it(`with chains of costly ${name} changes arrive within 2 s, and agents get certificates within 5 s`, async () => {
      const presented = costlyChain(shape, Date.now())
      const [many, few] = [
        attack({ addresses: attackers(1), together: 60, presented }),
        attack({ addresses: attackers(100, 2), together: 3, presented }),
      ]
      await until('the attack', () => many.opened >= 60 && few.opened >= 10)
      expect(await slowestChange(5)).to.be.below(2000)
      expect(await firstCertificate()).to.be.below(5000)
      expect([many.finished, few.finished]).to.deep.equal([0, 0])
    })

  it('with the costliest chains within the bound, from 200 addresses that were seen before, the same holds', async () => {
    const presented = chainOf(withinBounds)
    const started = attack({ addresses: attackers(200, 3), together: 200, presented })
    await until('costly handshakes', () => started.opened >= 400)
    expect(await slowestChange(5)).to.be.below(2000)
    expect(await firstCertificate()).to.be.below(5000)
    await service.output.says('of CPU: further handshakes from there wait')
  })

  it('with ordinary handshakes from 200 addresses all the time, the same holds', async () => {
    const started = attack({ addresses: attackers(200, 4), together: 400, presented: chainOf(ordinary) })
    await until('handshakes', () => started.opened >= 1000)
    expect(await slowestChange(5)).to.be.below(2000)
    expect(await firstCertificate()).to.be.below(5000)
  })

  it('with too long chains from an address of an agent, the bytes of handshakes from there are bounded from then on', async () => {
    expect(await firstCertificate()).to.be.below(5000)
    const started = attack({ addresses: ['127.0.0.1'], together: 3, presented: chainOf(beyondBounds) })
    await service.output.says('connection from 127.0.0.1 ended: the client sent more than 16384 bytes before the TLS handshake was done')
    const { finished } = started
    expect(finished).to.be.at.most(2)
    expect(await slowestChange(5)).to.be.below(2000)
    expect(await firstCertificate()).to.be.below(5000)
    expect(started.finished).to.equal(finished)
  })

  it('with chains from an address of an agent, in handshakes that it never finishes, the same holds', async () => {
    const [agent = ''] = attackers(1, 5)
    expect(await firstCertificate(agent)).to.be.below(5000)
    attack({ addresses: [agent], together: 4, presented: chainOf(beyondBounds), unfinished: true })
    await service.output.says(`connection from ${agent} ended: the client sent more than 16384 bytes before the TLS handshake was done`)
    expect(await slowestChange(5)).to.be.below(2000)
    expect(await firstCertificate()).to.be.below(5000)
  })

  for (const [what, bytes] of [
    ['has not begun', Buffer.alloc(0)],
    ['has begun', Buffer.from([0x16, 3, 1, 2, 0, 1])],
  ] as const)
    it(`with 300 handshakes that an address of an agent ${what} and holds, other agents get certificates within 2 s`, async () => {
      const [holder = '', known = '', stranger = ''] = attackers(3, bytes.length === 0 ? 7 : 8)
      for (const agent of [holder, known]) expect(await firstCertificate(agent)).to.be.below(5000)
      const held = Array.from({ length: 300 }, () => connect({ host: '127.0.0.1', port, localAddress: holder }))
      for (const socket of held) socket.on('error', () => undefined).write(bytes)
      await until('them to be connected', () => held.every(({ connecting }) => !connecting))
      for (const agent of [known, stranger, known]) expect(await firstCertificate(agent)).to.be.below(2000)
      expect(held.filter(({ readyState }) => readyState === 'open')).to.have.length(300)
      for (const socket of held) socket.destroy()
    })

  it('with 300 handshakes at once from an address of an agent, of the costliest chains within the bound, the same holds', async () => {
    const [agent = ''] = attackers(1, 6)
    expect(await firstCertificate(agent)).to.be.below(5000)
    const silent = Array.from({ length: 4 }, () => connect({ host: '127.0.0.1', port, localAddress: agent }).on('error', () => undefined))
    const started = attack({ addresses: [agent], together: 300, presented: chainOf(withinBounds), unfinished: true, share: 1 })
    await until('the attack', () => started.opened >= 300)
    expect(await slowestChange(5)).to.be.below(2000)
    await service.output.says(`connection from ${agent} had a TLS handshake of`)
    expect(await firstCertificate()).to.be.below(5000)
    for (const socket of silent) socket.destroy()
  })
})
