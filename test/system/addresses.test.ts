/** An --address that is not the right one: errors say what was reached and what to do. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { AdminClient } from '../../src/cli/admin-client.ts'
import { adminSocket, explained } from '../../src/cli/admin-socket.ts'
import { runCommand, Service } from '../harness/service.ts'

describe('a wrong --address', () => {
  const service = new Service({ flags: ['--writers', '1'] })
  let secured = 0
  before(async () => {
    secured = await freePort()
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${secured}`)
    await service.start()
  })
  after(() => service.dispose())

  const errorOf = async (address: string) => {
    const { code, stderr } = await runCommand(['proxy-status', '--address', address], service.env)
    expect(code).to.equal(255)
    return stderr
  }

  it('of a port with TLS is to be asked as https', async () => {
    expect(await errorOf(`127.0.0.1:${secured}`)).to.match(
      new RegExp(
        `^Error: http://127.0.0.1:${secured}: the connection was closed without an answer: .* asked as https://127.0.0.1:${secured} with --ca-file\\n$`,
      ),
    )
  })

  it('of a port without TLS is to be asked as http', async () => {
    const { httpPort } = service
    expect(await errorOf(`https://127.0.0.1:${httpPort}`)).to.match(
      new RegExp(`^Error: https://127.0.0.1:${httpPort}: what listens there does not speak TLS: ask .* as http://127.0.0.1:${httpPort}, or`),
    )
  })

  it('over TLS without the roots of the mesh needs --ca-file', async () => {
    expect(await errorOf(`https://127.0.0.1:${secured}`)).to.match(
      /does not come from the roots of the system: name a file with the root of the mesh in --ca-file \(self-signed/,
    )
  })

  it('of what is no control plane says so: a server that answers otherwise, the plain port of proxies, nothing', async () => {
    const other = createServer((_, response) => response.writeHead(404).end('no such page'))
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as AddressInfo
    try {
      expect(await errorOf(`127.0.0.1:${port}`)).to.match(
        /^Error: http:\/\/127\.0\.0\.1:\d+: what answers there is no control plane, or .*: --address names .* \(HTTP 404\)\n$/,
      )
      expect(await errorOf(`127.0.0.1:${service.grpcPort}`)).to.match(
        /: what answers there is no control plane, or .* \(it does not speak HTTP\/1\.1\)\n$/,
      )
    } finally {
      other.close()
    }
    expect(await errorOf(`127.0.0.1:${port}`)).to.match(/: no server listens there \(connect ECONNREFUSED/)
  })

  it('of a server that does not answer is named', async () => {
    const silent = createServer(() => undefined)
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const address = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const client = new AdminClient({ address, token: undefined, roots: undefined }, { limitMs: 300 })
    try {
      expect(await client.asked(client.rpcs.listProxies({})).catch((error: Error) => error.message)).to.equal(
        `${address}: the server has not answered in time`,
      )
    } finally {
      silent.closeAllConnections()
      silent.close()
    }
  })

  it('is what other users need than that of the server, who are told who may ask its socket', function () {
    if (process.getuid?.() !== 0) return this.skip()
    const directory = join(service.dir, 'closed')
    mkdirSync(join(directory, 'mesh'), { recursive: true })
    writeFileSync(join(directory, 'mesh/admin.sock'), '')
    chmodSync(directory, 0o700)
    const socket = join(directory, 'mesh/admin.sock')
    process.seteuid?.(65_534)
    let message = ''
    try {
      adminSocket({ MESHD_ADMIN_SOCKET: socket })
    } catch (error) {
      message = (error as Error).message
    } finally {
      process.seteuid?.(0)
    }
    expect(message).to.equal(explained(socket, Object.assign(new Error(), { code: 'EACCES' })).message)
    expect(message).to.contain('only the user of the server, or root, may ask it (EACCES)')
  })
})
