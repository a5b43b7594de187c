import { expect } from 'chai'
import { FollowedTerm } from '../../../actors/discovery/leader/followed-term.ts'
import type { AskFor } from '../../../actors/runtime/actor.ts'
import { until } from '../../harness/until.ts'

describe('the term that an actor follows', () => {
  const followed = (answers: (number | Error)[]) => {
    const [terms, lines]: [number[], string[]] = [[], []]
    let asked = 0
    const ask = ((_, __, ___, known) => {
      asked++
      const answer = answers.shift()
      if (answer === undefined) return new Promise(() => undefined)
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer === -1 ? known : answer)
    }) as AskFor
    const log = { debug: () => undefined, info: (line: string) => lines.push(line), warn: () => undefined, error: (line: string) => lines.push(line) }
    const term: FollowedTerm = new FollowedTerm({ ask, duty: 'ingress', log, changed: () => terms.push(term.now) })
    return { term, terms, lines, asked: () => asked }
  }

  it('tells each change once, and asks on', async () => {
    const { term, terms, lines, asked } = followed([1, -1, 0, 2])
    await until('all answers', () => asked() === 5)
    expect([terms, lines]).to.deep.equal([[1, 0, 2], []])
    term.close()
  })

  it('keeps the term that is known while the question fails, says once why, and when it is known again', async () => {
    const { term, terms, lines, asked } = followed([3, new Error('nobody answers'), new Error('nobody answers'), 3])
    await until('the answer', () => asked() === 5)
    expect([terms, term.now]).to.deep.equal([[3], 3])
    expect(lines).to.deep.equal([
      'whether this replica leads (ingress) is not known: nobody answers; what was known before stays, and it is asked again every second',
      'whether this replica leads (ingress) is known again',
    ])
    term.close()
  })

  it('says nothing when it was closed', async () => {
    const { term, lines, asked } = followed([])
    await until('the question', () => asked() === 1)
    term.close()
    const other = followed([new Error('late')])
    other.term.close()
    expect([term.now, lines, other.lines, other.asked()]).to.deep.equal([0, [], [], 0])
  })
})
