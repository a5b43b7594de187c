import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { NativeHandshakes } from '../../actors/grpc/native-handshakes.ts'
import { until } from '../harness/until.ts'

/** A socket as far as native handshakes know it. */
const arrived = (remoteAddress: string, remotePort: number) =>
  Object.assign(new EventEmitter(), { remoteAddress, remotePort, bytesRead: 500, destroy: () => undefined }) as unknown as Socket

describe('native handshakes', () => {
  const started = () => {
    const seen: Record<'begun' | 'measured', string[]> = { begun: [], measured: [] }
    const note = (where: 'begun' | 'measured') => (socket: Socket) => void seen[where].push(`${socket.remoteAddress} ${socket.remotePort}`)
    const native = new NativeHandshakes({
      begin: note('begun'),
      admit: (socket) => native.take(socket),
      measure: note('measured'),
      timedOut: () => undefined,
      say: () => undefined,
    })
    return { native, seen }
  }

  it('are done two at a time, one of an address, and addresses take turns', () => {
    const { native, seen } = started()
    const [a1, a2, a3, b1, b2, c1] = ['a 1', 'a 2', 'a 3', 'b 1', 'b 2', 'c 1'].map((end) => {
      const socket = arrived(end.slice(0, 1), Number(end.slice(2)))
      native.take(socket)
      return socket as TLSSocket
    })
    expect(seen.begun).to.deep.equal(['a 1', 'b 1'])
    for (const done of [a1, b1, a2, b2, c1, a3]) native.secured(done as TLSSocket)
    expect(seen).to.deep.equal({ begun: ['a 1', 'b 1', 'a 2', 'b 2', 'c 1', 'a 3'], measured: [] })
    expect(native.size).to.equal(0)
  })

  it('that stand still keep nobody waiting: the others are measured', async () => {
    const { native, seen } = started()
    for (const [address, port] of [
      ['a', 1],
      ['b', 1],
      ['c', 1],
    ] as const)
      native.take(arrived(address, port))
    await until('the third to be measured', () => {
      native.checkAges()
      return seen.measured.length > 0
    })
    native.take(arrived('d', 1))
    expect(seen).to.deep.equal({ begun: ['a 1', 'b 1'], measured: ['c 1', 'd 1'] })
    native.close()
  })
})
