/** Handshakes of hostile peers on the secured port: none is served, affects other proxies or leaves resources behind. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Socket, connect as tcpConnect } from 'node:net'
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { seededRandom } from '../../src/registry/mock.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { seed } from '../harness/seed.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const own = 'spiffe://cluster.local/ns/ns/sa/pod'

describe('the secured port', () => {
  const service = new Service()
  const made = new ServingCertificates(service.dir)
  const sockets: Socket[] = []
  let port = 0

  before(async () => {
    for (const name of ['ca', 'stranger']) made.authority(name)
    made.issue('server', 'ca')
    made.workload('good', 'ca', [own])
    made.workload('strange', 'stranger', [own])
    made.workload('expired', 'ca', [own], -1)
    made.between('early', 'ca', own, Date.now() + 3_600_000, Date.now() + 7_200_000)
    made.workload('two', 'ca', [own, 'spiffe://cluster.local/ns/ns/sa/other'])
    made.workload('none', 'ca', [])
    made.workload('foreign', 'ca', ['spiffe://foreign.domain/ns/ns/sa/pod'])
    made.issue('authority', 'ca', 1, `subjectAltName=URI:${own}\nbasicConstraints=critical,CA:TRUE\n`)
    made.issue('server-only', 'ca', 1, `subjectAltName=URI:${own}\nextendedKeyUsage=serverAuth\nbasicConstraints=critical,CA:FALSE\n`)
    for (let index = 0; index < 60; index++) made.intermediate(`link-${index}`, index === 0 ? 'ca' : `link-${index - 1}`)
    made.workload('far', 'link-59', [own])
    made.workload('deep', 'link-11', [own])
    for (const [name, links] of [
      ['far', 60],
      ['deep', 12],
    ] as const) {
      const chain = [name, ...Array.from({ length: links }, (_, index) => `link-${links - 1 - index}`)]
        .map((each) => made.text(`${each}.pem`))
        .join('')
      writeFileSync(made.file(`${name}.pem`), chain)
    }
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    port = await freePort()
    service.flags.push('--writers', '1', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    await service.start()
  })
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
  })
  after(() => service.dispose())

  const residentMib = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1]) / 1024
  const descriptors = () => readdirSync(`/proc/${service.pid}/fd`).length
  const certified = (name: string) => ({ key: made.text(`${name}-key.pem`), cert: made.text(`${name}.pem`) })
  const outcome = async (name: string) => {
    const { key, cert } = certified(name)
    const channel = credentials.createSsl(Buffer.from(made.text('ca.pem')), Buffer.from(key), Buffer.from(cert), {
      checkServerIdentity: () => undefined,
    })
    const client = new XdsClient(port, sidecarNode('10.7.0.9', 'pod', 'ns'), true, channel).connect()
    await until(`${name} to be served or refused`, () => client.closed !== undefined || client.responses.has(clusterType))
    client.close()
    return client.closed?.code ?? 'served'
  }
  const options = (): ConnectionOptions => ({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2'] })
  const goodIsServed = async () => expect(await outcome('good')).to.equal('served')

  it('refuses certificates that are not valid for a mesh workload, and logs the reason with a limit', async () => {
    const reasons = {
      strange: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      expired: 'CERT_HAS_EXPIRED',
      early: 'CERT_NOT_YET_VALID',
      two: 'the certificate has 2 URIs among its names instead of one',
      none: 'the certificate has 0 URIs among its names instead of one',
      foreign: 'there is no root for the trust domain foreign.domain',
      authority: 'the certificate is one of an authority',
      'server-only': 'INVALID_PURPOSE',
      deep: 'no root of the trust domain cluster.local has signed the certificate of',
    }
    for (const [name, reason] of Object.entries(reasons)) {
      expect(await outcome(name), name).to.equal(14)
      await service.output.says(`client certificate refused: ${reason}`)
    }
    expect(await outcome('far')).to.equal(14)
    await service.output.says('connection from 127.0.0.1 ended: the client sent more than 16384 bytes before the TLS handshake was done')
    for (let time = 0; time < 20; time++) await outcome('two')
    await service.output.says('has 2 URIs among its names', 1, 10)
    await goodIsServed()
  })

  it('refuses TLS renegotiation', async () => {
    const socket = await connected({ ...options(), ...certified('good'), maxVersion: 'TLSv1.2' })
    const failed = await new Promise<boolean>((resolve) => {
      socket.on('error', () => resolve(true))
      socket.on('close', () => resolve(true))
      socket.renegotiate({}, (error) => resolve(error !== null))
    })
    expect(failed).to.equal(true)
    await goodIsServed()
  })

  it('serves after ten thousand aborted or garbled handshakes, without leaked memory or descriptors', async () => {
    const hello = await clientHello()
    const random = seededRandom(seed)
    await goodIsServed()
    const [files, memory] = [descriptors(), residentMib()]
    let left = 10_000
    const worker = async () => {
      while (left-- > 0) {
        const bytes = Buffer.from(hello.subarray(0, Math.floor(random() * hello.length)))
        if (left % 3 === 0)
          for (let flip = 0; flip < 4 && bytes.length > 0; flip++) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
        await cutOff(left % 7 === 0 ? hello : bytes, left % 2 === 0)
      }
    }
    await Promise.all(Array.from({ length: 50 }, worker))
    await until('their descriptors to be closed', () => descriptors() <= files + 4)
    expect(residentMib() - memory).to.be.below(100)
    await goodIsServed()
  })

  it('serves others beside 200 unfinished handshakes, and closes those', async () => {
    const hello = await clientHello()
    const files = descriptors()
    for (let index = 0; index < 200; index++) {
      const socket = tcpConnect(port, '127.0.0.1', () => socket.write(hello.subarray(0, index)))
      socket.on('error', () => undefined)
      sockets.push(socket)
    }
    await until('them to be there', () => descriptors() >= files + 190)
    await goodIsServed()
    await until('the server to end them', () => descriptors() <= files + 4)
  })

  /** Returns a TLS ClientHello. */
  async function clientHello(): Promise<Buffer> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const said = new Promise<Buffer>((resolve) => server.once('connection', (socket) => socket.once('data', resolve)))
    const { port: at } = server.address() as { port: number }
    const client = tlsConnect({ ...options(), port: at })
    client.on('error', () => undefined)
    const hello = await said
    client.destroy()
    server.close()
    return hello
  }

  /** Sends bytes, then ends or resets the connection. */
  function cutOff(bytes: Buffer, resets: boolean): Promise<void> {
    return new Promise((resolve) => {
      const socket = tcpConnect(port, '127.0.0.1', () => {
        socket.write(bytes, () => {
          if (resets) socket.resetAndDestroy()
          else socket.end()
        })
      })
      socket.on('error', () => undefined)
      socket.on('close', () => resolve())
      socket.resume()
    })
  }
})

function connected(options: ConnectionOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = tlsConnect(options, () => resolve(socket))
    socket.once('error', reject)
  })
}
