import { Worker } from 'node:worker_threads'
import { expect } from 'chai'

const ports = new URL('../../../bench/ports.ts', import.meta.url).href
/** A thread that posts 300 ports, more than one range has, and stays. */
const program = `
const { parentPort } = require('node:worker_threads')
import(${JSON.stringify(ports)}).then(async ({ freePort }) => {
  const chosen = []
  while (chosen.length < 300) chosen.push(await freePort())
  parentPort.on('message', () => undefined).postMessage(chosen)
})`

describe('free ports', () => {
  it('of concurrent threads differ, also while none is in use', async () => {
    const threads = Array.from({ length: 12 }, () => new Worker(program, { eval: true }))
    try {
      const chosen = await Promise.all(threads.map((thread) => new Promise<number[]>((resolve) => thread.once('message', resolve))))
      expect(new Set(chosen.flat()).size).to.equal(12 * 300)
    } finally {
      await Promise.all(threads.map((thread) => thread.terminate()))
    }
  })
})
