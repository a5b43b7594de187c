import { rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { restartPolicy } from '../../actors/runtime/restarts.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { until } from '../harness/until.ts'

describe('/ready', () => {
  let discovery: LocalDiscovery
  afterEach(() => discovery.dispose())
  /** Actors that end stay away for long enough to be noticed, also on a busy machine. */
  const policy = { ...restartPolicy, firstMs: 1000, longestMs: 1000 }

  it('reports what is missing before the first complete state, then nothing', async () => {
    discovery = new LocalDiscovery({})
    // A file that cannot be read keeps the first state from being complete for as long as the test needs.
    const link = join(discovery.dir, 'link.yaml')
    symlinkSync('nothing', link)
    await discovery.start()
    const first = await discovery.ready()
    expect(first.status).to.equal(503)
    expect(first.text).to.match(/^discovery is not ready: the complete configuration is not served yet\n/)
    expect(first.text).to.match(/source\/(files|mock) has not delivered its complete state yet|actor .* is starting/)
    rmSync(link)
    await discovery.service.ready()
    expect(await discovery.ready()).to.deep.equal({ status: 200, text: '' })
  })

  it('stays 200 and names a restarting push queue while writers serve, and becomes 503 if it keeps restarting', async () => {
    discovery = new LocalDiscovery({ policy })
    const { supervisor } = await discovery.start()
    await discovery.service.ready()
    supervisor.kill('push-queue')
    const { status, text } = await discovery.ready()
    expect(status).to.equal(200)
    expect(text).to.include('actor push-queue ended once recently (restarting), last: the actor was killed')
    expect(text).to.include('source/files has not delivered its complete state yet')
    await until('the push queue to run again', async () => (await discovery.ready()).text.includes('(runs again)'))
    expect((await discovery.ready()).status).to.equal(200)
    await until('the restart limit', async () => {
      supervisor.kill('push-queue')
      return (await discovery.ready()).status === 503
    })
    expect((await discovery.ready()).text).to.match(
      /an actor keeps failing\n(.*\n)*actor push-queue keeps failing \(restarting\): ended 6 times, last: the actor was killed/,
    )
  })

  it('is 503 while no writer serves, and 200 when one does again', async () => {
    discovery = new LocalDiscovery({ policy })
    const { supervisor } = await discovery.start({ writers: 1 })
    await discovery.service.ready()
    supervisor.kill('xds-writer/0')
    expect((await discovery.ready()).status).to.equal(503)
    await until('the writer to serve', async () => (await discovery.ready()).status === 200)
    expect((await discovery.ready()).text).to.equal('actor xds-writer/0 ended once recently (runs again), last: the actor was killed')
  })
})
