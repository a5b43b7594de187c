/** Forged tokens, each of which must be verified, at the pages and in streams, while others are served. */
import { type ChildProcess, spawn } from 'node:child_process'
import { networkInterfaces } from 'node:os'
import { fileURLToPath } from 'node:url'
import { credentials, Metadata } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { Issuer } from '../harness/issuer.ts'
import { OwnTime } from '../harness/own-time.ts'
import { CostRecorder } from '../harness/process-cost.ts'
import { send } from '../harness/raw-http.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const flood = fileURLToPath(new URL('../harness/token-flood.ts', import.meta.url))

/** An address of this machine that is not a loopback address, if there is one: another client than those on loopback addresses. */
const other =
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1'

describe('discovery serves others while a client sends', () => {
  const service = new Service({ env: { ENABLE_DEBUG_ON_LOOPBACK: 'false' } })
  const made = new ServingCertificates(service.dir)
  const floods: ChildProcess[] = []
  const clients: XdsClient[] = []
  let issuer: Issuer
  let securePort = 0

  before(async () => {
    issuer = await new Issuer('https://issuer.test').rotateOnly('RS256')
    service.env.JWT_RULE = JSON.stringify({ issuer: issuer.name, jwks: issuer.jwks, audiences: ['mesh-ca'] })
    made.authority('ca')
    made.issue('server', 'ca')
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    securePort = await freePort()
    service.flags.push('--writers', '2', '--secureGRPCAddr', `:${securePort}`, ...made.servingFlags())
    await service.start()
    // The first connection over TLS loads what all others use.
    await firstConfiguration('127.0.0.1')
  })
  afterEach(() => {
    for (const child of floods.splice(0)) child.kill('SIGKILL')
    for (const client of clients.splice(0)) client.close()
  })
  after(() => service.dispose())

  function attack(way: 'http' | 'grpc', host: string, port: number, connections: number): void {
    const args = [flood, way, host, port, connections, issuer.name, `${issuer.name}-1`, 'RS256'].map(String)
    floods.push(spawn(process.execPath, args, { stdio: ['pipe', 'ignore', 'inherit'] }))
  }

  const refusals = async () =>
    Number(/^pilot_token_authentications_total\{authenticator="jwt-rule",outcome="refused"\} (\d+)/m.exec(await service.metrics())?.[1] ?? 0)

  /** Connects a proxy with a valid token over an address, and returns the milliseconds until its first configuration. */
  async function firstConfiguration(address: string): Promise<number> {
    const token = await issuer.token({ sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca' })
    const bearer = credentials.createFromMetadataGenerator((_, give) => {
      const metadata = new Metadata()
      metadata.set('authorization', `Bearer ${token}`)
      give(null, metadata)
    })
    const tls = credentials.createSsl(Buffer.from(made.text('ca.pem')), null, null, { checkServerIdentity: () => undefined })
    const channel = credentials.combineChannelCredentials(tls, bearer)
    const watch = new OwnTime()
    const node = sidecarNode('10.7.0.9', 'pod', 'shop', { SERVICE_ACCOUNT: 'cart' })
    const client = new XdsClient(`${address}:${securePort}`, node, true, channel).connect()
    clients.push(client)
    await until('the client to be served or refused', () => client.closed !== undefined || client.responses.has(clusterType))
    expect(client.closed).to.equal(undefined)
    return watch.ms()
  }

  async function othersAreServed(start: () => void, address: string): Promise<void> {
    const before = await refusals()
    const cost = new CostRecorder(service.pid)
    start()
    await until('the flood', async () => (await refusals()) > before + 500)
    let slowest = 0
    for (let times = 0; times < 20; times++) {
      for (const [port, path] of [
        [service.httpPort, '/ready'],
        [service.monitoringPort, '/version'],
      ] as const) {
        const watch = new OwnTime()
        expect(await send('127.0.0.1', port, { path, host: 'localhost' })).to.equal(200)
        slowest = Math.max(slowest, watch.ms())
      }
    }
    const first = []
    for (let times = 0; times < 5; times++) first.push(Math.round(await firstConfiguration(address)))
    const { mib } = cost.stop()
    expect(slowest, 'the longest answer in milliseconds').to.be.below(1000)
    expect(Math.max(...first), 'the longest time to a first configuration in milliseconds').to.be.below(2000)
    expect(mib, 'memory in MiB').to.be.below(100)
    expect(floods.every(({ exitCode }) => exitCode === null)).to.equal(true)
  }

  it('forged tokens at the pages', () => othersAreServed(() => attack('http', '127.0.0.1', service.httpPort, 4), other))

  it('forged tokens at the pages on hundreds of connections', () => othersAreServed(() => attack('http', '127.0.0.1', service.httpPort, 300), other))

  it('forged tokens in streams', () => othersAreServed(() => attack('grpc', '127.0.0.1', securePort, 4), other))

  it('forged tokens in streams on many connections', () => othersAreServed(() => attack('grpc', '127.0.0.1', securePort, 40), other))
})
