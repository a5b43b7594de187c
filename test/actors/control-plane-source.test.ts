/** A control plane that reads from another one, when actors of it die, and when the other one is not there at its start. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('another control plane as a source', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-planes-'))
  const made = new ServingCertificates(dir)
  const other = new Service()
  const own = new LocalDiscovery({ mode: 'threads' }, { PILOT_MOCK_SERVICES: '0' })
  let port = 0
  const actor = () => `source/xds/localhost:${port}`

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca', 1, 'subjectAltName=DNS:localhost')
    made.workload('root', 'ca', ['spiffe://cluster.local/ns/mesh-system/sa/meshd'])
    port = await freePort()
    other.flags.push('--secureGRPCAddr', `localhost:${port}`, '--writers', '1', ...made.servingFlags())
    other.write('a.yaml', serviceEntry('a'))
    const tls = { clientCertificate: made.file('root.pem'), privateKey: made.file('root-key.pem'), caCertificates: made.file('ca.pem') }
    own.write('mesh', JSON.stringify({ configSources: [{ address: `xds://localhost:${port}`, tlsSettings: { mode: 'MUTUAL', ...tls } }] }))
  })
  after(async () => {
    await Promise.all([other.dispose(), own.dispose()])
    rmSync(dir, { recursive: true })
  })

  const ready = () => fetch(`http://127.0.0.1:${own.httpPort}/ready`)
  const sources = async () =>
    (await own.debug<{ source: string; metadata: { name: string } }[]>('configz')).map(({ metadata }) => metadata.name).sort()
  const have = (what: string, ...expected: string[]) => until(what, async () => JSON.stringify(await sources()) === JSON.stringify(expected))

  it('that is not there at the start is waited for, and no longer than 20 seconds', async () => {
    await own.start({ meshConfig: join(own.dir, 'mesh'), writers: 1 })
    await until('that it is waited for', async () => {
      const answer = await ready()
      return answer.status === 503 && /xds:\/\/localhost:\d+ cannot be read: .*ECONNREFUSED/.test(await answer.text())
    })
    await until('that it is waited for no longer', async () => (await ready()).status === 200)
    expect(await (await ready()).text()).to.match(/xds:\/\/localhost:\d+ cannot be read/)
    await other.start()
    await have('its objects', 'a')
    await until('that nothing is missing', async () => (await (await ready()).text()) === '')
  })

  it('loses nothing when the push queue, the source or a writer of the other one is started again', async () => {
    const client = await new XdsClient(own.grpcPort, sidecarNode('10.0.0.9', 'p', 'ns'), true).connect().ready()
    const has = (name: string) => client.resources.get(clusterType)?.has(`outbound|80||${name}.ns.svc.cluster.local`) === true
    await until('what the other one has', () => has('a'))
    for (const [index, name] of ['push-queue', actor(), 'push-queue'].entries()) {
      const { restarts } = own.state(name)
      own.service.supervisor.kill(name)
      await until('the restart', () => own.state(name).restarts > restarts && own.state(name).state === 'running')
      other.write('b.yaml', serviceEntry(`b${index}`))
      await have('the change', 'a', `b${index}`)
      await until('the change at the proxy', () => has(`b${index}`) && has('a'))
    }
    expect(client.removed.filter((name) => name.includes('|a.ns'))).to.deep.equal([])
    client.close()
  })

  it('whose settings change is read with the new ones; its objects stay meanwhile', async () => {
    made.workload('shop', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    const tls = { clientCertificate: made.file('shop.pem'), privateKey: made.file('shop-key.pem'), caCertificates: made.file('ca.pem') }
    own.write('mesh', JSON.stringify({ configSources: [{ address: `xds://localhost:${port}`, tlsSettings: { mode: 'MUTUAL', ...tls } }] }))
    await until('the refusal', async () => /may not read configuration objects/.test(await (await ready()).text()))
    expect(await sources()).to.deep.equal(['a', 'b2'])
    own.write('mesh', '{}')
    await have('the end')
  })
})
