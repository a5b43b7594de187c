import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { FetchThread } from '../../actors/http/fetch-thread.ts'
import { fetchBounds } from '../../actors/http/key-set-fetch.ts'
import { Owner } from '../../actors/runtime/owner.ts'
import { until } from '../harness/until.ts'

const told = new URL('./parts/told-fetch.ts', import.meta.url)
const bounds = { timeoutMs: 60_000, bytes: 1000, redirects: 0, allowed: '', authorities: [] }
const threads = () => readdirSync('/proc/self/task').length

describe('a thread that fetches', () => {
  let thread = new FetchThread(told)
  beforeEach(() => {
    thread = new FetchThread(told)
  })
  afterEach(() => thread.close())
  /** Asks for a document. Resolves with it, or with the reason why there is none. */
  const fetch = (asker: string, url: string, more: { begun?: () => void; signal?: AbortSignal } = {}) =>
    thread.fetch({ asker, kind: 'key-set', url, bounds, ...more }).catch((error: Error) => error.message)
  /** Asks for documents that never arrive. Returns how many fetches have begun. */
  const begin = (asker: string, number: number) => {
    let begun = 0
    for (let index = 0; index < number; index++) void fetch(asker, 'slow:', { begun: () => begun++ })
    return begun
  }

  it('is started by the first fetch, and answers with the document or the reason', async () => {
    const before = threads()
    new FetchThread(told).close()
    expect(threads()).to.equal(before)
    expect(await Promise.all([fetch('a', 'x:1'), fetch('a', 'fail:'), fetch('b', 'x:2')])).to.deep.equal(['x:1', 'refused', 'x:2'])
    expect(threads()).to.be.above(before)
  })

  it('has 32 fetches at once, of which an asker has as many as it leaves free', async () => {
    expect([begin('a', 100), begin('b', 100), begin('c', 100), begin('d', 100), begin('e', 100)]).to.deep.equal([16, 8, 4, 2, 1])
    expect(await fetch('victim', 'x:')).to.equal('x:')
  })

  it('is ended when one fetch blocks it: this fetch fails, and the others begin again', async () => {
    let again = 0
    const slow = fetch('a', 'slow:', { begun: () => again++ })
    const [blocked, other] = [fetch('a', 'block:'), fetch('b', 'x:1')]
    expect(await blocked).to.equal('its certificates or its content took longer than 2000 ms to check')
    expect([await other, await fetch('b', 'x:2'), again]).to.deep.equal(['x:1', 'x:2', 1])
    thread.close()
    expect(await slow).to.equal('the service stops')
  })

  it('that dies fails only the fetch that it died for', async () => {
    const died = fetch('a', 'die:')
    expect(await Promise.all([fetch('b', 'x:1'), fetch('b', 'x:2')])).to.deep.equal(['x:1', 'x:2'])
    expect(await died).to.match(/^its thread ended: /)
  })

  it('lets an asker wait whose fetches blocked it for long, and no other one; meanwhile a fetch may be given up', async () => {
    await fetch('a', 'cost:2100')
    const [gone, begun] = [new AbortController(), [] as string[]]
    const [first, second] = ['first', 'second'].map((name) => {
      const more = name === 'first' ? { signal: gone.signal } : {}
      return fetch('a', `x:${name}`, { begun: () => begun.push(name), ...more })
    })
    gone.abort()
    for (let index = 0; index < 20; index++) await fetch('b', `x:${index}`)
    expect(begun).to.deep.equal([])
    expect([await first, await second, begun]).to.deep.equal(['it is not needed any more', 'x:second', ['second']])
  })

  it('rejects fetches that wait or are under way when it is closed, and ends', async () => {
    const before = threads()
    const open = [fetch('a', 'slow:'), fetch('a', 'block:'), ...Array.from({ length: 40 }, () => fetch('a', 'slow:'))]
    thread.close()
    expect(new Set(await Promise.all(open))).to.deep.equal(new Set(['the service stops']))
    await until('its thread to end', () => threads() <= before)
    expect(await fetch('a', 'x:')).to.equal('the service stops')
  })

  it('ends with the actor that started it', async () => {
    const owner = new Owner(() => undefined)
    const owned = owner.run(() => new FetchThread(told))
    const open = owned.fetch({ asker: 'a', kind: 'key-set', url: 'slow:', bounds }).catch((error: Error) => error.message)
    owner.end()
    expect(await open).to.equal('the service stops')
  })
})

describe('the bounds of fetches', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-bounds-'))
  after(() => rmSync(dir, { recursive: true }))
  const boundsOf = (name: string, allowed = '') => {
    const refused: string[] = []
    const { authorities, allowed: used } = fetchBounds(1, allowed, (reason) => refused.push(reason), join(dir, name))
    return { authorities, used, refused }
  }

  it('have the certificates of a file that is there, and say when it cannot be read', () => {
    writeFileSync(join(dir, 'good.pem'), 'roots')
    symlinkSync(join(dir, 'loop.pem'), join(dir, 'loop.pem'))
    expect(boundsOf('good.pem').authorities).to.deep.equal(['roots'])
    expect(boundsOf('none.pem')).to.deep.equal({ authorities: [], used: '', refused: [] })
    const unreadable = boundsOf('loop.pem')
    expect(unreadable.authorities).to.deep.equal([])
    expect(unreadable.refused.join()).to.match(/loop\.pem: ELOOP.*; its certificates are not used for fetches$/)
  })

  it('allow no special address when the setting is invalid', () => {
    expect(boundsOf('none.pem', '127.0.0.1').used).to.equal('127.0.0.1')
    const { used, refused } = boundsOf('none.pem', '127.0.0.1,x')
    expect([used, refused.length]).to.deep.equal(['', 1])
  })
})
