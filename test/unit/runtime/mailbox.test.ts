import { expect } from 'chai'
import fc from 'fast-check'
import { isMark, Mailbox } from '../../../actors/runtime/mailbox.ts'
import { ObjectRegister } from '../../../actors/runtime/register.ts'
import type { Entry, Keyed } from '../../../protocols/messages/envelope.ts'
import { runs } from '../../harness/seed.ts'

/** A message of a source about an object: a value, or that the object is gone. */
interface Said {
  readonly key: string
  readonly value: number | undefined
}

/** Keeps objects like an actor whose runtime withdraws them. */
class Receiver {
  readonly state = new Map<string, number>()
  readonly withdrawn: { replay: number; key: string }[] = []
  readonly #register = new ObjectRegister<Said>({
    objectOf: ({ key, value }) => ({ key, there: value !== undefined }),
    withdrawal: (key) => ({ key, value: undefined }),
  })

  take(entry: Entry): void {
    if (!isMark(entry)) {
      const said = entry[1] as Said
      this.#register.heard(said)
      this.#apply(said)
    } else if (entry.mark === 'begin') {
      this.#register.begin(entry.replay)
    } else {
      for (const said of this.#register.end(entry.replay, entry.complete ?? true) ?? []) {
        this.withdrawn.push({ replay: entry.replay, key: said.key })
        this.#apply(said)
      }
    }
  }

  #apply({ key, value }: Said): void {
    if (value === undefined) this.state.delete(key)
    else this.state.set(key, value)
  }
}

const keys = ['a', 'b', 'c', 'd']
type Step = { key: string; gone: boolean } | 'begin' | 'finish' | 'take'
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ key: fc.constantFrom(...keys), gone: fc.boolean() }) },
    { weight: 1, arbitrary: fc.constant('begin' as const) },
    { weight: 1, arbitrary: fc.constant('finish' as const) },
    { weight: 4, arbitrary: fc.constant('take' as const) },
  ),
  { maxLength: 120 },
)

/** Returns the entries a sender emits for these steps, with replays numbered as a link numbers them. The last replay is finished. */
function sending(list: readonly Step[]): (Entry | 'take')[] {
  const sent: (Entry | 'take')[] = []
  let replay = 0
  let open = false
  let value = 0
  const finish = () => {
    if (open) sent.push({ mark: 'end', replay })
    open = false
  }
  for (const step of list) {
    if (step === 'take') sent.push('take')
    else if (step === 'finish') finish()
    else if (step === 'begin') {
      sent.push({ mark: 'begin', replay: ++replay })
      open = true
    } else sent.push([step.key, { key: step.key, value: step.gone ? undefined : ++value } satisfies Said])
  }
  finish()
  return sent
}

describe('a mailbox', () => {
  it('holds each key once, with its newest message, in the order of the newest', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', ''), fc.integer())), (messages) => {
        const mailbox = new Mailbox()
        const removed = messages.map(([key, value]) => mailbox.put([key, value])).reduce((sum, count) => sum + count, 0)
        const taken: Entry[] = []
        for (let next = mailbox.take(); next; next = mailbox.take()) taken.push(next)
        const expected = messages.filter(([key], index) => key === '' || messages.findLastIndex(([other]) => other === key) === index)
        expect(taken).to.deep.equal(expected)
        expect(removed + taken.length).to.equal(messages.length)
      }),
    )
  })

  it('moves no message across the begin or end of a replay', () => {
    const mailbox = new Mailbox()
    const entries: Entry[] = [['a', 1], { mark: 'begin', replay: 1 }, ['a', 2], ['b', 2], { mark: 'end', replay: 1 }, ['a', 3]]
    for (const entry of entries) mailbox.put(entry)
    mailbox.put(['b', 3])
    mailbox.put(['a', 4])
    const taken: Entry[] = []
    for (let next = mailbox.take(); next; next = mailbox.take()) taken.push(next)
    expect(taken).to.deep.equal([...entries.slice(0, -1), ['b', 3], ['a', 4]])
  })

  it('leads to the same objects as without coalescing, through consecutive and superseded replays', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const mailbox = new Mailbox()
        const coalescing = new Receiver()
        const plain = new Receiver()
        for (const entry of sending(list)) {
          if (entry === 'take') {
            const next = mailbox.take()
            if (next) coalescing.take(next)
          } else {
            mailbox.put(entry)
            plain.take(entry)
          }
        }
        for (let next = mailbox.take(); next; next = mailbox.take()) coalescing.take(next)
        expect([...coalescing.state].sort()).to.deep.equal([...plain.state].sort())
      }),
      { numRuns: runs(3000) },
    )
  })

  it('withdraws nothing that a replay mentioned, keeps the order of each key, and is bounded', () => {
    fc.assert(
      fc.property(steps, (list) => {
        const mailbox = new Mailbox()
        const receiver = new Receiver()
        const script = sending(list)
        const sent = script.filter((entry) => entry !== 'take')
        const mentioned = new Map<number, Set<string>>()
        let replay = 0
        for (const entry of sent) {
          if (isMark(entry)) replay = entry.mark === 'begin' ? entry.replay : 0
          else mentioned.set(replay, (mentioned.get(replay) ?? new Set()).add(entry[0]))
        }
        const last = new Map<string, number>()
        const takeOne = () => {
          const next = mailbox.take()
          if (!next) return false
          receiver.take(next)
          if (!isMark(next)) {
            const at = sent.indexOf(next)
            expect(at).to.be.greaterThan(last.get(next[0]) ?? -1)
            last.set(next[0], at)
          }
          return true
        }
        for (const entry of script) {
          if (entry === 'take') takeOne()
          else mailbox.put(entry)
          expect(mailbox.size).to.be.at.most(4 * keys.length + 3)
        }
        while (takeOne());
        for (const { replay: number, key } of receiver.withdrawn) expect(mentioned.get(number)?.has(key) ?? false).to.equal(false)
      }),
      { numRuns: runs(1000) },
    )
  })

  it('can be cleared', () => {
    const mailbox = new Mailbox()
    for (const entry of [{ mark: 'begin', replay: 1 }, ['a', 1], { mark: 'end', replay: 1 }] as Entry[]) mailbox.put(entry)
    mailbox.clear()
    expect([mailbox.size, mailbox.take()]).to.deep.equal([0, undefined])
    mailbox.put({ mark: 'end', replay: 1 })
    expect(mailbox.take()).to.deep.equal({ mark: 'end', replay: 1 })
  })
})

