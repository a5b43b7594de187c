import { once } from 'node:events'
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
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { Page, PageServer } from '../../actors/http/page-server.ts'
import { LocalSocket } from '../../actors/http/unix-socket.ts'
import { until } from '../harness/until.ts'

describe('a page server on a unix socket', () => {
  const root = mkdtempSync(join(tmpdir(), 'mesh-socket-'))
  const own = { isOwn: true, allowVolumes: false }
  const servers: PageServer[] = []
  const warnings: string[] = []
  const serve = async (path: string, name: string) => {
    const server = new PageServer()
    server.add('/', ({ connection: { localAddress, remoteAddress } }) => new Page(`${name} ${localAddress} ${remoteAddress}`))
    await server.listenLocally({ path, directory: own, warn: (line) => warnings.push(line) })
    servers.push(server)
    return server
  }
  const ask = (socketPath: string) =>
    new Promise<string>((resolve, reject) => {
      const asked = request({ socketPath, path: '/' }, (response) => response.on('data', (bytes) => resolve(String(bytes))))
      asked.on('error', reject).end()
    })
  /** Leaves a socket without a listener, as a killed server does. */
  const abandon = async (path: string, server?: PageServer) => {
    const killed = server ?? (await serve(path, 'killed'))
    renameSync(path, `${path}.kept`)
    await killed.close()
    renameSync(`${path}.kept`, path)
  }
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
    expect(await ask(path)).to.equal('hello undefined undefined\n')
    await server.close()
    expect(existsSync(path)).to.equal(false)
  })

  it('replaces the socket of a dead server, and not that of a running one', async () => {
    const path = join(root, 'place/admin.sock')
    const first = await serve(path, 'first')
    expect(await refusal(path)).to.equal(`${path}: another server already listens on it`)
    await abandon(path, first)
    await serve(path, 'second')
    expect(await ask(path)).to.match(/^second/)
    expect(readdirSync(join(root, 'place'))).to.deep.equal(['admin.sock'])
  })

  it('listens again when its socket was removed or replaced, with or without its directory, and keeps open connections', async () => {
    const directory = join(root, 'lost')
    const path = join(directory, 'admin.sock')
    await serve(path, 'kept')
    const open = connect(path)
    await once(open, 'connect')
    const dead = join(root, 'dead/admin.sock')
    await abandon(dead)
    for (const lose of [() => rmSync(path), () => rmSync(directory, { recursive: true }), () => renameSync(dead, path)]) {
      warnings.length = 0
      lose()
      await until('the log line', () => warnings.length > 0)
      expect(warnings).to.deep.equal([`${path}: the socket was removed or replaced; the server listens on it again`])
      expect(await ask(path)).to.match(/^kept/)
      expect([statSync(directory).mode & 0o777, lstatSync(path).mode & 0o777]).to.deep.equal([0o700, 0o600])
    }
    open.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(await text(open)).to.match(/^HTTP\/1.1 200 .*kept/s)
  })

  it('says once why it cannot listen again, and does as soon as it can', async () => {
    const path = join(root, 'taken/admin.sock')
    await serve(path, 'mine')
    warnings.length = 0
    rmSync(path)
    let checks = 0
    const other = createServer((socket) => {
      checks++
      socket.destroy()
    }).listen(path)
    await until('several checks', () => checks >= 2)
    const reason = `the socket was removed or replaced, and the server cannot listen on it again, which is retried: ${path}: another server already listens on it`
    expect(warnings).to.deep.equal([reason])
    other.close()
    await until('the log line', () => warnings.length > 1)
    expect(await ask(path)).to.match(/^mine/)
  })

  it('is not made again once its server is closed', async () => {
    const path = join(root, 'closed/admin.sock')
    const server = await serve(path, 'closed')
    const later = await serve(join(root, 'later/admin.sock'), 'later')
    warnings.length = 0
    await server.close()
    rmSync(join(root, 'later/admin.sock'))
    // The checks of the server that was closed came first.
    await until('a check', () => warnings.length > 0)
    expect(existsSync(path)).to.equal(false)
    await later.close()
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
      on: () => {},
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
    const socket = new LocalSocket(listening as never, { path, directory: { isOwn: false, allowVolumes: true }, warn: () => {} })
    await socket.open()
    socket.close()
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
