import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { AuthorityClient } from '../../src/cli/authority-client.ts'

describe('the client of the certificate authority', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-authority-client-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  const environment = { MESHD_ADMIN_SOCKET: join(dir, 'admin.sock') }

  /** The reason for which it gives up on a server that answers in this way. */
  const reasonFor = async (listener: RequestListener, limitMs?: number) => {
    const server = createServer(listener)
    await new Promise<void>((resolve) => server.listen(environment.MESHD_ADMIN_SOCKET, resolve))
    try {
      return await new AuthorityClient(environment, limitMs).status().then(
        () => 'answered',
        (error: unknown) => (error as Error).message,
      )
    } finally {
      server.closeAllConnections()
      server.close()
    }
  }

  it('reads no more than 16 MiB of an answer', async () => {
    let written = 0
    const reason = await reasonFor((_, response) => {
      response.writeHead(200, { 'content-type': 'application/proto' })
      const write = () => {
        while (!response.destroyed && written < 256 * 1_048_576) {
          written += 65_536
          if (!response.write(Buffer.alloc(65_536))) return
        }
        response.end()
      }
      response.on('drain', write)
      write()
    })
    expect(reason).to.contain('larger than configured readMaxBytes 16777216')
    expect(written).to.be.below(64 * 1_048_576)
  })

  it('says when a server does not answer in time', async () => {
    expect(await reasonFor(() => {}, 300)).to.match(/^\/.*: the server has not answered in time$/)
  })
})