describe('the withdrawal at the end of a replay', () => {
  const register = () =>
    new ObjectRegister<Keyed>({
      objectOf: ([key, there]) => (key === '' ? undefined : { key, there: there === true }),
      withdrawal: (key) => [key, false],
    })

  it('covers the known objects that the replay did not mention', () => {
    const known = register()
    for (const said of [
      ['a', true],
      ['b', true],
      ['c', true],
      ['c', false],
      ['', true],
    ] as Keyed[])
      known.heard(said)
    known.begin(1)
    known.heard(['a', true])
    expect(known.end(1, true)).to.deep.equal([['b', false]])
    known.begin(2)
    expect(known.end(2, true)).to.deep.equal([['a', false]])
  })

  it('ignores objects only mentioned as unchanged, and is empty if the sender could not read everything', () => {
    const known = new ObjectRegister<Keyed>({
      objectOf: ([key, there]) => ({ key, there: there === 'unchanged' ? there : there === true }),
      withdrawal: (key) => [key, false],
    })
    for (const key of ['a', 'b']) known.heard([key, true])
    known.begin(1)
    for (const key of ['a', 'never known']) known.heard([key, 'unchanged'])
    expect(known.end(1, false)).to.deep.equal([])
    known.begin(2)
    known.heard(['a', 'unchanged'])
    expect(known.end(2, true)).to.deep.equal([['b', false]])
    known.begin(3)
    expect(known.end(3, true)).to.deep.equal([['a', false]])
  })

  it('is empty if the replay was superseded, interrupted, or is not the current one', () => {
    const known = register()
    known.heard(['a', true])
    known.begin(1)
    known.begin(2)
    expect(known.end(1, true)).to.equal(undefined)
    known.interrupted()
    expect(known.end(2, true)).to.equal(undefined)
    known.begin(1)
    known.heard(['a', true])
    expect(known.end(1, true)).to.deep.equal([])
  })

  it('covers the parts of an object that the replay did not mention, and no others', () => {
    type Told = { key: string; part?: string; parts?: string[]; there: boolean }
    const known = new ObjectRegister<Told>({
      objectOf: (told) => told,
      withdrawal: (key, part) => (part === undefined ? { key, there: false } : { key, part, there: false }),
    })
    const whole = (key: string, ...parts: string[]): Told => ({ key, parts, there: true })
    const part = (key: string, name: string, there = true): Told => ({ key, part: name, there })
    const replay = (number: number, ...told: Told[]) => {
      known.begin(number)
      for (const each of told) known.heard(each)
      return known.end(number, true)
    }
    known.heard(part('a', 'of an object that is not known'))
    known.heard(whole('a', '1', '2', '3'))
    known.heard(part('a', '3', false))
    known.heard(part('a', '4'))
    known.heard(whole('b', '1'))
    expect(replay(1, part('a', '1'), part('b', '1')), 'parts alone').to.deep.equal([part('a', '2', false), part('a', '4', false)])
    expect(replay(2, { key: 'a', there: true }, part('b', '2')), 'an object without its parts').to.deep.equal([
      part('a', '1', false),
      part('b', '1', false),
    ])
    expect(replay(3, whole('a', '1'), part('a', '2'), whole('b', '2')), 'all parts').to.deep.equal([])
    expect(replay(4, part('a', '2'), { key: 'a', there: false }), 'an object that is gone').to.deep.equal([{ key: 'b', there: false }])
    known.heard(whole('a', '1', '2'))
    known.begin(5)
    known.heard(part('a', '1'))
    known.begin(6)
    known.heard(part('a', '2'))
    expect(known.end(6, true), 'a replay that was superseded in its middle').to.deep.equal([part('a', '1', false)])
  })
})
