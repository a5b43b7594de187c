import fs, { closeSync, openSync, readdirSync } from 'node:fs'
import { expect } from 'chai'
import { ProcessMetrics } from '../../../actors/runtime/process-metrics.ts'

describe('the metrics of the process', () => {
  it('count open files without listing them on this thread', async function () {
    if (process.platform !== 'linux') this.skip()
    const metrics = new ProcessMetrics(false)
    const open = async () => (await metrics.collect()).find(({ name }) => name === 'process_open_fds')?.values[0]?.value as number
    const list = fs.readdirSync
    const held: number[] = []
    try {
      const before = await open()
      expect(before).to.be.closeTo(readdirSync('/proc/self/fd').length, 5)
      for (let index = 0; index < 300; index++) held.push(openSync('/dev/null', 'r'))
      fs.readdirSync = (() => {
        throw new Error('listed')
      }) as unknown as typeof list
      expect(await open()).to.be.closeTo(before + 300, 5)
    } finally {
      fs.readdirSync = list
      for (const descriptor of held) closeSync(descriptor)
    }
  })
})
