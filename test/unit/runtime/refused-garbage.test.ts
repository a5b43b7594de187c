import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect } from 'chai'

/** Makes objects that outlive young collections, drops them, and says so of each with the argument `says`. Prints the median of its heap's sizes. */
const script = `
const { getHeapStatistics } = require('node:v8')
const pause = () => new Promise((resolve) => setTimeout(resolve, 2))
import(process.argv[1]).then(async ({ leftGarbage }) => {
  const waiting = []
  const sizes = []
  for (let turn = 0; turn < 1500; turn++) {
    for (let count = 0; count < 32; count++) waiting.push({ turn, text: Array.from({ length: 256 }, (_, index) => turn + index) })
    const dropped = waiting.length > 1000 ? waiting.splice(0, 32) : []
    if (process.argv[2] === 'says') for (const _ of dropped) leftGarbage()
    sizes.push(getHeapStatistics().used_heap_size)
    await pause()
  }
  console.log(sizes.sort((one, other) => one - other)[sizes.length / 2])
})`

describe('garbage that refused clients leave', () => {
  const mib = 2 ** 20
  const module = new URL('../../../actors/runtime/refused-garbage.ts', import.meta.url).href
  /** As in the threads of the service: a small young generation, and no heap of less than 96 MiB is marked. */
  const median = async (how: 'says' | 'says nothing') => {
    const { stdout } = await promisify(execFile)(process.execPath, ['--initial-heap-size=96', '--max-semi-space-size=2', '-e', script, module, how])
    return Number(stdout)
  }

  it('is collected before V8 does it', async () => {
    const [said, unsaid] = await Promise.all([median('says'), median('says nothing')])
    expect(said).to.be.within(mib, 0.7 * unsaid)
    expect(unsaid).to.be.greaterThan(30 * mib)
  })
})
