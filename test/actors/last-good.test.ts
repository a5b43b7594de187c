import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { clusterType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const policy = (spec: string) => `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: ${spec}\n`
const watcher = 'source/files'

describe('last good states across a restart of the file watcher', () => {
  const control = new LocalDiscovery({ mode: 'threads' }, { PILOT_MOCK_SERVICES: '0' })
  let proxy: XdsClient
  const write = (file: string, content: string) => writeFileSync(join(control.dir, file), content)
  const has = (name: string) => proxy.resources.get(clusterType)?.has(`outbound|80||${name}.ns.svc.cluster.local`) ?? false
  const restart = async () => {
    const state = () => control.service.supervisor.states().find(({ name }) => name === watcher)
    const before = state()?.restarts ?? 0
    control.service.supervisor.kill(watcher)
    await until('the restart', () => state()?.state === 'running' && (state()?.restarts ?? 0) > before)
  }
  const policyInForce = async () => (await (await fetch(`http://127.0.0.1:${control.httpPort}/debug/configz`)).text()).includes('"DENY"')

  before(async () => {
    write('faulty.yaml', serviceEntry('faulty'))
    write('unclear.yaml', serviceEntry('unclear'))
    write('gone.yaml', serviceEntry('gone'))
    write('policy.yaml', policy('{action: DENY, rules: [{to: [{operation: {paths: [/x]}}]}]}'))
    await (await control.start()).ready()
    proxy = await new XdsClient(control.grpcPort, sidecarNode('10.4.0.1', 'one', 'ns'), true).connect().ready()
  })
  after(async () => {
    proxy.close()
    await control.dispose()
  })

  it('are kept for faulty objects, policies and unreadable files', async () => {
    expect(['faulty', 'unclear', 'gone'].map(has)).to.deep.equal([true, true, true])
    expect(await policyInForce()).to.equal(true)
    write('faulty.yaml', serviceEntry('faulty').replace('80', '99999'))
    write('unclear.yaml', 'a: "never closed\n')
    write('policy.yaml', policy('{action: DENY, rules: [{misspelt: []}]}'))
    const log = () => readFileSync(join(control.dir, 'log'), 'utf8')
    await until('all three faults', () =>
      ['99999 is outside', 'unclear.yaml, document 1: not YAML', 'misspelt'].every((said) => log().includes(said)),
    )
    await restart()
    write('marker.yaml', serviceEntry('marker'))
    await until('a change after the restart', () => has('marker'))
    // Withdrawn resources are removed two seconds later, while the debug pages change at once.
    const objects = await (await fetch(`http://127.0.0.1:${control.httpPort}/debug/configz`)).text()
    for (const name of ['faulty', 'unclear', 'gone']) expect(objects, name).to.contain(`${name}.ns.svc.cluster.local`)
    expect(await policyInForce()).to.equal(true)
  })

  it('are removed with their documents, also if those are deleted after the restart', async () => {
    for (const file of ['faulty.yaml', 'unclear.yaml', 'gone.yaml', 'policy.yaml']) rmSync(join(control.dir, file))
    await until('what is known to go', () => !has('faulty') && !has('gone'))
    expect(await policyInForce()).to.equal(false)
    await control.service.supervisor.ask(watcher, 'reload')
    await until('what could not be emitted to go', () => !has('unclear'))
    expect(has('marker')).to.equal(true)
  })
})
