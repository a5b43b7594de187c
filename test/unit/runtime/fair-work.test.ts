import { setImmediate as turn } from 'node:timers/promises'
import { expect } from 'chai'
import fc from 'fast-check'
import { FairWork, refusedJob } from '../../../actors/runtime/fair-work.ts'
import { seed } from '../../harness/seed.ts'

describe('fair work', () => {
  it('runs a job of another client after those under way, whatever one client has waiting', async () => {
    const work = new FairWork({ atOnce: 4, ofClient: 2, waiting: 100, bytes: 1000 })
    const order: string[] = []
    const run = (client: string) =>
      work.run({
        client,
        bytes: 1,
        run: async () => {
          order.push(client)
          await turn()
          return client
        },
      })
    const greedy = Array.from({ length: 50 }, () => run('greedy'))
    expect(order).to.deep.equal(['greedy', 'greedy'])
    expect(await run('other')).to.equal('other')
    expect(order.length).to.be.below(8)
    await Promise.all(greedy)
  })

  it('lets the event loop have a turn before the next job', async () => {
    const work = new FairWork({ atOnce: 1, ofClient: 1, waiting: 100, bytes: 1000 })
    let [turns, ran] = [0, 0]
    const jobs = Array.from({ length: 20 }, () => work.run({ client: '', bytes: 1, run: async () => expect(++ran).to.be.at.most(turns + 1) }))
    while (ran < 20) {
      await turn()
      turns++
    }
    await Promise.all(jobs)
  })

  it('keeps its bounds, settles every job once, and passes errors on', async () => {
    const job = fc.record({
      client: fc.constantFrom('a', 'b', 'c'),
      bytes: fc.integer({ min: 1, max: 30 }),
      fails: fc.boolean(),
      isGone: fc.boolean(),
    })
    const bounds = fc.record({
      atOnce: fc.integer({ min: 1, max: 6 }),
      ofClient: fc.integer({ min: 1, max: 6 }),
      waiting: fc.integer({ min: 1, max: 10 }),
      bytes: fc.integer({ min: 30, max: 100 }),
    })
    await fc.assert(
      fc.asyncProperty(bounds, fc.array(job, { maxLength: 40 }), async (limits, jobs) => {
        const work = new FairWork(limits)
        const running = new Map<string, number>()
        const total = () => [...running.values()].reduce((sum, count) => sum + count, 0)
        const change = (client: string, by: number) => running.set(client, (running.get(client) ?? 0) + by)
        const ran = new Set<number>()
        const outcomes = await Promise.allSettled(
          jobs.map(({ client, bytes, fails, isGone }, index) =>
            work.run({
              client,
              bytes,
              isGone: () => isGone,
              run: async () => {
                ran.add(index)
                change(client, 1)
                expect(total()).to.be.at.most(limits.atOnce)
                expect(running.get(client)).to.be.at.most(limits.ofClient)
                await turn()
                change(client, -1)
                if (fails) throw new Error(`job ${index}`)
                return index
              },
            }),
          ),
        )
        for (const [index, outcome] of outcomes.entries()) {
          if (!ran.has(index)) expect(outcome).to.deep.equal({ status: 'fulfilled', value: refusedJob })
          else if (jobs[index]?.fails) expect(outcome.status === 'rejected' && outcome.reason.message).to.equal(`job ${index}`)
          else expect(outcome).to.deep.equal({ status: 'fulfilled', value: index })
          if (jobs[index]?.isGone) expect(ran.has(index)).to.equal(false)
        }
      }),
      { seed },
    )
  })
})
