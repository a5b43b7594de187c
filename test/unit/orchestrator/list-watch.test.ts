import { expect } from 'chai'
import fc from 'fast-check'
import { type Listed, ListWatch, type WatchAction, type WatchInput, type WatchRequest } from '../../../src/orchestrator/list-watch.ts'
import { runs } from '../../harness/seed.ts'

type Item = string

/** What follows from the actions: the objects as somebody who is told of them has them. */
class Told {
  readonly objects = new Map<string, Item>()
  readonly machine = new ListWatch<Item>()
  request: WatchRequest | undefined
  pauses: number[] = []
  audits: number[] = []
  auditRequests = 0
  isWaiting = false
  completions = 0

  tell(input: WatchInput<Item>): readonly WatchAction<Item>[] {
    const actions = this.machine.take(input)
    for (const action of actions) {
      if (action.type === 'set') this.objects.set(action.key, action.object)
      else if (action.type === 'remove') expect(this.objects.delete(action.key), `${action.key} is told once`).to.equal(true)
      else if (action.type === 'request') this.request = action.request
      else if (action.type === 'pause') {
        this.request = undefined
        this.pauses.push(action.failures)
      } else if (action.type === 'audited') this.audits.push(action.missed)
      else if (action.type === 'auditRequest') this.auditRequests++
      else if (action.type === 'auditWait') this.isWaiting = true
      else if (action.type === 'complete') this.completions++
    }
    return actions
  }

  get state(): Record<string, Item> {
    return Object.fromEntries([...this.objects].sort())
  }
}

const item = (key: string, version: number | string): Listed<Item> => ({ key, version: `${version}`, object: `${key}${version}` })
const event = (key: string, version: number, isGone = false): WatchInput<Item> => ({ type: 'event', isGone, item: item(key, version) })
const bookmark = (version: number, endsList = false): WatchInput<Item> => ({ type: 'bookmark', version: `${version}`, endsList })
const page = (items: readonly Listed<Item>[], version: string, next: string): WatchInput<Item>[] => [
  ...items.map((each) => ({ type: 'listed', item: each }) as const),
  { type: 'page', version, next },
]
const due: WatchInput<Item> = { type: 'due' }
const broken: WatchInput<Item> = { type: 'broken', reason: 'lost' }
const silent: WatchInput<Item> = { type: 'silent', reason: 'silent' }
const refused = (code: number, askedMs = 0): WatchInput<Item> => ({ type: 'refused', refusal: { code, reason: 'no', askedMs } })

/** One that watches after a streamed list of `a` and `b` at version 5. */
function watching(): Told {
  const told = new Told()
  for (const input of [due, event('a', 3), event('b', 5), bookmark(5, true)]) told.tell(input)
  return told
}

