import { expect } from 'chai'
import { Launched } from '../harness/launched.ts'
import { until } from '../harness/until.ts'

describe('a killed benchmark', () => {
  it('leaves neither server nor load processes behind', async () => {
    const bench = new Launched([process.execPath, 'bench/run.ts', '--set', 'soak', '--changes', '100000', '--connects', '1000'])
    try {
      // The benchmark itself, the server and two processes of simulated proxies.
      await until('its processes', () => bench.members().length === 4)
      await bench.output.says('round 1 of')
      bench.signal('SIGKILL')
      expect(await bench.ended).to.deep.equal({ code: null, signal: 'SIGKILL' })
      await until('all of them to be gone', () => bench.members().length === 0)
    } finally {
      bench.dispose()
    }
  })
})
