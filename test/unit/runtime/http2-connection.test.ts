import { EventEmitter } from 'node:events'
import { mock } from 'node:test'
import { expect } from 'chai'
import { Http2Connection } from '../../../actors/discovery/http2-connection.ts'

describe('a connection whose session is destroyed and not closed yet', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }))
  afterEach(() => mock.timers.reset())

  it('is looked at, measured and retired without an error', () => {
    const session = Object.assign(new EventEmitter(), {
      socket: { bytesRead: 1, bytesWritten: 2, remoteAddress: '' } as object | undefined,
      state: {},
      destroyed: false,
      closed: false,
      ping: () => true,
      goaway() {
        if (this.destroyed) throw new Error('The session has been destroyed')
      },
      destroy() {},
    })
    const limits = { keepaliveInterval: 30_000, keepaliveTimeout: 10_000, maxConnectionAge: 60_000 }
    const flowLimits = { standstillMs: 5000 } as never
    const dead: string[] = []
    new Http2Connection(session as never, limits as never, flowLimits, {
      busy: () => {},
      dead: (_: string, reason: string) => dead.push(reason),
    } as never)
    mock.timers.tick(5000)
    session.destroyed = true
    session.socket = undefined
    mock.timers.tick(120_000)
    expect(dead).to.deep.equal([])
  })
})
