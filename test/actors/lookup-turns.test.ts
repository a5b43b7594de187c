import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { type LookupAll, LookupTurns } from '../../actors/http/lookup-turns.ts'

describe('lookups of names in turns', () => {
  const open: [name: string, end: () => void][] = []
  const fake: LookupAll = (name, _, done) => open.push([name, () => done(null, [{ address: '10.0.0.1', family: 4 }])])
  const options = { all: true } as const
  const names = () => open.map(([name]) => name)

  it('are one at a time for an asker, at once for several, and none for a fetch that has ended', async () => {
    const turns = new LookupTurns(fake)
    const [stays, ends] = [new AbortController().signal, new AbortController()]
    const answers: string[] = []
    const find = (asker: string, name: string, signal = stays) =>
      turns.of(asker, signal)(name, options, (error, [found]) => answers.push(`${name} ${error?.message ?? found?.address}`))
    find('a', 'a1')
    find('a', 'a2', ends.signal)
    find('a', 'a3')
    find('b', 'b1')
    expect(names()).to.deep.equal(['a1', 'b1'])
    ends.abort()
    for (const [, end] of open.splice(0)) end()
    await turn()
    expect(answers).to.deep.equal(['a1 10.0.0.1', 'b1 10.0.0.1', 'a2 the fetch has ended'])
    expect([names(), turns.size]).to.deep.equal([['a3'], 1])
    for (const [, end] of open.splice(0)) end()
    await turn()
    expect(turns.size).to.equal(0)
  })

  it('are those of the system by default', async () => {
    const found = await new Promise((resolve) =>
      new LookupTurns().of('a', new AbortController().signal)('127.0.0.1', options, (_, all) => resolve(all)),
    )
    expect(found).to.deep.equal([{ address: '127.0.0.1', family: 4 }])
  })
})
