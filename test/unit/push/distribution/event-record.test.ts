import { expect } from 'chai'
import { EventRecord } from '../../../../src/push/distribution/event-record.ts'

describe('the record of events', () => {
  const event = (nodeId: string, bytes = 1) => ({ kind: 'connect' as const, namespace: 'ns', nodeId, message: new Uint8Array(bytes) })
  const names = (record: EventRecord, cursor: string) => record.since(cursor).events.map(({ nodeId }) => nodeId)

  it('gives the events after a cursor', () => {
    const record = new EventRecord({ events: 10, bytes: 100 }, 'a')
    const start = record.cursor
    record.add(event('1'))
    const { cursor } = record.since(start)
    record.add(event('2'))
    expect(names(record, start)).to.deep.equal(['1', '2'])
    expect(names(record, cursor)).to.deep.equal(['2'])
    expect(names(record, record.cursor)).to.deep.equal([])
  })

  it('says that events are missing: dropped ones, a gap, the cursor of another record, no cursor at all', () => {
    const record = new EventRecord({ events: 2, bytes: 100 }, 'a')
    const start = record.cursor
    for (const name of ['1', '2', '3']) record.add(event(name))
    expect(record.since(start)).to.deep.include({ events: [], isGap: true })
    expect(record.since('b-3').isGap).to.equal(true)
    expect(record.since('nonsense').isGap).to.equal(true)
    const before = record.cursor
    record.gap()
    expect(record.since(before).isGap).to.equal(true)
    record.add(event('4'))
    expect(record.since(before).isGap).to.equal(true)
  })

  it('is bounded in bytes, too', () => {
    const record = new EventRecord({ events: 10, bytes: 10 }, 'a')
    const start = record.cursor
    record.add(event('1', 6))
    const { cursor } = record.since(start)
    record.add(event('2', 6))
    expect(names(record, cursor)).to.deep.equal(['2'])
    expect(record.since(start).isGap).to.equal(true)
  })
})
