import { EventEmitter } from 'node:events'
import { mock } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { ConnectionChecks } from '../../../actors/grpc/connection-checks.ts'
import { checkInterval, Http2Connection } from '../../../actors/grpc/http2-connection.ts'

describe('an HTTP/2 connection whose session has ended', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  it('can be inspected, measured and retired without an error, and its socket is destroyed after a while', async () => {
    let destroyed = 0
    const socket = Object.assign(new EventEmitter(), { bytesRead: 1, bytesWritten: 2, remoteAddress: '', destroy: () => destroyed++ })
    const session = Object.assign(new EventEmitter(), {
      // As in Node: once the session has released its socket, every access to it throws.
      socket: new Proxy(
        {},
        {
          get() {
            throw new Error('The socket has been disconnected from the Http2Session')
          },
        },
      ),
      state: {},
      destroyed: false,
      ping: () => true,
      goaway() {
        if (this.destroyed) throw new Error('The session has been destroyed')
      },
      destroy() {},
    })
    const limits = { keepaliveInterval: 30_000, keepaliveTimeout: 10_000, maxConnectionAge: 60_000, credentialGrace: 0 }
    const dead: string[] = []
    const events = { busy: () => {}, closed: () => {}, dead: (_: string, reason: string) => dead.push(reason) }
    let now = 0
    const clock = mock.method(process as { hrtime: () => [number, number] }, 'hrtime', () => [0, now * 1e6])
    const pass = async (ms: number) => {
      for (const end = now + ms; now < end; now += 500) {
        mock.timers.tick(500)
        // The check of the peer runs after the event loop has read.
        await turn()
      }
    }
    const connection = new Http2Connection(
      session as never,
      { socket: socket as never, client: undefined },
      limits,
      { standstillMs: 5000 } as never,
      events,
    )
    new ConnectionChecks(checkInterval(limits)).add(connection)
    await pass(5000)
    session.destroyed = true
    await pass(5000)
    expect(destroyed).to.equal(0)
    expect(connection.flow.charge(250)).to.equal(false)
    await pass(120_000)
    clock.mock.restore()
    expect(dead).to.deep.equal([])
    expect(destroyed).to.be.above(0)
  })
})
