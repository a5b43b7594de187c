import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { Page, PageServer } from '../../actors/http/page-server.ts'
import { listenLocally } from '../../actors/http/unix-socket.ts'

describe('a page server on a unix socket', () => {
  const root = mkdtempSync(join(tmpdir(), 'mesh-socket-'))
  const own = { isOwn: true, allowVolumes: false }
  const servers: PageServer[] = []
  const serve = async (path: string, text: string) => {
    const server = new PageServer()
    server.add('/', ({ connection: { localAddress, remoteAddress } }) => new Page(`${text} ${localAddress} ${remoteAddress}`))
    await server.listenLocally(path, own)
    servers.push(server)
    return server
  }
  const ask = (socketPath: string) =>
    new Promise<string>((resolve, reject) => {
      const asked = request({ socketPath, path: '/' }, (response) => response.on('data', (bytes) => resolve(String(bytes))))
      asked.on('error', reject).end()
    })
  const refusal = (path: string) =>
    serve(path, 'other').then(
      () => 'listens',
      (error: Error) => error.message,
    )
  after(async () => {
    await Promise.all(servers.map((server) => server.close()))
    rmSync(root, { recursive: true, force: true })
  })

  it('is accessible for its owner only, and removes its socket at the end', async () => {
    const path = join(root, 'a/b/own/admin.sock')
    const server = await serve(path, 'hello')
    expect([statSync(join(root, 'a/b/own')).mode & 0o777, lstatSync(path).mode & 0o777]).to.deep.equal([0o700, 0o600])
    expect(await ask(path)).to.equal('hello undefined undefined')
    await server.close()
    expect(existsSync(path)).to.equal(false)
  })

  it('replaces the socket of a dead server, and not that of a running one', async () => {
    const path = join(root, 'place/admin.sock')
    const first = await serve(path, 'first')
    expect(await refusal(path)).to.equal(`${path}: another server already listens on it`)
    // A killed server leaves a socket without a listener.
    renameSync(path, `${path}.kept`)
    await first.close()
    renameSync(`${path}.kept`, path)
    await serve(path, 'second')
    expect(await ask(path)).to.match(/^second/)
    expect(readdirSync(join(root, 'place'))).to.deep.equal(['admin.sock'])
  })

  it('is created for the owner only, and no mode of a file at its path is changed', async () => {
    const directory = join(root, 'mounted')
    const path = join(directory, 'SDS')
    const elsewhere = join(root, 'elsewhere')
    writeFileSync(elsewhere, '')
    chmodSync(elsewhere, 0o640)
    const modes: number[] = []
    const umask = process.umask()
    const listening = {
      once: () => {},
      off: () => {},
      listen: (_: unknown, done: () => void) => {
        writeFileSync(path, '')
        modes.push(lstatSync(path).mode & 0o777)
        // What another process could do while the server begins to listen.
        rmSync(path)
        symlinkSync(elsewhere, path)
        done()
      },
    }
    await listenLocally(listening as never, path, { isOwn: false, allowVolumes: true })
    expect([...modes, statSync(elsewhere).mode & 0o777, process.umask()]).to.deep.equal([0o600, 0o640, umask])
  })

  it('is refused with the reason if the path is too long or unsafe', async () => {
    const long = join(root, 'x'.repeat(120), 'admin.sock')
    expect(await refusal(long)).to.equal(`${long}: the path has ${long.length} bytes; the path of a unix socket has at most 107`)
    const open = join(root, 'open')
    mkdirSync(open)
    chmodSync(open, 0o750)
    expect(await refusal(join(open, 'admin.sock'))).to.equal(
      `${open}: has mode 750; the directory of the socket must be accessible to its owner only (chmod 700)`,
    )
    chmodSync(open, 0o700)
    const file = join(open, 'file')
    writeFileSync(file, 'kept')
    expect(await refusal(file)).to.equal(`${file}: exists and is not a socket; it was not changed`)
    expect(await refusal(join(file, 'admin.sock'))).to.equal(`${file}: is not a directory`)
  })
})
