import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { createServer, type Server } from 'node:net'
import { expect } from 'chai'
import { servicePaths } from '../../src/names/mesh-names.ts'
import { grpcCall } from '../harness/grpc-call.ts'
import { anyPorts, Launched, launchers } from '../harness/launched.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const pinned = launchers['the pinned Node']

/** Listens on an address while the function runs. */
async function occupied<T>(host: string, run: (port: number) => Promise<T>): Promise<T> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  try {
    return await run((server.address() as { port: number }).port)
  } finally {
    await new Promise<Server>((resolve) => server.close(() => resolve(server)))
  }
}

/** Returns the number of sockets that listen on a port of 127.0.0.1. */
function listeners(port: number): number {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const listening = '0A'
  const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n')
  return rows.map((row) => row.trim().split(/\s+/)).filter(([, address, , state]) => address === local && state === listening).length
}

/** What becomes of a connection: the settings of the server, or an error. */
const outcome = (session: ClientHttp2Session): Promise<string> =>
  new Promise((resolve) => {
    session.once('remoteSettings', () => resolve('served'))
    session.once('error', (error) => resolve(error.message))
    session.once('close', () => resolve('closed'))
  })

describe('listening addresses', () => {
  it('with port 0 are one port for all writers, and each actual address is logged', async () => {
    const service = new Launched([...pinned, 'discovery', '--registries', 'Mock', '--writers', '3', ...anyPorts])
    try {
      await service.output.says('ready after')
      const port = Number((await service.address('gRPC')).split(':')[1])
      expect(port).to.be.greaterThan(0)
      for (const server of ['HTTP', 'monitoring'] as const)
        expect((await fetch(`http://${await service.address(server)}/debug/adsz`)).status).to.equal(200)
      expect(listeners(port), 'sockets that listen on the port').to.equal(3)
      const client = new XdsClient(port, sidecarNode('10.0.0.1', 'one', 'mock-0'), false).connect()
      await client.ready()
      client.close()
    } finally {
      service.dispose()
    }
  })

  it('with port 0 lead every connection to a writer, from the moment at which the service says that it is ready', async () => {
    const service = new Launched([...pinned, 'discovery', '--registries', 'Mock', '--writers', '2', ...anyPorts])
    try {
      const [http, grpc] = [await service.address('HTTP'), await service.address('gRPC')]
      await until('the service to be ready', async () => (await fetch(`http://${http}/ready`)).status === 200)
      const sessions = Array.from({ length: 24 }, () => connect(`http://${grpc}`))
      try {
        expect(await Promise.all(sessions.map(outcome))).to.deep.equal(Array(sessions.length).fill('served'))
      } finally {
        for (const session of sessions) session.destroy()
      }
    } finally {
      service.dispose()
    }
  })

  it('with port 0 work with a single writer too', async () => {
    const service = new Launched([...pinned, 'discovery', '--registries', 'Mock', '--writers', '1', ...anyPorts])
    try {
      await service.output.says('ready after')
      const port = Number((await service.address('gRPC')).split(':')[1])
      expect(listeners(port), 'sockets that listen on the port').to.equal(1)
      const client = new XdsClient(port, sidecarNode('10.0.0.1', 'one', 'mock-0'), false).connect()
      await client.ready()
      client.close()
      service.output.lacks('starts again in')
    } finally {
      service.dispose()
    }
  })

  for (const [one, other] of [
    ['127.0.0.1:', '127.0.0.1:'],
    [':', '127.0.0.1:'],
    ['0.0.0.0:', 'localhost:'],
    ['[::]:', '[::1]:'],
    ['[::]:', '127.0.0.1:'],
    ['*:', '0.0.0.0:'],
  ])
    it(`${one}p and ${other}p of two flags are rejected as overlapping`, async () => {
      await occupied('127.0.0.1', async (port) => {
        const { code, stderr } = await runCommand(['discovery', '--grpcAddr', `${one}${port}`, '--httpAddr', `${other}${port}`])
        expect(code).to.equal(255)
        expect(stderr).to.equal(`Error: --grpcAddr ${one}${port} and --httpAddr ${other}${port} overlap: each needs an address and port of its own\n`)
      })
    })

  it('in use are all named in one error', async () => {
    await occupied('127.0.0.1', async (first) =>
      occupied('127.0.0.1', async (second) => {
        const flags = ['--grpcAddr', `127.0.0.1:${first}`, '--httpAddr', '127.0.0.1:0', '--monitoringAddr', `127.0.0.1:${second}`]
        const { code, stderr } = await runCommand(['discovery', ...flags])
        expect([code, stderr]).to.deep.equal([
          255,
          `Error: --grpcAddr 127.0.0.1:${first}: another process listens on it already (EADDRINUSE); --monitoringAddr 127.0.0.1:${second}: another process listens on it already (EADDRINUSE)\n`,
        ])
      }),
    )
  })

  it('may have the same port at two IP addresses', async () => {
    const service = new Launched([...pinned, 'discovery', '--registries', 'Mock', ...anyPorts, '--monitoringAddr', ''])
    try {
      await service.output.says('ready after')
      const port = (await service.address('HTTP')).split(':')[1]
      const { stderr } = await runCommand(['discovery', ...anyPorts, '--httpAddr', `127.0.0.2:${port}`, '--grpcAddr', `127.0.0.1:${port}`])
      expect(stderr).to.equal(`Error: --grpcAddr 127.0.0.1:${port}: another process listens on it already (EADDRINUSE)\n`)
    } finally {
      service.dispose()
    }
  })
})

describe('a service without a secured port', () => {
  it('signs no certificates in plain text', async () => {
    const service = new Service()
    await service.start()
    try {
      for (const name of servicePaths('mesh.v1.auth.MeshCertificateService', 'CreateCertificate'))
        expect((await grpcCall(`http://127.0.0.1:${service.grpcPort}`, name, Buffer.alloc(0))).status, name).to.equal('12')
    } finally {
      await service.dispose()
    }
  })
})
