/** Requests of Redis and Thrift through Envoy's filters for these protocols. */
import { connect, createServer, type Server } from 'node:net'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'

/** Starts a server that answers whatever it receives with `answer`, and records it. */
async function recordingServer(answer: (received: Buffer) => Buffer): Promise<{ server: Server; port: number; received: Buffer[] }> {
  const received: Buffer[] = []
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      received.push(bytes)
      socket.write(answer(bytes))
    })
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return { server, port, received }
}

/** Sends bytes and resolves with as many bytes of the answer. */
function exchange(port: number, request: Buffer | string, length: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const parts: Buffer[] = []
  const socket = connect(port, '127.0.0.1', () => socket.write(request))
  socket.on('data', (part) => {
    parts.push(part)
    if (Buffer.concat(parts).length >= length) socket.destroy()
  })
  socket.on('error', reject)
  socket.on('close', () => resolve(Buffer.concat(parts)))
  return promise
}

/** A framed message of Thrift's binary protocol with an empty structure: 1 is the type of a call, 2 that of a reply. */
function thriftMessage(type: number, method: string): Buffer {
  const head = Buffer.alloc(12)
  head.writeInt32BE(13 + method.length)
  head.writeUInt32BE(0x80010000 + type, 4)
  head.writeInt32BE(method.length, 8)
  return Buffer.concat([head, Buffer.from(method), Buffer.from([0, 0, 0, 7, 0])])
}

for (const { version, path: binary } of envoyBinaries())
  describe(`requests of protocols, Envoy ${version}`, () => {
    const service = new Service({ env: { PILOT_ENABLE_REDIS_FILTER: 'true', PILOT_ENABLE_THRIFT_FILTER: 'true' } })
    const ports = { redis: 0, thrift: 0 }
    const servers: Server[] = []
    let redis: Awaited<ReturnType<typeof recordingServer>>
    let thrift: Awaited<ReturnType<typeof recordingServer>>
    let proxy: Envoy

    before(async () => {
      redis = await recordingServer(() => Buffer.from('$5\r\nvalue\r\n'))
      thrift = await recordingServer(() => thriftMessage(2, 'add'))
      servers.push(redis.server, thrift.server)
      Object.assign(ports, { redis: await freePort(), thrift: await freePort() })
      service.write(
        'a.yaml',
        `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: shop}
spec:
  hosts: [db.shop.svc.cluster.local]
  addresses: [240.1.1.1]
  resolution: STATIC
  ports: [{number: ${ports.redis}, name: redis}, {number: ${ports.thrift}, name: thrift}]
  endpoints: [{address: 127.0.0.1, ports: {redis: ${redis.port}, thrift: ${thrift.port}}}]
`,
      )
      await service.start()
      const nodeId = 'sidecar~10.0.0.9~c.shop~shop.svc.cluster.local'
      proxy = new Envoy({ binary, grpcPort: service.grpcPort, nodeId, metadata: { INTERCEPTION_MODE: 'NONE' } })
      await proxy.start()
    })

    after(async () => {
      await Promise.all([proxy.dispose(), service.dispose()])
      for (const server of servers) server.close()
    })

    it('are accepted', async () => {
      expect(await service.rejections()).to.deep.equal([])
      expect(await proxy.rejected()).to.equal(0)
    })

    it('are single commands of Redis, of which the proxy answers PING itself', async () => {
      expect((await exchange(ports.redis, '*1\r\n$4\r\nPING\r\n', 7)).toString()).to.equal('+PONG\r\n')
      expect(redis.received).to.deep.equal([])
      expect((await exchange(ports.redis, '*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n', 11)).toString()).to.equal('$5\r\nvalue\r\n')
      expect(Buffer.concat(redis.received).toString().toLowerCase()).to.equal('*2\r\n$3\r\nget\r\n$3\r\nkey\r\n')
    })

    it('are calls of Thrift, each with a route', async () => {
      const reply = thriftMessage(2, 'add')
      expect((await exchange(ports.thrift, thriftMessage(1, 'add'), reply.length)).equals(reply)).to.equal(true)
      expect(thrift.received).to.have.length(1)
      expect(await proxy.admin('/stats?filter=thrift.*request_call')).to.match(/: 1\n/)
    })
  })