describe('a list and watch', () => {
  it('begins with a streamed list, and withdraws only after the end of a list what it did not mention', () => {
    const told = watching()
    expect([told.state, told.completions]).to.deep.equal([{ a: 'a3', b: 'b5' }, 1])
    told.tell(broken)
    told.tell(due)
    expect(told.request).to.deep.equal({ mode: 'watch', version: '5' })
    for (const input of [refused(410), due]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'stream' })
    told.tell(event('a', 8))
    expect(told.state).to.deep.equal({ a: 'a8', b: 'b5' })
    // A list that breaks off withdraws nothing.
    for (const input of [broken, due]) told.tell(input)
    expect(told.state).to.deep.equal({ a: 'a8', b: 'b5' })
    for (const input of [event('a', 8), bookmark(9, true)]) told.tell(input)
    expect(told.state).to.deep.equal({ a: 'a8' })
  })

  it('lists pages from a server that does not end a streamed list, and asks for a streamed one the next time', () => {
    const told = new Told()
    for (const input of [due, { type: 'opened' } as const, event('a', 3), silent]) told.tell(input)
    expect([told.request, told.pauses]).to.deep.equal([{ mode: 'page', next: '' }, []])
    for (const input of page([item('b', 4)], '5', '')) told.tell(input)
    expect([told.state, told.completions, told.request]).to.deep.equal([{ b: 'b4' }, 1, { mode: 'watch', version: '5' }])
    // A silent watch is begun again after a pause.
    told.tell(silent)
    expect(told.pauses).to.deep.equal([1])
    for (const input of [due, refused(410), due]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'stream' })
  })

  it('lists pages from a server that refuses streamed lists, then and later', () => {
    const told = new Told()
    for (const input of [due, refused(422)]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'page', next: '' })
    for (const input of page([item('a', 3)], '5', 'more')) told.tell(input)
    expect([told.request, told.completions]).to.deep.equal([{ mode: 'page', next: 'more' }, 0])
    for (const input of page([item('b', 4)], '5', '')) told.tell(input)
    expect([told.request, told.completions]).to.deep.equal([{ mode: 'watch', version: '5' }, 1])
    for (const input of [broken, due, refused(410), due]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'page', next: '' })
    // The token of a page has expired: the list begins anew.
    for (const input of page([item('a', 3)], '9', 'more')) told.tell(input)
    for (const input of [refused(410), due]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'whole' })
    expect(told.state).to.deep.equal({ a: 'a3', b: 'b4' })
  })

  it('lists everything in one piece where the rest of a list in pages has expired, and in pages again where that breaks', () => {
    const told = new Told()
    const first = [due, refused(422), ...page([item('a', 3)], '5', 'more')]
    for (const input of [...first, refused(410), due]) told.tell(input)
    expect([told.request, told.pauses]).to.deep.equal([{ mode: 'whole' }, [1]])
    // The server may have no time for an answer as long.
    for (const input of [{ type: 'listed', item: item('a', 3) } as const, broken, due]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'page', next: '' })
    for (const input of [...page([item('a', 3)], '6', 'more'), refused(410), due]) told.tell(input)
    expect([told.request, told.pauses]).to.deep.equal([{ mode: 'whole' }, [1, 2, 3]])
    for (const input of page([item('a', 3), item('b', 7)], '7', '')) told.tell(input)
    expect([told.request, told.state]).to.deep.equal([
      { mode: 'watch', version: '7' },
      { a: 'a3', b: 'b7' },
    ])
    // The next list is another one; its first page is no rest.
    for (const input of [bookmark(8), refused(410)]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'page', next: '' })
    for (const input of [refused(410), due]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'page', next: '' })
  })

  it('waits longer each time that the server has nothing as old as the list that it has just sent', () => {
    for (const streams of [true, false]) {
      const told = new Told()
      told.tell(due)
      if (!streams) told.tell(refused(422))
      const list = (version: number) => (streams ? [event('a', 3), bookmark(version, true)] : page([item('a', 3)], `${version}`, ''))
      for (const version of [5, 6, 7]) for (const input of [...list(version), refused(410), due]) told.tell(input)
      expect(told.pauses).to.deep.equal([1, 2, 3])
      // A watch that tells something ends that.
      for (const input of [...list(8), bookmark(9), refused(410)]) told.tell(input)
      expect([told.pauses, told.request?.mode]).to.deep.equal([[1, 2, 3], streams ? 'stream' : 'page'])
      for (const input of [...list(9), refused(410)]) told.tell(input)
      expect(told.pauses).to.deep.equal([1, 2, 3, 1])
    }
  })

  it('resumes after the last event or bookmark, at once when the server ends a watch in order', () => {
    const told = watching()
    told.tell(event('a', 7))
    told.tell({ type: 'ended' })
    expect(told.request).to.deep.equal({ mode: 'watch', version: '7' })
    for (const input of [bookmark(12), { type: 'ended' } as const]) told.tell(input)
    expect([told.request, told.pauses]).to.deep.equal([{ mode: 'watch', version: '12' }, []])
    // A watch that ends before anything came is no reason to ask again at once.
    told.tell({ type: 'ended' })
    expect([told.request, told.pauses]).to.deep.equal([undefined, [1]])
  })

  it('ignores events that come twice or late, of removed objects too', () => {
    const told = watching()
    for (const input of [event('a', 9), event('a', 9), event('a', 7), event('b', 8, true), event('b', 6), event('b', 8, true)]) told.tell(input)
    expect(told.state).to.deep.equal({ a: 'a9' })
    // Versions are compared as numbers: 10 is newer than 9.
    for (const input of [event('a', 10), event('b', 11)]) told.tell(input)
    expect(told.state).to.deep.equal({ a: 'a10', b: 'b11' })
  })

  it('waits longer with each failure until the server sends something, and as long as it asks', () => {
    const told = watching()
    for (const input of [broken, due, broken, due, { type: 'opened' } as const, broken, due]) told.tell(input)
    expect(told.pauses).to.deep.equal([1, 2, 3])
    for (const input of [event('a', 9), broken, due]) told.tell(input)
    expect(told.pauses).to.deep.equal([1, 2, 3, 1])
    const actions = told.tell(refused(429, 7000))
    expect(actions.at(-1)).to.deep.equal({ type: 'pause', failures: 2, askedMs: 7000 })
  })

  it('keeps its state while it is forbidden, and says when that is over', () => {
    const told = watching()
    for (const input of [broken, due]) told.tell(input)
    const [failed] = told.tell(refused(403))
    expect(failed).to.deep.equal({ type: 'failed', refusal: { code: 403, reason: 'no', askedMs: 0 }, reason: 'no' })
    expect(told.state).to.deep.equal({ a: 'a3', b: 'b5' })
    told.tell(due)
    expect(told.tell({ type: 'opened' })).to.deep.equal([{ type: 'recovered' }])
    expect(told.tell(event('a', 6))).to.deep.equal([{ type: 'set', key: 'a', object: 'a6', isNew: false }])
  })

  it('keeps the last state of an object that cannot be used, and takes the next one that can', () => {
    const told = watching()
    told.tell({ type: 'event', isGone: false, item: { key: 'a', version: '6', object: undefined } })
    expect(told.state.a).to.equal('a3')
    told.tell(event('a', 7))
    expect(told.state.a).to.equal('a7')
  })

  it('waits longer with each list that breaks in its middle, and says that it is over when one was read whole', () => {
    const told = new Told()
    const types = (input: WatchInput<Item>) => told.tell(input).map(({ type }) => type)
    for (const input of [due, { type: 'opened' } as const, event('a', 3)]) expect(types(input)).not.to.include('recovered')
    for (const input of [broken, due, { type: 'opened' } as const, event('a', 3), broken, due]) expect(types(input)).not.to.include('recovered')
    for (const input of [...page([item('a', 3)], '5', 'more'), broken, due, ...page([item('a', 3)], '5', 'more')])
      expect(types(input)).not.to.include('recovered')
    expect(told.pauses).to.deep.equal([1, 2, 3])
    expect(types({ type: 'page', version: '5', next: '' })).to.deep.equal(['recovered', 'complete', 'request'])
    told.tell(broken)
    expect(told.pauses).to.deep.equal([1, 2, 3, 1])
  })

  it('lists pages after two streamed lists in a row that broke without their end', () => {
    const told = new Told()
    // A request that the server did not accept is no list that broke.
    for (const input of [due, broken, due, refused(503), due, { type: 'opened' } as const, broken, due]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'stream' })
    // One that ends in order starts the count anew.
    for (const input of [event('a', 3), bookmark(5, true), refused(410), due, { type: 'opened' } as const, { type: 'ended' } as const, due])
      told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'stream' })
    for (const input of [event('a', 3), broken, due]) told.tell(input)
    expect(told.request).to.deep.equal({ mode: 'page', next: '' })
  })

  it('does not continue after a version that is no number', () => {
    const told = watching()
    for (const version of ['', 'x', '-1', '7.5', '07']) {
      told.tell({ type: 'bookmark', version, endsList: false })
      expect(told.machine.version).to.equal('5')
      told.tell({ type: 'event', isGone: false, item: item('a', version) })
      expect(told.machine.version).to.equal('5')
    }
    told.tell(bookmark(6))
    expect(told.machine.version).to.equal('6')
    const begun = new Told()
    for (const input of [due, event('a', 3), { type: 'bookmark', version: '', endsList: true } as const]) begun.tell(input)
    expect([begun.completions, begun.pauses]).to.deep.equal([0, [1]])
  })

  describe('audits', () => {
    const audit = (told: Told, versions: Record<string, number>, version: number, meanwhile: readonly WatchInput<Item>[] = []) => {
      told.tell({ type: 'auditDue' })
      const page = Object.entries(versions).map(([key, of]) => [key, `${of}`] as const)
      told.tell({ type: 'auditPage', versions: new Map(page.slice(0, 1)), version: `${version}`, next: 'more' })
      told.tell({ type: 'auditPage', versions: new Map(page.slice(1)), version: `${version}`, next: '' })
      for (const input of meanwhile) told.tell(input)
      told.tell({ type: 'auditSettled' })
    }

    it('find nothing where the watch told everything, also during the audit', () => {
      const told = watching()
      audit(told, { a: 3, b: 5 }, 6)
      audit(told, { a: 8, c: 7 }, 8, [event('c', 7), event('b', 7, true), event('a', 8)])
      // An object that was added after the list.
      audit(told, { a: 8, c: 7 }, 8, [event('d', 9)])
      expect([told.audits, told.auditRequests]).to.deep.equal([[0, 0, 0], 6])
    })

    it('count what the watch did not tell, and have everything listed again', () => {
      for (const [listed, missed] of [
        [{ a: 6, b: 5 }, 1],
        [{ a: 3 }, 1],
        [{ a: 3, b: 5, c: 4, d: 6 }, 2],
      ] as const) {
        const told = watching()
        audit(told, listed, 7)
        expect([told.audits, told.request]).to.deep.equal([[missed], { mode: 'stream' }])
        for (const [key, version] of Object.entries(listed)) told.tell(event(key, version))
        told.tell(bookmark(7, true))
        expect(Object.keys(told.state)).to.deep.equal(Object.keys(listed))
        audit(told, listed, 7)
        expect(told.audits).to.deep.equal([missed, 0])
      }
    })

    it('recognise a store that was restored, whose versions are older', () => {
      const told = watching()
      audit(told, { a: 2 }, 2)
      expect(told.request).to.deep.equal({ mode: 'stream' })
      for (const input of [event('a', 2), bookmark(2, true)]) told.tell(input)
      expect(told.state).to.deep.equal({ a: 'a2' })
    })

    it('recognise a store that was restored without objects', () => {
      const told = watching()
      audit(told, {}, 2)
      expect([told.audits, told.request]).to.deep.equal([[2], { mode: 'stream' }])
      told.tell(bookmark(2, true))
      expect(told.state).to.deep.equal({})
    })

    it('are abandoned when everything is listed again', () => {
      for (const relist of [[refused(410)], [broken, due, refused(410), due]]) {
        const told = watching()
        told.tell({ type: 'auditDue' })
        if (relist.length === 1) told.tell(bookmark(6))
        const actions = relist.flatMap((input) => told.tell(input)).map(({ type }) => type)
        expect(actions.slice(actions.indexOf('auditAbandoned'))).to.deep.equal(['auditAbandoned', 'request'])
        expect(told.request).to.deep.equal({ mode: 'stream' })
        // The next list has nothing to abandon.
        for (const input of [event('a', 3), bookmark(9, true)]) told.tell(input)
        expect(told.tell(refused(410)).map(({ type }) => type)).not.to.include('auditAbandoned')
      }
    })

    it('list everything in one piece where the rest of their list has expired', () => {
      const told = watching()
      const gone = { type: 'auditFailed', refusal: { code: 410, reason: 'gone', askedMs: 0 }, reason: 'gone' } as const
      told.tell({ type: 'auditDue' })
      told.tell({ type: 'auditPage', versions: new Map([['x', '1']]), version: '5', next: 'more' })
      expect(told.tell(gone)).to.deep.equal([{ type: 'auditRequest', request: { mode: 'whole' } }])
      told.tell({
        type: 'auditPage',
        versions: new Map([
          ['a', '3'],
          ['b', '5'],
        ]),
        version: '6',
        next: '',
      })
      told.tell({ type: 'auditSettled' })
      expect(told.audits).to.deep.equal([0])
      told.tell({ type: 'auditDue' })
      expect(
        told.tell(gone).map(({ type }) => type),
        'a first page',
      ).to.deep.equal(['auditFailed'])
    })

    it('say why their list failed', () => {
      const told = watching()
      const refusal = { code: 403, reason: 'no', askedMs: 0 }
      told.tell({ type: 'auditDue' })
      expect(told.tell({ type: 'auditFailed', refusal, reason: 'no' })).to.deep.equal([{ type: 'auditFailed', refusal, reason: 'no' }])
      // Without an audit nothing can fail.
      expect(told.tell({ type: 'auditFailed', refusal, reason: 'no' })).to.deep.equal([])
      audit(told, { a: 3, b: 5 }, 6)
      expect(told.audits).to.deep.equal([0])
    })

    it('end without a result when their list fails, or everything is listed meanwhile', () => {
      const told = watching()
      for (const input of [{ type: 'auditDue' }, { type: 'auditFailed', refusal: undefined, reason: 'lost' }, { type: 'auditSettled' }] as const)
        told.tell(input)
      for (const input of [{ type: 'auditDue' } as const, broken, due, refused(410), due, bookmark(9, true)]) told.tell(input)
      told.tell({ type: 'auditSettled' })
      expect(told.audits).to.deep.equal([])
    })
  })

  it('has, after any history of changes, losses, repetitions and disorder, what the server has', () => {
    const step = fc.oneof(
      { weight: 8, arbitrary: fc.record({ type: fc.constant('change' as const), key: fc.constantFrom('a', 'b', 'c', 'd'), isGone: fc.boolean() }) },
      { weight: 4, arbitrary: fc.record({ type: fc.constant('deliver' as const), at: fc.nat(3) }) },
      ...(['lose', 'repeat', 'bookmark', 'break', 'end', 'compact', 'forbid', 'audit'] as const).map((type) => ({
        weight: 1,
        arbitrary: fc.record({ type: fc.constant(type) }),
      })),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.boolean(), (steps, streams) => {
        const server = new HostileServer(streams)
        for (const each of steps) server.step(each)
        server.calm()
        expect(server.told.state).to.deep.equal(server.state)
      }),
      { numRuns: runs(2000) },
    )
  })
})

