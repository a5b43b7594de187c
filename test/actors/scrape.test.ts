import { expect } from 'chai'
import { Scraper } from '../../actors/discovery/admin/scrape.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { Supervisor } from '../../actors/runtime/supervisor.ts'
import { until } from '../harness/until.ts'

describe('scrapes of discovery', () => {
  /** A scraper whose actors answer when the test says. */
  function scraping() {
    const asked: (() => void)[] = []
    const askAll = () => new Promise<readonly never[]>((resolve) => asked.push(() => resolve([])))
    return { asked, scraper: new Scraper({ askAll, states: () => [] } as unknown as Supervisor, new MetricRegistry()) }
  }

  it('are shared by those that wait, four of one client', async () => {
    const { asked, scraper } = scraping()
    const greedy = Array.from({ length: 6 }, () => scraper.scrapeFor('greedy', 'text'))
    const other = scraper.scrapeFor('other', 'text')
    const open = scraper.scrapeFor('open', 'openmetrics')
    await until('the question', () => asked.length === 1)
    asked[0]?.()
    const pages = await Promise.all(greedy)
    expect(pages.map((page) => page !== undefined)).to.deep.equal([false, false, true, true, true, true])
    expect(await other)
      .to.contain('scrapes_total 1')
      .and.not.to.contain('# EOF')
    expect(await open)
      .to.contain('# TYPE scrapes counter\nscrapes_total 1')
      .and.to.match(/\n# EOF\n$/)
    expect(asked.length).to.equal(1)
  })

  it('follow each other after four times as long as the one before has taken', async () => {
    const { asked, scraper } = scraping()
    const first = scraper.scrape()
    await until('the question', () => asked.length === 1)
    const began = performance.now()
    await until('a while', () => performance.now() - began >= 50)
    asked[0]?.()
    await first
    const ended = performance.now()
    const second = scraper.scrape()
    await until('the next question', () => asked.length === 2)
    expect(performance.now() - ended).to.be.at.least(190)
    asked[1]?.()
    await second
  })
})
