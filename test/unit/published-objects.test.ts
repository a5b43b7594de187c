import { expect } from 'chai'
import { PublishedObjects } from '../../actors/discovery/push-queue/published-objects.ts'
import type { Peer } from '../../actors/runtime/link.ts'
import type { ConfigObject } from '../../protocols/data.ts'
import type { ObjectsPublished } from '../../protocols/messages/object-status.ts'

const key = 'VirtualService/ns/a'
const object = (uid: string, generation: number) => ({ uid, generation }) as ConfigObject

describe('the generations that the push queue tells of', () => {
  const held = new Map<string, ConfigObject>()
  const told: string[] = []
  const peer = {
    tell: ({ push, objects }: ObjectsPublished) =>
      told.push(...objects.map(({ key: of, uid, generation, isSame }) => `${push}: ${of} ${uid} ${generation}${isSame ? ' same' : ''}`)),
  } as unknown as Peer<ObjectsPublished>
  let push = 1
  const made = (isWanted = true) => new PublishedObjects({ get: (of) => held.get(of) }, () => push, isWanted)
  const said = () => told.splice(0)

  it('are those of the source, with the push after the change, and at once where nothing changes for proxies', () => {
    const published = made()
    published.linked(peer)
    // Labels have changed before, so that the generation in the snapshot is greater.
    held.set(key, object('u', 9))
    published.received(key, object('u', 2), 'source/orch', true)
    expect(said()).to.deep.equal([])
    push = 2
    published.published()
    expect(said()).to.deep.equal([`2: ${key} u 2`])
    published.received(key, object('u', 3), 'source/orch', false)
    expect(said()).to.deep.equal([`2: ${key} u 3 same`])
    published.received(key, object('u', 3), 'source/orch', false)
    published.published()
    expect(said()).to.deep.equal([])
    published.unlinked()
    published.received(key, object('u', 4), 'source/orch', true)
    published.linked(peer)
    expect(said(), 'the change is in no push yet').to.deep.equal([])
    push = 3
    published.published()
    expect(said()).to.deep.equal([`3: ${key} u 4`])
    const next = made()
    next.received(key, object('u', 4), 'source/orch', true)
    next.published()
    next.linked(peer)
    expect(said(), 'a writer that starts is told of all').to.deep.equal([`3: ${key} u 4`])
  })

  it('are those of the definition in force, and none of objects of files or that are gone', () => {
    const published = made()
    published.linked(peer)
    held.set(key, object('own', 1))
    published.received(key, object('own', 1), 'source/orch', true)
    published.received(key, object('alias', 5), 'source/other', false)
    published.published()
    expect(said()).to.deep.equal([`3: ${key} own 1`])
    held.set(key, object('', 2))
    published.changed(key)
    published.published()
    expect(said()).to.deep.equal([`3: ${key}  0`])
    held.delete(key)
    published.received(key, undefined, 'source/orch', true)
    published.published()
    expect(said()).to.deep.equal([`3: ${key}  0`])
    published.received('Pod/ns/a', object('p', 1), 'source/orch', true)
    published.published()
    expect(said()).to.deep.equal([])
    const off = made(false)
    off.linked(peer)
    off.received(key, object('own', 1), 'source/orch', true)
    off.published()
    expect(said()).to.deep.equal([])
  })
})
