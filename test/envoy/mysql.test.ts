/** MySQL ports: proxies that have the filter get it, and stock Envoy, which has not, carries the connections. */

import { connect, createServer, type Server } from 'node:net'
import { fromBinary } from '@bufbuild/protobuf'
import { anyUnpack } from '@bufbuild/protobuf/wkt'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { MySQLProxySchema } from '../../protocols/gen/contrib/mysql_proxy_pb.js'
import { ListenerSchema } from '../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { listenerType } from '../../src/xds/type-urls.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const extension = 'envoy.filters.network.mysql_proxy'
const told = 'there are proxies without the extension envoy.filters.network.mysql_proxy'

/** Reads the greeting of the server, which speaks first, and the answer to a request. */
function talk(port: number, request: string, length: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let received = ''
  const socket = connect(port, '127.0.0.1', () => socket.write(request))
  socket.on('data', (part) => {
    received += part
    if (received.length >= length) socket.destroy()
  })
  socket.on('error', reject)
  socket.on('close', () => resolve(received))
  return promise
}

for (const { version, path: binary } of envoyBinaries())
  describe(`MySQL ports, Envoy ${version}`, () => {
    const service = new Service({ env: { PILOT_ENABLE_MYSQL_FILTER: 'true' } })
    const clients: XdsClient[] = []
    let server: Server
    let port = 0
    let proxy: Envoy

    const filtersOf = async (extensions: readonly string[], delta: boolean) => {
      const node = { ...sidecarNode('10.0.0.8', 'c', 'shop'), extensions }
      const client = await new XdsClient(service.grpcPort, node, delta).connect().ready()
      clients.push(client)
      const bytes = client.resources.get(listenerType)?.get(`240.1.1.1_${port}`)
      expect(bytes).to.not.equal(undefined)
      return fromBinary(ListenerSchema, bytes as Buffer).filterChains.flatMap(({ filters }) => filters)
    }

    before(async () => {
      const target = await freePort()
      server = createServer((socket) => {
        socket.on('error', () => undefined)
        socket.write('hello')
        socket.on('data', (bytes) => socket.write(bytes))
      })
      await new Promise<void>((resolve) => server.listen(target, '127.0.0.1', resolve))
      port = await freePort()
      service.write(
        'a.yaml',
        `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: shop}
spec:
  hosts: [db.shop.svc.cluster.local]
  addresses: [240.1.1.1]
  resolution: STATIC
  ports: [{number: ${port}, name: mysql}]
  endpoints: [{address: 127.0.0.1, ports: {mysql: ${target}}}]
`,
      )
      await service.start()
    })

    after(async () => {
      for (const client of clients) client.close()
      await Promise.all([proxy?.dispose(), service.dispose()])
      server.close()
    })

    it('have the filter at proxies that say that they have it, and nothing is told', async () => {
      for (const delta of [false, true]) {
        const filters = await filtersOf(['envoy.filters.network.tcp_proxy', extension], delta)
        expect(filters.map(({ name }) => name)).to.deep.equal([extension, 'envoy.filters.network.tcp_proxy'])
        const config = filters[0]?.configType
        expect(config?.case === 'typedConfig' && anyUnpack(config.value, MySQLProxySchema)?.statPrefix).to.match(/^outbound\|/)
      }
      service.output.lacks(told)
    })

    it('are plain TCP at stock Envoy, which carries the connections and refuses nothing; one line says so', async () => {
      const nodeId = 'sidecar~10.0.0.9~c.shop~shop.svc.cluster.local'
      proxy = new Envoy({ binary, grpcPort: service.grpcPort, nodeId, metadata: { INTERCEPTION_MODE: 'NONE' } })
      await proxy.start()
      expect(await talk(port, 'select', 11)).to.equal('helloselect')
      expect(await service.rejections()).to.deep.equal([])
      expect(await proxy.rejected()).to.equal(0)
      expect((await filtersOf([`${extension}_2`], true)).map(({ name }) => name)).to.deep.equal(['envoy.filters.network.tcp_proxy'])
      await service.output.says(told, 1, 1)
      const { faults } = await service.debug<{ faults: { resource: string; isLoss?: boolean }[] }>('push_status')
      expect(faults.map(({ resource, isLoss }) => [resource, isLoss])).to.deep.equal([['PILOT_ENABLE_MYSQL_FILTER', true]])
    })
  })
