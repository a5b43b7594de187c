import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { PeerPrograms } from '../../actors/http/peer-programs.ts'
import { freePort } from '../../bench/ports.ts'
import { until } from '../harness/until.ts'

describe('the program at the other end of a connection', () => {
  const started: ChildProcess[] = []
  const dirs: string[] = []
  const accepted: Socket[] = []
  let server: Server
  let port = 0
  before(async function () {
    if (process.platform !== 'linux') this.skip()
    server = createServer({ allowHalfOpen: true }, (socket) => void accepted.push(socket.on('error', () => undefined)))
    await new Promise<void>((resolve) => server.listen(0, '::', resolve))
    port = (server.address() as { port: number }).port
  })
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL')
    for (const socket of accepted.splice(0)) socket.destroy()
    for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true })
  })
  after(() => server.close())

  /** Runs a script, and returns its process and the connection that it made. */
  const connectedBy = async (script: string) => {
    const child = spawn(process.execPath, ['-e', script], { stdio: ['pipe', 'inherit', 'inherit'] })
    started.push(child)
    const before = accepted.length
    await until('the connection', () => accepted.length > before)
    return { child, connection: accepted[before] as Socket }
  }
  const connecting = (host: string) => `require('node:net').connect(${port}, '${host}').on('error', () => {});`
  const listening = (own: number) => `require('node:net').createServer().listen(${own}, '127.0.0.3', () => { ${connecting('127.0.0.1')} });`
  const proc = (tables: Record<string, string>) => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-proc-'))
    dirs.push(dir)
    mkdirSync(join(dir, 'self/net'), { recursive: true })
    for (const [name, text] of Object.entries(tables)) writeFileSync(join(dir, 'self/net', name), text)
    return dir
  }

  it('is suspect if it listens on a port of proxies, at whatever address', async () => {
    const own = await freePort()
    const peers = new PeerPrograms({ listeningOn: async () => new Set([own]) })
    for (const host of ['127.0.0.1', '::1']) {
      const { connection, child } = await connectedBy(connecting(host))
      expect(await peers.of(connection), 'nobody listens').to.equal('ordinary')
      child.kill('SIGKILL')
    }
    const { connection } = await connectedBy(listening(own))
    expect(await peers.of(connection)).to.equal('suspect')
    const { connection: other } = await connectedBy(connecting('127.0.0.1'))
    expect(await peers.of(other), 'beside one that listens').to.equal('ordinary')
    expect(await new PeerPrograms({ listeningOn: async () => new Set([own + 1]) }).of(connection), 'another port').to.equal('ordinary')
  })

  it('is looked for again on the same connection, since it may begin to listen later', async () => {
    const own = await freePort()
    const script = `${connecting('127.0.0.1')} process.stdin.once('data', () => require('node:net').createServer().listen(${own}, '127.0.0.3'))`
    const { connection, child } = await connectedBy(script)
    const of = (ordinaryMs?: number) => {
      const peers = new PeerPrograms({ listeningOn: async () => new Set([own]) }, '/proc', ordinaryMs)
      return () => peers.of(connection)
    }
    const [kept, again] = [of(600_000), of(0)]
    expect([await kept(), await again()]).to.deep.equal(['ordinary', 'ordinary'])
    child.stdin?.write('listen')
    await until('it to be suspect', async () => (await again()) === 'suspect')
    expect(await kept()).to.equal('ordinary')
  })

  it('is suspect if it is a given process, or was started by it', async () => {
    const { connection, child } = await connectedBy(connecting('127.0.0.1'))
    const of = (pid: number | undefined) => new PeerPrograms({ startedBy: async () => pid }).of(connection)
    expect(await of(child.pid)).to.equal('suspect')
    expect(await of(process.pid), 'its parent').to.equal('suspect')
    expect(await of(undefined)).to.equal('ordinary')
    const other = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'inherit', 'inherit'] })
    started.push(other)
    expect(await of(other.pid)).to.equal('ordinary')
  })

  it('is suspect if it is of the session of a given process whose child started it and ended', async () => {
    const grandchild = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(`${connecting('127.0.0.1')} process.stdin.resume()`)}], {stdio: 'inherit'}).unref(); process.exit()`
    const child = spawn(
      process.execPath,
      [
        '-e',
        `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(grandchild)}], {stdio: 'inherit'}); process.stdin.resume()`,
      ],
      { stdio: ['pipe', 'inherit', 'inherit'], detached: true },
    )
    started.push(child)
    await until('the connection', () => accepted.length > 0)
    expect(await new PeerPrograms({ startedBy: async () => child.pid }).of(accepted[0] as Socket)).to.equal('suspect')
    child.stdin.end()
  })

  it('is elsewhere when no open socket of this machine is there', async () => {
    const { connection, child } = await connectedBy(connecting('127.0.0.1'))
    child.kill('SIGKILL')
    await new Promise((resolve) => child.on('exit', resolve))
    expect(await new PeerPrograms({ listeningOn: async () => new Set() }).of(connection)).to.equal('elsewhere')
  })

  it('is elsewhere when the connection ends before the look-up, so that nobody gets in by leaving', async () => {
    for (const leave of [(client: Socket) => client.resetAndDestroy(), (client: Socket) => client.destroy()]) {
      const before = accepted.length
      const client = connect(port, '127.0.0.1')
      await until('the connection', () => accepted.length > before)
      const connection = accepted[before] as Socket
      const listeningOn = async () => {
        leave(client)
        await until('the end', () => connection.destroyed || connection.readableEnded)
        connection.destroy()
        return new Set<number>()
      }
      connection.resume()
      expect(await new PeerPrograms({ listeningOn }).of(connection)).to.equal('elsewhere')
    }
  })

  it('is elsewhere when the connection ends while the processes are looked for', async () => {
    const before = accepted.length
    const client = connect(port, '127.0.0.1')
    await until('the connection', () => accepted.length > before)
    const connection = (accepted[before] as Socket).resume()
    const startedBy = async () => {
      client.resetAndDestroy()
      await until('the end', () => connection.destroyed)
      return process.pid
    }
    expect(await new PeerPrograms({ startedBy }).of(connection)).to.equal('elsewhere')
  })

  it('is unknown where the system does not show the connection or its process', async () => {
    const own = await freePort()
    const { connection } = await connectedBy(listening(own))
    const listeningOn = async () => new Set([own])
    expect(await new PeerPrograms({ listeningOn }, '/nowhere').of(connection)).to.equal('unknown')
    expect(await new PeerPrograms({ listeningOn }, proc({ tcp: '', tcp6: '' })).of(connection)).to.equal('unknown')
    // As with other processes hidden (hidepid), or another namespace of process ids: only the tables are there.
    const dir = proc({})
    for (const name of ['tcp', 'tcp6']) symlinkSync(`/proc/self/net/${name}`, join(dir, 'self/net', name))
    expect(await new PeerPrograms({ listeningOn }, dir).of(connection)).to.equal('unknown')
    expect(await new PeerPrograms({ listeningOn }).of(connection)).to.equal('suspect')
  })

  it('is found by one look-up for all that wait, and once for each connection; more than 256 are not waited for', async () => {
    let lookUps = 0
    const peers = new PeerPrograms({
      listeningOn: async () => {
        lookUps++
        return new Set()
      },
    })
    const clients = Array.from({ length: 300 }, () => connect(port, '127.0.0.1'))
    await until('the connections', () => accepted.length === 300)
    const ask = () => Promise.all(accepted.map((connection) => peers.of(connection)))
    const found = await ask()
    expect(found.filter((program) => program === 'busy')).to.have.length(44)
    expect(new Set(found)).to.have.keys('ordinary', 'busy')
    expect(lookUps).to.be.at.most(2)
    expect(new Set(await ask())).to.have.keys('ordinary')
    expect(new Set(await ask())).to.have.keys('ordinary')
    expect(lookUps).to.be.at.most(4)
    for (const client of clients) client.destroy()
  })

  it('costs about a quarter of a thread while it is looked for, beside many sockets', async () => {
    const clients: Socket[] = []
    for (let made = 0; made < 4000; made += 200) {
      clients.push(...Array.from({ length: 200 }, () => connect(port, '127.0.0.1').on('error', () => undefined)))
      await until('the connections', () => accepted.length === clients.length)
    }
    const peers = new PeerPrograms({ listeningOn: async () => new Set([port]) })
    // What else the thread does meanwhile falls into some of the look-ups: garbage of so many sockets is collected over several of them.
    const shares: number[] = []
    for (const connection of accepted.slice(0, 25)) {
      const [before, begin] = [process.threadCpuUsage(), performance.now()]
      expect(await peers.of(connection)).to.equal('suspect')
      const { user, system } = process.threadCpuUsage(before)
      shares.push((user + system) / 1000 / (performance.now() - begin))
      if ((shares.at(-1) as number) <= 0.5) break
    }
    expect(Math.min(...shares), shares.join(', ')).to.be.at.most(0.5)
    for (const client of clients) client.destroy()
  })
})
