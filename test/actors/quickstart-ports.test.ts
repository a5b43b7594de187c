/** The ports of the quickstart. */
import { createServer } from 'node:net'
import { expect } from 'chai'
import { choosePorts, takenLine } from '../../actors/quickstart/example-files.ts'
import { freePorts } from '../../bench/ports.ts'

describe('the ports of the quickstart', () => {
  it('begin at the one that is asked for, without those that are taken', async () => {
    const first = await freePorts(40)
    const taken = createServer().listen(first + 1, '127.0.0.1')
    try {
      const { ports } = await choosePorts(first)
      expect([ports.gateway, ...Object.values(ports)])
        .to.include(first)
        .and.not.include(first + 1)
    } finally {
      taken.close()
    }
  })

  it('that are taken are told in one line', () => {
    const replaced = new Map([
      [8000, 20_000],
      [8080, 20_003],
      [15_010, 15_010],
    ])
    expect(takenLine({ taken: [8000, 8080], replaced })).to.equal('Ports that are taken, and those used in their place: 8000 (20000), 8080 (20003).')
  })
})
