import { expect } from 'chai'
import { Recent } from '../../../src/model/recent.ts'

describe('the last items of a list', () => {
  const item = (name: string, bytes = 1) => ({ name, bytes })
  type Item = ReturnType<typeof item>
  const listOf = (items: number, bytes: number) => new Recent<Item>({ items, bytes }, 'a', (each) => each.bytes)
  const names = (record: Recent<Item>, cursor: string) => record.since(cursor).items.map(({ name }) => name)

  it('gives the items after a cursor', () => {
    const record = listOf(10, 100)
    const start = record.cursor
    record.add(item('1'))
    const { cursor } = record.since(start)
    record.add(item('2'))
    expect(names(record, start)).to.deep.equal(['1', '2'])
    expect(names(record, cursor)).to.deep.equal(['2'])
    expect(names(record, record.cursor)).to.deep.equal([])
  })

  it('says that items are missing: dropped ones, a gap, the cursor of another record, no cursor at all', () => {
    const record = listOf(2, 100)
    const start = record.cursor
    for (const name of ['1', '2', '3']) record.add(item(name))
    expect(record.since(start)).to.deep.include({ items: [], isGap: true })
    expect(record.since('b-3').isGap).to.equal(true)
    expect(record.since('nonsense').isGap).to.equal(true)
    const before = record.cursor
    record.gap()
    expect(record.since(before).isGap).to.equal(true)
    record.add(item('4'))
    expect(record.since(before).isGap).to.equal(true)
  })

  it('is bounded in bytes, too', () => {
    const record = listOf(10, 10)
    const start = record.cursor
    record.add(item('1', 6))
    const { cursor } = record.since(start)
    record.add(item('2', 6))
    expect(names(record, cursor)).to.deep.equal(['2'])
    expect(record.since(start).isGap).to.equal(true)
  })

  it('keeps the last ones, however many there were', () => {
    const list = listOf(10, 1000)
    for (let index = 0; index < 1000; index++) {
      const { cursor } = list
      list.add(item(`${index}`))
      expect(names(list, cursor)).to.deep.equal([`${index}`])
      if (index >= 9) expect(names(list, `a-${index - 9}`)).to.deep.equal(Array.from({ length: 10 }, (_, at) => `${index - 9 + at}`))
      if (index >= 10) expect(list.since(`a-${index - 10}`).isGap).to.equal(true)
    }
  })
})