type Step = { readonly type: string; readonly key?: string; readonly isGone?: boolean; readonly at?: number }

/** A server with a client behind a relay that loses, repeats and reorders the events of a watch. */
class HostileServer {
  readonly told = new Told()
  readonly #streams: boolean
  #version = 10
  #oldest = 0
  readonly #objects = new Map<string, number>()
  readonly #history: { readonly version: number; readonly input: WatchInput<Item> }[] = []
  /** What was sent and has not arrived. */
  #way: WatchInput<Item>[] = []
  #last: WatchInput<Item> | undefined
  #served: WatchRequest | undefined

  constructor(streams: boolean) {
    this.#streams = streams
    this.told.tell(due)
    this.#serve()
  }

  get state(): Record<string, Item> {
    return Object.fromEntries([...this.#objects].map(([key, version]) => [key, `${key}${version}`] as const).sort())
  }

  step({ type, key = 'a', isGone = false, at = 0 }: Step): void {
    if (type === 'change') this.#change(key, isGone)
    else if (type === 'deliver') this.#deliver(at)
    else if (type === 'lose' && this.told.request?.mode === 'watch') this.#way.shift()
    else if (type === 'repeat' && this.#last) this.#way.push(this.#last)
    else if (type === 'bookmark') this.#send(bookmark(this.#version))
    else if (type === 'break') this.#stop(broken)
    else if (type === 'end') this.#stop({ type: 'ended' })
    else if (type === 'compact') this.#oldest = this.#version
    else if (type === 'forbid') this.#stop(refused(403))
    else if (type === 'audit') this.#audit()
    this.#serve()
  }

  /** No more disturbance: everything arrives, and an audit follows. */
  calm(): void {
    const all = () => {
      for (let left = 1000; (this.#way.length > 0 || this.told.request === undefined) && left > 0; left--) {
        if (this.told.request === undefined) this.told.tell(due)
        this.#serve()
        this.#deliver(0)
        this.#serve()
      }
    }
    all()
    this.#audit()
    all()
    this.#audit()
    expect(this.told.audits.at(-1)).to.equal(0)
  }

  #change(key: string, isGone: boolean): void {
    if (isGone && !this.#objects.has(key)) return
    this.#version++
    if (isGone) this.#objects.delete(key)
    else this.#objects.set(key, this.#version)
    const input = event(key, this.#version, isGone)
    this.#history.push({ version: this.#version, input })
    this.#send(input)
  }

  #send(input: WatchInput<Item>): void {
    if (this.#served && this.#served.mode !== 'page' && this.#served.mode !== 'whole') this.#way.push(input)
  }

  #deliver(at: number): void {
    const [input] = this.#way.splice(Math.min(at, Math.max(0, this.#way.length - 1)), 1)
    if (!input) return
    this.#last = input
    this.told.tell(input)
  }

  #stop(input: WatchInput<Item>): void {
    if (!this.#served) return
    this.#forget()
    this.told.tell(input)
    if (this.told.request === undefined) this.told.tell(due)
  }

  #forget(): void {
    this.#served = undefined
    this.#way = []
  }

  /** Answers a new request. */
  #serve(): void {
    const { request } = this.told
    if (request === this.#served) return
    this.#forget()
    if (!request) {
      this.told.tell(due)
      return this.#serve()
    }
    this.#served = request
    const listed = [...this.#objects].map(([key, version]) => item(key, version))
    if (request.mode === 'stream' && !this.#streams) this.#way.push(refused(422))
    else if (request.mode === 'stream') {
      for (const each of listed) this.#way.push({ type: 'event', isGone: false, item: each })
      // The end of the list comes first where the relay changes the order: what is missing then is for the audit.
      this.#way.push(bookmark(this.#version, true))
    } else if (request.mode === 'page') {
      const next = request.next === '' ? 'more' : ''
      this.#way.push(
        ...page(
          listed.filter((_, index) => (index % 2 === 0) === (next !== '')),
          `${this.#version}`,
          next,
        ),
      )
    } else if (request.mode === 'whole') this.#way.push(...page(listed, `${this.#version}`, ''))
    else if (Number(request.version) < this.#oldest) this.#way.push(refused(410))
    else for (const { version, input } of this.#history) if (version > Number(request.version)) this.#way.push(input)
  }

  #audit(): void {
    const before = this.told.auditRequests
    this.told.tell({ type: 'auditDue' })
    if (this.told.auditRequests === before) return
    const versions = new Map([...this.#objects].map(([key, version]) => [key, `${version}`]))
    this.told.tell({ type: 'auditPage', versions, version: `${this.#version}`, next: '' })
    this.told.tell({ type: 'auditSettled' })
    this.#serve()
  }
}
