import { expect } from 'chai'
import { classGraceMs, EmptyClasses } from '../../../../src/push/classes/empty-classes.ts'

describe('classes without connections', () => {
  it('expire some time after their last connection closed, unless they have connections again', () => {
    const classes = new EmptyClasses()
    classes.add('a', 100)
    classes.add('b', 100)
    classes.add('a', 2000)
    expect(classes.expired(99 + classGraceMs)).to.deep.equal([])
    classes.delete('b')
    expect(classes.expired(100 + classGraceMs)).to.deep.equal(['a'])
    expect([classes.has('a'), classes.has('b')]).to.deep.equal([true, false])
    classes.add('b', 3000)
    expect(classes.expired(100 + classGraceMs)).to.deep.equal(['a'])
  })
})
