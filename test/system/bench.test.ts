import { expect } from 'chai'
import { Launched } from '../harness/launched.ts'
import { until } from '../harness/until.ts'

describe('a bench that is killed', function () {
  this.timeout(60_000)

  it('leaves neither its server nor its load running', async () => {
    const bench = new Launched([process.execPath, 'bench/run.ts', '--set', 'soak', '--changes', '100000', '--connects', '1000'])
    try {
      // The bench itself, the server and two processes of simulated proxies.
      await until('its processes', () => bench.members().length === 4, 40_000)
      await bench.output.says('round 1 of')
      bench.signal('SIGKILL')
      expect(await bench.ended).to.deep.equal({ code: null, signal: 'SIGKILL' })
      await until('all of them to be gone', () => bench.members().length === 0, 20_000)
    } finally {
      bench.dispose()
    }
  })
})
