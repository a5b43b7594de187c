import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { expect } from 'chai'
import fc from 'fast-check'
import { Link, linkWindow, type Peer } from '../../../actors/runtime/link.ts'
import { Links } from '../../../actors/runtime/links.ts'
import { until } from '../../harness/until.ts'

type Message = string

/** The links of one actor, with a record of the events that the links report. */
class Actor {
  readonly seen: string[] = []
  readonly peers: Link[] = []
  readonly links: Links<Message>

  constructor() {
    this.links = new Links<Message>(
      { objectOf: (message) => ({ key: message[0] as string, there: !message.endsWith('gone') }), withdrawal: (key) => `${key} gone` },
      {
        guard: (work) => work(),
        linked: (link) => {
          this.seen.push(`linked#${link.incarnation}`)
          this.peers.push(link)
        },
        unlinked: (link) => void this.seen.push(`unlinked#${link.incarnation}`),
        mail: () => {},
        receive: (message, from) => void this.seen.push(`${message}#${numberOf(from)}`),
        synced: (link) => void this.seen.push(`synced#${link.incarnation}`),
        forgotten: (peer) => void this.seen.push(`forgotten#${numberOf(peer)}`),
      },
    )
  }

  deliverAll(): void {
    while (this.links.deliverOne());
  }
}

/** The incarnation of a link; `-` for a peer without one. */
const numberOf = (peer: Peer) => (peer instanceof Link ? peer.incarnation : '-')

/** The peer's end of a link. */
function remote(incarnation: number): { link: Link; port: MessagePort; close(): Promise<void> } {
  const { port1, port2 } = new MessageChannel()
  const closed = Promise.withResolvers<void>()
  const link = new Link({ peer: 'actor', incarnation, port: port1, received: () => {}, closed: () => closed.resolve() })
  return {
    link,
    port: port2,
    close: async () => {
      link.close()
      await closed.promise
    },
  }
}

