import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect } from 'chai'
import { connectSession } from '../../actors/agent/credentials/http2-client.ts'
import { acceptMs, connectSoon, wasUnanswered } from '../../actors/http/tcp-client.ts'

/** Resolves with the error of a connection. */
const errorOf = async (socket: { once(event: 'error', listener: (error: Error) => void): unknown }): Promise<Error> =>
  new Promise((resolve) => socket.once('error', resolve))

describe('connecting to discovery', () => {
  let silent: ChildProcess
  let silentPort: number
  const waiting: Socket[] = []

  // The kernel answers nothing more at the port of a process that accepts none of the two connections for which it has room.
  before(async () => {
    const code = "require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port) })"
    silent = spawn(process.execPath, ['--eval', code], { stdio: ['ignore', 'pipe', 'inherit'] })
    silentPort = Number(await new Promise((resolve) => silent.stdout?.once('data', resolve)))
    silent.kill('SIGSTOP')
    for (let count = 0; count < 2; count++) {
      const socket = connect(silentPort, '127.0.0.1')
      waiting.push(socket)
      await once(socket, 'connect')
    }
  })
  after(() => {
    for (const socket of waiting) socket.destroy()
    silent?.kill('SIGKILL')
  })

  it('is given up after three seconds where nobody answers, in plain text and over TLS', async () => {
    const began = performance.now()
    const address = { host: '127.0.0.1', port: silentPort, serverName: '127.0.0.1' }
    const errors = await Promise.all(
      [true, false].map((isPlain) => errorOf(connectSession({ ...address, isPlain }, {}, { pair: undefined, roots: undefined }))),
    )
    expect(performance.now() - began).to.be.at.least(acceptMs - 1)
    for (const error of errors) {
      expect(error.message).to.equal(`no connection to 127.0.0.1:${silentPort} within 3 s`)
      expect(wasUnanswered(error)).to.equal(true)
    }
  })

  it('tells an address that nobody answers from names that are not known and servers that say nothing', async () => {
    expect(wasUnanswered(await errorOf(connectSoon({ host: '127.0.0.1', port: 1 }))), 'refused').to.equal(true)
    expect(wasUnanswered(await errorOf(connectSoon({ host: 'nobody.invalid', port: 1 }))), 'an unknown name').to.equal(false)
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const session = connectSession({ host: '127.0.0.1', port, serverName: 'a', isPlain: false }, {}, { pair: undefined, roots: undefined })
    expect(wasUnanswered(await errorOf(session)), 'closed').to.equal(false)
    server.close()
  })
})
