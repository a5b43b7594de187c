/** Meshes that start on one machine at the same moment. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect } from 'chai'
import { claimStart } from '../../actors/quickstart/start-claim.ts'
import { freePort } from '../../bench/ports.ts'

const never = () => new AbortController().signal

describe('the start of a mesh', () => {
  it('waits for one that began before, which would have chosen the same ports, and says so once', async () => {
    const port = await freePort()
    const order: string[] = []
    const first = await claimStart(never(), () => order.push('the first waits'), port)
    const other = claimStart(never(), () => order.push('the other waits'), port).then((end) => {
      order.push('the other starts')
      return end
    })
    await new Promise((resolve) => setTimeout(resolve, 700))
    order.push('the first is up')
    first()
    ;(await other)()
    expect(order).to.deep.equal(['the other waits', 'the first is up', 'the other starts'])
  })

  it('waits for nothing else that has the port, and no longer than it is wanted', async () => {
    const port = await freePort()
    const server = createServer((socket) => socket.end('something else\n')).listen(port, '127.0.0.1')
    await once(server, 'listening')
    ;(await claimStart(never(), () => expect.fail('it waits'), port))()
    server.close()
    await once(server, 'close')
    const first = await claimStart(never(), () => undefined, port)
    const stopped = new AbortController()
    const other = claimStart(stopped.signal, () => stopped.abort(), port)
    ;(await other)()
    first()
  })
})
