import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { MessageChannel } from 'node:worker_threads'
import { expect } from 'chai'
import { askWithin, OpenQuestions, serveAsks, useAsks } from '../../../actors/runtime/ask.ts'
import { until } from '../../harness/until.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

describe('questions to an actor', () => {
  const { port1, port2 } = new MessageChannel()
  serveAsks(port1, { much: () => Array.from({ length: 10_000 }, (_, index) => index), never: () => new Promise(() => {}) })
  const asks = useAsks(port2)
  after(() => {
    for (const port of [port1, port2]) port.close()
  })

  it('do not retain an answer after it was delivered', async () => {
    const open = new OpenQuestions()
    const answers: WeakRef<number[]>[] = []
    for (let round = 0; round < 50; round++) answers.push(new WeakRef(await askWithin<number[]>(asks, 'much', [], { open })))
    expect(open.size).to.equal(0)
    await until('all answers but the last to be collected', () => {
      collectGarbage()
      return answers.slice(0, -1).every((answer) => answer.deref() === undefined)
    })
  })

  it('are rejected when the actor ends, and afterwards', async () => {
    const open = new OpenQuestions()
    const asked = [1, 2].map(() => askWithin(asks, 'never', [], { open }).catch((error: Error) => error.message))
    open.end(new Error('it has ended'))
    asked.push(askWithin(asks, 'much', [], { open }).catch((error: Error) => error.message))
    expect(await Promise.all(asked)).to.deep.equal(['it has ended', 'it has ended', 'it has ended'])
    expect(open.size).to.equal(0)
  })
})
