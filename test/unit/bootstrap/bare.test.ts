/** The bootstrap of an Envoy without an agent. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { parse } from 'yaml'
import { bareBootstrap } from '../../../src/bootstrap/bare.ts'
import { runCommand } from '../../harness/service.ts'

const example = parse(readFileSync(new URL('../../../examples/bare-envoy/envoy.yaml', import.meta.url), 'utf8')) as unknown
const proxy = {
  ...{ role: 'router', address: '127.0.0.1', name: 'gateway.demo', domain: 'cluster.local', labels: ['app=gateway'] },
  ...{ discovery: '127.0.0.1:15010', adminPort: 15_000 },
}

describe('the bootstrap of an Envoy without an agent', () => {
  it('is that of the example', async () => {
    expect(bareBootstrap(proxy)).to.deep.equal(example)
    const { stdout } = await runCommand(['bootstrap', 'gateway.demo', '--role', 'router', '--label', 'app=gateway'])
    expect(parse(stdout)).to.deep.equal(example)
  })

  it('looks up the name of its control plane', () => {
    const { static_resources: made } = bareBootstrap({ ...proxy, discovery: 'meshd.example:15010' }) as {
      static_resources: { clusters: { type: string }[] }
    }
    expect(made.clusters[0]?.type).to.equal('STRICT_DNS')
  })

  it('names what cannot be used', () => {
    const wrong = { name: 'gateway', role: 'proxy', address: 'a', discovery: 'meshd', labels: ['app'] }
    const fails = (part: object) => () => bareBootstrap({ ...proxy, ...part })
    expect(fails({ name: wrong.name })).to.throw('"gateway" is not <name>.<namespace>')
    expect(fails({ role: wrong.role })).to.throw('--role: expected router or sidecar')
    expect(fails({ address: wrong.address })).to.throw('--ip: "a" is not an IP address')
    expect(fails({ discovery: wrong.discovery })).to.throw('--discovery: "meshd" is not <host>:<port>')
    expect(fails({ labels: wrong.labels })).to.throw('--label: "app" is not <key>=<value>')
  })
})
