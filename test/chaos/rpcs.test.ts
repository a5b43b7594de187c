/** RPCs of a running command on all of its ports: requests whose headers are no valid URL, and the same answers for all who may have them. */
import { request } from 'node:http'
import { connect } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { HealthCheckRequestSchema, HealthCheckResponseSchema } from '../../protocols/gen/grpc/health/v1/health_pb.js'
import { ListActorsResponseSchema } from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { grpcCall } from '../harness/grpc-call.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'

const path = '/mesh.admin.v1.AdminService/ListActors'

describe('RPCs on the ports of discovery', () => {
  const service = new Service()
  const made = new ServingCertificates(service.dir)
  const ports: Record<string, number> = {}

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('shop', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    made.workload('root', 'ca', ['spiffe://cluster.local/ns/mesh-system/sa/operator'])
    const [secure, ctrlz] = [await freePort(), await freePort()]
    service.env.ENABLE_DEBUG_ON_LOOPBACK = 'true'
    service.flags.push('--writers', '1', '--secureGRPCAddr', `127.0.0.1:${secure}`, '--ctrlz_port', String(ctrlz), ...made.servingFlags())
    await service.start()
    Object.assign(ports, { grpc: service.grpcPort, secure, http: service.httpPort, monitoring: service.monitoringPort, ctrlz })
  })
  after(() => service.dispose())

  /** Resolves with the first line of the answer; empty when the connection was closed without one. */
  const raw = (to: { port: number; host: string } | { path: string }, text: string) =>
    new Promise<string>((resolve) => {
      const socket = connectSocket(to as never, () => socket.write(text))
      let answer = ''
      socket.on('data', (bytes) => {
        answer += bytes.toString('latin1')
        if (answer.includes('\r\n')) socket.destroy()
      })
      socket.on('error', () => undefined)
      socket.on('close', () => resolve(answer.split('\r\n')[0] ?? ''))
      socket.setTimeout(10_000, () => socket.destroy())
    })
  const socketPath = () => service.env.MESHD_ADMIN_SOCKET as string
  /** Asks by Connect in JSON. */
  const ask = (to: { port: number } | { socketPath: string }) =>
    new Promise<[number | undefined, string]>((resolve, reject) => {
      const asked = request({ ...to, host: '127.0.0.1', method: 'POST', path, headers: { 'content-type': 'application/json' } }, (answer) => {
        let body = ''
        answer.on('data', (bytes) => (body += bytes))
        answer.on('end', () => resolve([answer.statusCode, body]))
      })
      asked.on('error', reject)
      asked.end('{}')
    })

  it('no request ends the process, whatever its Host', async () => {
    const rest = 'content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}'
    const targets = [...Object.values(ports).map((port) => ({ port, host: '127.0.0.1' })), { path: socketPath() }]
    for (const to of targets) {
      for (const host of ['[', '', '%', 'a b', '://']) await raw(to, `POST ${path} HTTP/1.1\r\nhost: ${host}\r\n${rest}`)
      await raw(to, `POST ${path} HTTP/1.0\r\n${rest}`)
      await raw(to, `POST http://[${path} HTTP/1.1\r\nhost: a\r\n${rest}`)
    }
    for (const url of [`http://127.0.0.1:${ports.grpc}`, `https://127.0.0.1:${ports.secure}`])
      for (const authority of ['[', '%', 'a:99999999'])
        for (const asked of [path, '/grpc.health.v1.Health/Check']) {
          const session = connect(url, { rejectUnauthorized: false })
          await new Promise<void>((resolve) => {
            session.on('error', () => resolve())
            const stream = session.request({ ':method': 'POST', ':path': asked, ':authority': authority, 'content-type': 'application/grpc' })
            stream.on('error', () => undefined).on('close', () => resolve())
            stream.resume().end()
          })
          session.destroy()
        }
    // Over loopback `Host` has to name this machine, the admin socket is for its owner whatever `Host` is.
    expect(await raw({ port: ports.http as number, host: '127.0.0.1' }, `POST ${path} HTTP/1.1\r\nhost: [\r\n${rest}`)).to.equal(
      'HTTP/1.1 403 Forbidden',
    )
    expect(await raw({ path: socketPath() }, `POST ${path} HTTP/1.0\r\n${rest}`)).to.equal('HTTP/1.1 200 OK')
    service.output.lacks('Invalid URL')
  })

  it('one service answers on all of them, those who may ask', async () => {
    for (const port of ['http', 'monitoring', 'ctrlz']) {
      const [status, body] = await ask({ port: ports[port] as number })
      expect([port, status]).to.deep.equal([port, 200])
      expect(body).to.contain('"push-queue"')
    }
    expect((await ask({ socketPath: socketPath() }))[0]).to.equal(200)
    const tls = (identity: string) => ({
      ...{ ca: made.text('ca.pem'), checkServerIdentity: () => undefined },
      ...{ cert: made.text(`${identity}.pem`), key: made.text(`${identity}-key.pem`) },
    })
    const over = (identity: string) => grpcCall(`https://127.0.0.1:${ports.secure}`, path, Buffer.alloc(0), { tls: tls(identity) })
    const { messages, status } = await over('root')
    expect(status).to.equal('0')
    expect(fromBinary(ListActorsResponseSchema, messages[0] as Buffer).actors.map(({ name }) => name)).to.include('xds-writer/0')
    expect((await over('shop')).status).to.equal('7')
    expect((await grpcCall(`https://127.0.0.1:${ports.secure}`, path, Buffer.alloc(0), { tls: { rejectUnauthorized: false } })).status).to.equal('16')
  })

  it('health is for all', async () => {
    const asked = toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, {}))
    for (const url of [`http://127.0.0.1:${ports.grpc}`, `https://127.0.0.1:${ports.secure}`]) {
      const { messages } = await grpcCall(url, '/grpc.health.v1.Health/Check', asked, { tls: { rejectUnauthorized: false } })
      expect(fromBinary(HealthCheckResponseSchema, messages[0] as Buffer).status).to.equal(1)
    }
  })
})
