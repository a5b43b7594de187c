/** gRPC libraries without a proxy get their configuration from the service. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { Service } from '../harness/service.ts'

const client = fileURLToPath(new URL('../harness/proxyless-client.ts', import.meta.url))
const bytes = (message: Buffer) => message
const method = { path: '/test.Greeter/Greet', requestStream: false, responseStream: false, requestSerialize: bytes, requestDeserialize: bytes }
const greeter = { greet: { ...method, responseSerialize: bytes, responseDeserialize: bytes } }

/** Starts a server that answers with its name. Returns its port. */
async function greeterNamed(name: string, servers: Server[]): Promise<number> {
  const server = new Server()
  server.addService(greeter, { greet: (_: unknown, answer: (error: null, message: Buffer) => void) => answer(null, Buffer.from(name)) })
  servers.push(server)
  return promisify(server.bindAsync.bind(server))('127.0.0.1:0', ServerCredentials.createInsecure()) as Promise<number>
}

describe('a gRPC library without a proxy', () => {
  const service = new Service()
  const servers: Server[] = []
  before(async () => {
    const ports = [await greeterNamed('one', servers), await greeterNamed('two', servers)]
    service.write(
      'greeter.yaml',
      `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: greeter, namespace: shop}
spec:
  hosts: [greeter.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 7070, name: grpc}]
  endpoints: [{address: 127.0.0.1, ports: {grpc: ${ports[0]}}}, {address: 127.0.0.1, ports: {grpc: ${ports[1]}}}]
`,
    )
    await service.start()
  })
  after(async () => {
    for (const server of servers) server.forceShutdown()
    await service.dispose()
  })

  const call = async (host: string, times: number) => {
    const bootstrap = {
      xds_servers: [{ server_uri: `127.0.0.1:${service.grpcPort}`, channel_creds: [{ type: 'insecure' }], server_features: ['xds_v3'] }],
      node: { id: 'sidecar~10.0.0.9~c.shop~shop.svc.cluster.local', cluster: 'c', locality: {}, metadata: { GENERATOR: 'grpc' } },
    }
    const env = { ...process.env, GRPC_XDS_BOOTSTRAP_CONFIG: JSON.stringify(bootstrap) }
    const { stdout } = await promisify(execFile)(process.execPath, [client, `xds:///${host}`, String(times)], { env, timeout: 40_000 })
    return JSON.parse(stdout) as string[]
  }

  it('calls a service by host and port, at all its endpoints', async () => {
    const answers = await call('greeter.shop.svc.cluster.local:7070', 20)
    expect(new Set(answers)).to.deep.equal(new Set(['one', 'two']))
    expect(await service.rejections()).to.deep.equal([])
  })
})
