import type { LookupAddress } from 'node:dns'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import { LookupTurns } from '../../actors/http/lookup-turns.ts'
import { type LookupAll, lookUpIn } from '../../actors/http/name-lookup.ts'

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

  it('find what the system finds without a name server: addresses and names of the hosts file', async () => {
    const find = (name: string, family: 0 | 4 = 0) =>
      new Promise<LookupAddress[]>((resolve, reject) =>
        new LookupTurns().of('a', new AbortController().signal)(name, { all: true, family }, (error, all) => (error ? reject(error) : resolve(all))),
      )
    expect(await find('127.0.0.1')).to.deep.equal([{ address: '127.0.0.1', family: 4 }])
    expect(await find('::1')).to.deep.equal([{ address: '::1', family: 6 }])
    expect(await find('localhost', 4)).to.deep.equal([{ address: '127.0.0.1', family: 4 }])
  })

  it('fail while a file of the system cannot be read, where another address may stand', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'mesh-etc-'))
    try {
      mkdirSync(join(directory, 'hosts'))
      writeFileSync(join(directory, 'resolv.conf'), 'nameserver 127.0.0.1\n')
      const failed = (name: string) =>
        new Promise<string>((resolve) => lookUpIn(directory)(name, options, (error) => resolve(String(error?.message)), new AbortController().signal))
      expect(await failed('keys.test')).to.equal(`${join(directory, 'hosts')}: is not a file`)
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  it('end with their fetch, and fail', async () => {
    const ending = new AbortController()
    const failed = new Promise<string>((resolve) =>
      new LookupTurns().of('a', ending.signal)('name.of.a.silent.server.test', options, (error) => resolve(String(error))),
    )
    ending.abort()
    expect(await failed).to.match(/abort|ECANCELLED/)
  })
})
