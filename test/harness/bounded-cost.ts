/** What an attack may cost a process, and that the process answers others meanwhile. */
import { expect } from 'chai'
import { OwnTime } from './own-time.ts'
import { CostRecorder } from './process-cost.ts'
import { send } from './raw-http.ts'

/** A page that the attacked process answers with a status. */
export interface AnsweredPage {
  readonly port: number
  readonly path: string
  readonly status: number
}

/** What may be added to a process: memory in MiB, by default 100, and open files. */
export interface CostBounds {
  readonly mib?: number
  readonly descriptors: number
}

/** Asks a page twenty times and asserts its status. Returns the longest time until an answer, in milliseconds of own time. */
async function slowestAnswer({ port, path, status }: AnsweredPage): Promise<number> {
  let slowest = 0
  for (let times = 0; times < 20; times++) {
    const watch = new OwnTime()
    expect(await send('127.0.0.1', port, { path, host: 'localhost' })).to.equal(status)
    slowest = Math.max(slowest, watch.ms())
  }
  return slowest
}

/** Asserts that a page answers within a second while an attack that has begun goes on, and what the attack costs the process. */
export async function expectBounded(pid: number, page: AnsweredPage, bounds: CostBounds, begin: () => unknown): Promise<void> {
  const costs = new CostRecorder(pid)
  await begin()
  const slowest = await slowestAnswer(page)
  const { mib, descriptors } = costs.stop()
  expect(slowest, 'the longest answer in milliseconds').to.be.below(1000)
  expect(mib, 'memory in MiB').to.be.below(bounds.mib ?? 100)
  expect(descriptors, 'open files').to.be.at.most(bounds.descriptors)
}
