import { expect } from 'chai'
import { agentMetrics } from '../../actors/agent/status/agent-metrics.ts'
import { Scraper } from '../../actors/discovery/admin/scrape.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { restartPolicy } from '../../actors/runtime/restarts.ts'
import { Supervisor } from '../../actors/runtime/supervisor.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { until } from '../harness/until.ts'

const logOptions: LogOptions = {
  output: { fallback: 'none', scopes: {} },
  stackTrace: { fallback: 'none', scopes: {} },
  callers: [],
  asJson: false,
  targets: [],
  rotate: undefined,
}

for (const mode of ['threads', 'in-thread'] as const) {
  describe(`metrics of actors (${mode})`, () => {
    it('are merged on scrape, and no counter decreases when an actor restarts', async () => {
      // Away for long enough to be noticed, also on a busy machine.
      const policy = { ...restartPolicy, firstMs: 2000 }
      const supervisor = new Supervisor({ mode, log: createLogger(logOptions, () => {}), logOptions, logged: () => {}, answers: {}, policy })
      const scraper = new Scraper(supervisor, new MetricRegistry())
      const value = async (name: string) => Number(new RegExp(`^${name} (.*)$`, 'm').exec(await scraper.scrape())?.[1])
      for (const name of ['counting/0', 'counting/1']) supervisor.start({ name, module: new URL('parts/counting.ts', import.meta.url), config: {} })
      await supervisor.started()
      expect([await value('things_total'), await value('there')]).to.deep.equal([6, 2])
      supervisor.kill('counting/0')
      await until('the scrape to know that one is gone', async () => (await value('there')) === 1)
      expect(await value('things_total')).to.equal(6)
      await until('the other to be there', async () => (await value('there')) === 2)
      expect(await value('things_total')).to.equal(9)
      expect(await scraper.scrape()).to.match(/# TYPE actor_restarts counter\nactor_restarts\{actor="counting\/0"\} 1\n/)
      await supervisor.drain([], 1000)
    })
  })
}

describe('metrics of the agent', () => {
  it('include those of all actors and of the process, with a prefix only on the page that it shares', async () => {
    const supervisor = new Supervisor({ mode: 'in-thread', log: createLogger(logOptions, () => {}), logOptions, logged: () => {}, answers: {} })
    const collect = agentMetrics(supervisor, new MetricRegistry(), '1.2.3')
    supervisor.start({ name: 'counting/0', module: new URL('parts/counting.ts', import.meta.url), config: {} })
    await supervisor.started()
    const [shared, own, open] = await Promise.all([collect('shared'), collect('text'), collect('openmetrics')])
    for (const [{ text, silent }, prefix] of [
      [shared, 'mesh_agent_'],
      [own, ''],
      [open, ''],
    ] as const) {
      expect(silent).to.equal(0)
      expect(text).to.match(new RegExp(`^${prefix}mesh_build\\{component="agent",tag="1\\.2\\.3"\\} 1$`, 'm'))
      expect(text).to.match(new RegExp(`^${prefix}process_resident_memory_bytes [1-9]\\d+$`, 'm'))
      expect(text).to.match(new RegExp(`^${prefix}actor_restarts\\{actor="counting/0"\\} 0$`, 'm'))
      expect(text).to.match(new RegExp(`^${prefix}things_total 3$`, 'm'))
      expect(text).to.match(new RegExp(`^${prefix}nodejs_eventloop_lag_seconds `, 'm'))
      // Nothing samples the event loop all the time.
      expect(text).not.to.contain('nodejs_eventloop_lag_mean')
    }
    expect(shared.text.split('\n').filter((line) => !/^(mesh_agent_|# (HELP|TYPE) mesh_agent_|$)/.test(line))).to.deep.equal([])
    expect(open.text.endsWith('\n# EOF\n')).to.equal(true)
    await supervisor.drain([], 1000)
  })
})