/** Lets ports deliver everything posted so far. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function permutations<T>(list: readonly T[]): T[][] {
  if (list.length <= 1) return [[...list]]
  return list.flatMap((item, index) => permutations(list.filter((_, other) => other !== index)).map((rest) => [item, ...rest]))
}

describe('links of an actor', () => {
  it('have at most one live link to a peer, in any order in which ports arrive and close', async () => {
    for (const order of permutations(['add1', 'add2', 'add3', 'close1', 'close2'])) {
      const actor = new Actor()
      const ends = new Map([1, 2, 3].map((number) => [String(number), remote(number)]))
      for (const step of order) {
        const end = ends.get(step.at(-1) as string) as ReturnType<typeof remote>
        if (step.startsWith('add')) actor.links.add('peer', end.link.incarnation, end.port)
        else await end.close()
        await settle()
      }
      const name = order.join(' ')
      let live = 0
      let newest = 0
      for (const event of actor.seen) {
        const number = Number(event.at(-1))
        if (event.startsWith('linked')) {
          expect([live, number > newest], name).to.deep.equal([0, true])
          live = newest = number
        } else {
          expect(number, name).to.equal(live)
          live = 0
        }
      }
      expect(live, name).to.equal(3)
      // The live link works in both directions.
      const last = ends.get('3') as ReturnType<typeof remote>
      last.link.tell('x')
      actor.peers.at(-1)?.tell('y')
      await settle()
      actor.deliverAll()
      expect(actor.seen.at(-1), name).to.equal('x#3')
      expect(last.link.take(), name).to.deep.equal(['', 'y'])
      actor.links.close()
      for (const end of ends.values()) end.link.close()
    }
  })

  it('never deliver a message of a dead link, and sending to it has no effect', async () => {
    const actor = new Actor()
    const [first, second] = [remote(1), remote(2)]
    actor.links.add('peer', 1, first.port)
    first.link.tell('a1')
    await settle()
    expect(actor.links.depth).to.equal(1)
    first.link.tell('b1')
    actor.links.add('peer', 2, second.port)
    await settle()
    actor.peers[0]?.tell('to the dead')
    actor.deliverAll()
    second.link.tell('c2')
    await settle()
    actor.deliverAll()
    expect(actor.seen).to.deep.equal(['linked#1', 'unlinked#1', 'linked#2', 'c2#2'])
    expect(actor.links.depth).to.equal(0)
    actor.links.close()
  })

  it('drop the mail of a dead peer before it is unlinked', async () => {
    const actor = new Actor()
    const first = remote(1)
    actor.links.add('peer', 1, first.port)
    first.link.tell('a1')
    await first.close()
    await until('the end of the link', () => actor.seen.includes('unlinked#1'))
    actor.deliverAll()
    expect(actor.seen).to.deep.equal(['linked#1', 'unlinked#1'])
  })

  it('withdraw at the end of a complete replay what the previous incarnation had sent, and nothing if the link dies', async () => {
    const actor = new Actor()
    const [first, second, third] = [remote(1), remote(2), remote(3)]
    actor.links.add('peer', 1, first.port)
    const opening = first.link.replay()
    for (const message of ['a', 'b', 'c']) first.link.tell(message)
    opening.finish()
    await settle()
    actor.deliverAll()
    actor.links.add('peer', 2, second.port)
    second.link.replay()
    second.link.tell('a')
    await settle()
    actor.deliverAll()
    actor.links.add('peer', 3, third.port)
    const replay = third.link.replay()
    third.link.tell('b')
    replay.finish()
    replay.finish()
    await settle()
    actor.deliverAll()
    expect(actor.seen).to.deep.equal(
      ['linked#1', 'a#1', 'b#1', 'c#1', 'synced#1', 'unlinked#1', 'linked#2', 'a#2', 'unlinked#2', 'linked#3', 'b#3'].concat([
        'a gone#3',
        'c gone#3',
        'synced#3',
      ]),
    )
    actor.links.close()
  })

  it('of a peer that was removed for good are forgotten with what it announced, in a replay, between links, and whatever arrives late', async () => {
    for (const when of ['live', 'replaying', 'dead'] as const) {
      const actor = new Actor()
      const [first, late, next] = [remote(1), remote(2), remote(4)]
      actor.links.add('peer', 1, first.port)
      const opening = first.link.replay()
      for (const message of ['a', 'b']) first.link.tell(message)
      if (when !== 'replaying') opening.finish()
      await settle()
      actor.deliverAll()
      first.link.tell('late mail')
      if (when === 'dead') await first.close()
      await settle()
      actor.seen.length = 0
      actor.links.forget('peer', 3)
      actor.links.add('peer', 2, late.port)
      actor.deliverAll()
      const from = when === 'dead' ? '-' : '1'
      const gone = [`a gone#${from}`, `b gone#${from}`, `forgotten#${from}`]
      expect(actor.seen, when).to.deep.equal(when === 'dead' ? gone : ['unlinked#1', ...gone])
      // Another actor with the name begins with nothing: what it does not mention was never announced.
      actor.seen.length = 0
      actor.links.add('peer', 4, next.port)
      const replay = next.link.replay()
      next.link.tell('b')
      replay.finish()
      await settle()
      actor.deliverAll()
      actor.links.forget('peer', 3)
      expect(actor.seen, when).to.deep.equal(['linked#4', 'b#4', 'synced#4'])
      actor.links.close()
    }
  })

  it('are served in turn: no link waits behind the mail of another', async () => {
    const actor = new Actor()
    const [one, other] = [remote(1), remote(2)]
    actor.links.add('one', 1, one.port)
    actor.links.add('other', 2, other.port)
    for (let index = 0; index < 1000; index++) one.link.tell(`m${index}`)
    await settle()
    other.link.tell('x')
    await settle()
    for (let index = 0; index < 3; index++) actor.links.deliverOne()
    expect(actor.seen).to.include('x#2')
    actor.links.close()
  })
})

describe('a link', () => {
  /** Two linked ends. Messages stay at the second until the test takes them. */
  const pair = () => {
    const { port1, port2 } = new MessageChannel()
    const end = (port: MessagePort) => new Link({ peer: 'other', incarnation: 1, port, received: () => {}, closed: () => {} })
    return [end(port1), end(port2)] as const
  }

  it('frees the window of every message, whether delivered, coalesced or dropped', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.integer({ min: 0, max: 3000 }), fc.boolean(), fc.boolean()), { maxLength: 8 }), async (bursts) => {
        const [sender, receiver] = pair()
        for (const [count, keyed, replayed] of bursts) {
          const replay = replayed ? sender.replay() : undefined
          for (let index = 0; index < count; index++) sender.tell(index, keyed ? `k${index % 50}` : '')
          if (count % 2 === 0) replay?.finish()
          await settle()
          for (let taken = 0; taken < count / 2 && receiver.take(); taken++);
        }
        await until('everything to be taken', async () => {
          await settle()
          while (receiver.take());
          await settle()
          return receiver.depth === 0
        })
        // The whole window is free again: exactly that many messages arrive without being taken.
        for (let index = 0; index < linkWindow + 100; index++) sender.tell(index)
        await until('a full window', () => receiver.depth >= linkWindow)
        await settle()
        expect(receiver.depth).to.equal(linkWindow)
        sender.close()
        receiver.close()
      }),
      { numRuns: 25 },
    )
  })

  it('keeps few messages for a slow peer, and delivers the newest of each key', async () => {
    const [sender, receiver] = pair()
    for (let index = 0; index < 100_000; index++) sender.tell(index, `k${index % 100}`)
    const newest = new Map<string, unknown>()
    let taken = 0
    await until('the newest', async () => {
      await settle()
      for (let entry = receiver.take(); entry; entry = receiver.take(), taken++) newest.set(...(entry as [string, unknown]))
      return newest.get('k99') === 99_999
    })
    expect(taken).to.be.lessThan(linkWindow + 200)
    for (let index = 0; index < 100; index++) expect(newest.get(`k${index}`)).to.equal(99_900 + index)
    sender.close()
    receiver.close()
  })

  it('does not finish a replay that was superseded', async () => {
    const [sender, receiver] = pair()
    const first = sender.replay()
    const second = sender.replay()
    first.finish()
    second.finish()
    await settle()
    expect([receiver.take(), receiver.take(), receiver.take()]).to.deep.equal([
      { mark: 'begin', replay: 2 },
      { mark: 'end', replay: 2, complete: true },
      undefined,
    ])
    sender.close()
    receiver.close()
  })
})
