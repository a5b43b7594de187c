import { execFileSync } from 'node:child_process'
import { expect } from 'chai'

const module = new URL('../../../actors/runtime/young-generation.ts', import.meta.url).href
/** A process whose objects survive some collections of young ones, in turns of the event loop. Prints the largest young generation in MiB. */
const script = (bounds: string) => `
import { getHeapSpaceStatistics } from 'node:v8'
${bounds}
const young = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size
const kept = []
let [made, most] = [0, 0]
const turn = () => {
  for (const end = made + 3000; made < end; made++) kept[made % 20_000] = { made, list: [made, made + 1] }
  most = Math.max(most, young())
  if (made < 2_000_000) setImmediate(turn)
  else console.log(most / 2 ** 20)
}
turn()`
const largest = (bounds: string) => Number(execFileSync(process.execPath, ['--input-type=module', '--eval', script(bounds)], { encoding: 'utf8' }))

describe('the young generation of the main thread', () => {
  it('grows to 32 MiB and not further', () => {
    expect(largest(`import { boundYoungGeneration } from ${JSON.stringify(module)}; boundYoungGeneration()`)).to.equal(32)
    expect(largest('')).to.be.above(32)
  })
})
