import { expect } from 'chai'
import { count } from '../../../src/model/counts.ts'

describe('a text with a number', () => {
  it('has the singular for one thing and the plural for any other number', () => {
    expect([0, 1, 2, 1n, 2n].map((number) => count(number, 'object'))).to.deep.equal(['0 objects', '1 object', '2 objects', '1 object', '2 objects'])
    expect([1, 2].map((number) => count(number, 'proxy is', 'proxies are'))).to.deep.equal(['1 proxy is', '2 proxies are'])
  })
})
