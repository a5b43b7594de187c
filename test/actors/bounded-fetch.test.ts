import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { boundedFetch, type LongBody } from '../../actors/http/bounded-fetch.ts'
import { until } from '../harness/until.ts'

describe('a fetch of a document', () => {
  const bodies: LongBody[] = []
  const long = `${'é'.repeat(100_000)}.`
  const server = createServer(({ url }, response) => response.end(url === '/long' ? long : 'short'))
  let origin = ''

  before(async () => {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  beforeEach(() => void bodies.splice(0))
  after(() => server.close())

  const fetch = (path: string, timeoutMs = 60_000) =>
    boundedFetch(
      `${origin}${path}`,
      { timeoutMs, bytes: 1_000_000, redirects: 0, allowed: '127.0.0.0/8', authorities: [] },
      { blocking: (work) => work(), lookup: () => () => undefined, readLong: (body) => bodies.push(body) },
    )

  it('reads a short body at once, and a long one when it is its turn', async () => {
    expect(await fetch('/short')).to.equal('short')
    expect(bodies).to.have.length(0)
    let got = ''
    const fetched = fetch('/long').then((body) => (got = body))
    await until('the long body to wait', () => bodies.length === 1)
    for (let turns = 0; turns < 100; turns++) await turn()
    expect(got).to.equal('')
    await bodies[0]?.read()
    await fetched
    expect(got === long).to.equal(true)
  })

  it('that ended before its turn is not read any more', async () => {
    const failed = await fetch('/long', 500).catch((error: Error) => error.message)
    expect(failed).to.equal('no answer within 500 ms')
    await until('the long body to be gone', () => bodies.every((body) => body.isGone()))
    expect(bodies).to.have.length(1)
  })
})
