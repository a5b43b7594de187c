/** Events of proxies when actors die: what is lost is said, and a writer that dies takes its proxies with it. */
import { expect } from 'chai'
import { LocalDiscovery } from '../harness/discovery.ts'
import { namesOf, Watcher } from '../harness/status-watcher.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('events of proxies when actors die', () => {
  const discovery = new LocalDiscovery({ mode: 'threads' }, { ENABLE_DEBUG_ON_LOOPBACK: 'true' })
  const open: { close(): void }[] = []
  const watch = () => {
    const watcher = new Watcher(discovery.grpcPort)
    open.push(watcher)
    return watcher
  }

  before(async () => {
    await (await discovery.start({ writers: 2 })).ready()
  })
  after(async () => {
    for (const each of open) each.close()
    await discovery.dispose()
  })

  it('a writer that dies takes its proxies with it, which watchers at the other one are told', async () => {
    const proxies = new Map<string, string>()
    const connections = () => discovery.service.supervisor.askAll<{ connectionId: string; nodeId: string }[]>('xds-writer', 'connections')
    for (let count = 0; new Set(proxies.values()).size < 2; count++) {
      const node = sidecarNode(`10.9.1.${count + 1}`, `pod-${count}`, 'ns')
      open.push(await new XdsClient(discovery.grpcPort, node, true).connect().ready())
      for (const { connectionId, nodeId } of (await connections()).flat())
        proxies.set(nodeId.split('~')[2] as string, `xds-writer/${Number(connectionId.split('-').at(-1)) % 2}`)
    }
    const lost = [...proxies].flatMap(([name, writer]) => (writer === 'xds-writer/0' ? [name] : [])).sort()
    // The reports of the connected proxies follow within a tenth of a second.
    await until('the record of all of them', async () => {
      const digests = await discovery.service.supervisor.ask<unknown[]>('distribution', 'digests')
      return digests.length === proxies.size
    })
    const watchers = Array.from({ length: 8 }, watch)
    for (const watcher of watchers) await watcher.ask('mesh.io/disconnect').ask('mesh.io/connect').answered('mesh.io/connect')
    discovery.service.supervisor.kill('xds-writer/0')
    const told = (watcher: Watcher) => watcher.of('mesh.io/disconnect').flatMap(namesOf)
    await until('the end of its watchers', () => watchers.every((watcher) => watcher.ended || lost.every((name) => told(watcher).includes(name))))
    for (const watcher of watchers.filter(({ ended }) => !ended)) expect([...new Set(told(watcher))].sort()).to.deep.equal(lost)
  })

  it('the end of the record ends the streams of watchers, and they may begin anew', async () => {
    const watcher = watch()
    await watcher.ask('mesh.io/connect').answered('mesh.io/connect')
    discovery.service.supervisor.kill('distribution')
    await until('the end', () => watcher.ended !== undefined)
    expect(watcher.ended?.code).to.equal(14)
    expect(watcher.ended?.details).to.match(/events are not available at present/)
    await until('an answer again', async () => {
      const next = watch().ask('mesh.io/connect')
      await until('an answer or the end', () => next.ended !== undefined || next.of('mesh.io/connect').length > 0)
      return next.ended === undefined
    })
  })
})
