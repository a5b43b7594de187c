/** A sidecar without redirection binds the ports of all services itself, on loopback, since service addresses are not local. */
import { readFileSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:tls'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, HttpBackend, readAll, tcpBackend } from '../harness/backend.ts'
import { Authority } from '../harness/certificates.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'

/** Starts a TLS workload that answers with its name. Returns its port. */
async function tlsBackend(name: string, { chain, key }: { chain: string; key: string }): Promise<{ server: Server; port: number }> {
  const server = createServer({ cert: readFileSync(chain), key: readFileSync(key) }, (socket) => socket.end(name))
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return { server, port }
}

/** Returns the first bytes of a TLS server. */
function overTls(port: number, servername: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ port, host: '127.0.0.1', servername, rejectUnauthorized: false })
    socket.on('data', (bytes) => (text += bytes))
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
}

for (const { version, path: binary } of envoyBinaries())
  describe(`Envoy ${version} without interception`, () => {
    const service = new Service()
    const authority = new Authority()
    const names = ['a', 'b'] as const
    const http = { a: new HttpBackend('a'), b: new HttpBackend('b') }
    const ports = { http: 0, tcp: 0, tls: 0, sniffed: 0 }
    const stops: (() => unknown)[] = []
    let proxy: Envoy

    before(async () => {
      for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
      const certificate = authority.issue('server', 'spiffe://cluster.local/ns/shop/sa/server')
      for (const [index, name] of names.entries()) {
        await http[name].start()
        const [tcp, tls] = [await tcpBackend(`tcp of ${name}`), await tlsBackend(`tls of ${name}`, certificate)]
        stops.push(
          () => http[name].stop(),
          tcp.stop,
          () => tls.server.close(),
        )
        const at = { http: http[name].port, tcp: tcp.port, tls: tls.port, sniffed: http[name].port }
        service.write(
          `${name}.yaml`,
          `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.shop.svc.cluster.local]
  addresses: [240.1.1.${index + 1}, 10.${index + 7}.0.0/16]
  resolution: STATIC
  ports: [{number: ${ports.http}, name: http}, {number: ${ports.tcp}, name: tcp}, {number: ${ports.tls}, name: tls}, {number: ${ports.sniffed}, name: sniffed}]
  endpoints: [{address: 127.0.0.1, ports: ${JSON.stringify(at)}}]
`,
        )
      }
      await service.start()
      const nodeId = 'sidecar~10.0.0.9~c.shop~shop.svc.cluster.local'
      proxy = new Envoy({ binary, grpcPort: service.grpcPort, nodeId, metadata: { INTERCEPTION_MODE: 'NONE' } })
      await proxy.start()
    })

    after(async () => {
      await Promise.all([proxy.dispose(), service.dispose(), ...stops.map((stop) => stop())])
      authority.dispose()
    })

    it('accepts one loopback listener for each port of the services', async () => {
      expect(await service.rejections()).to.deep.equal([])
      expect(await proxy.rejected()).to.equal(0)
      const listeners = (await proxy.admin('/listeners')).trim().split('\n')
      expect(listeners.map((line) => line.split('::').at(-1)).sort()).to.deep.equal(
        Object.values(ports)
          .map((port) => `127.0.0.1:${port}`)
          .sort(),
      )
    })

    it('selects services of one port by host and by server name, and otherwise the first service', async () => {
      for (const name of names) {
        const host = `${name}.shop.svc.cluster.local`
        for (const port of [ports.http, ports.sniffed]) expect((await call('127.0.0.1', port, '/', { host })).body).to.equal(name)
        expect(await overTls(ports.tls, host)).to.equal(`tls of ${name}`)
      }
      expect(await overTls(ports.tls, 'localhost')).to.equal('tls of a')
      expect(await readAll('127.0.0.1', ports.tcp)).to.equal('tcp of a')
    })
  })
