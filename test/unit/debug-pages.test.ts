import { expect } from 'chai'
import { debugAnswers } from '../../actors/discovery/push-queue/push-queue-debug.ts'
import { configKey } from '../../src/config/kinds.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { ambiguous, findConnection, findExactly, suggestedProxy } from '../../src/model/named-connection.ts'
import { readNode } from '../../src/model/proxy.ts'
import { Planner } from '../../src/push/planner.ts'
import { names, testSettings } from '../harness/settings.ts'

describe('selection of a connection by a debug page', () => {
  const node = (name: string) => `sidecar~10.0.0.1~${name}.ns~ns.svc.cluster.local`
  const connections = [
    { nodeId: node('xpod-1'), connectionId: `${node('xpod-1')}-3` },
    { nodeId: node('pod-1'), connectionId: `${node('pod-1')}-21` },
    { nodeId: node('pod-1'), connectionId: `${node('pod-1')}-2` },
  ]
  const byPart: typeof findExactly = (among, named) => findConnection(among, named).found
  const found = (find: typeof findExactly, named: string) => connections.indexOf(find(connections, named) as (typeof connections)[number])

  it('finds it by connection id, node id or proxy name', () => {
    for (const find of [findExactly, byPart]) {
      expect(found(find, `${node('pod-1')}-2`)).to.equal(2)
      expect(found(find, node('pod-1'))).to.equal(1)
      expect(found(find, 'pod-1.ns')).to.equal(1)
    }
  })

  it('accepts a part of the name on pages that show, and never on pages that act', () => {
    expect([found(byPart, 'xpod'), found(findExactly, 'xpod')]).to.deep.equal([0, -1])
  })

  it('finds by the closest likeness, and names the candidates of a part that several have', () => {
    const made = ['web-0.shop', 'web-01.shop', 'web-0.web-0-test', 'cart.shop'].map((name, index) => {
      const nodeId = `sidecar~10.0.0.${index + 1}~${name}~${name.split('.')[1]}.svc.cluster.local`
      return { nodeId, connectionId: `${nodeId}-${index}` }
    })
    const named = (text: string) => {
      const { found, candidates } = findConnection(made, text)
      return found ? made.indexOf(found) : candidates
    }
    expect([named('web-01'), named('car'), named('10.0.0.1'), named('web-0.shop'), named('~cart')]).to.deep.equal([1, 3, 0, 0, 3])
    expect(named('web-0')).to.deep.equal(['web-0.shop', 'web-0.web-0-test'])
    expect(named('shop')).to.deep.equal(['cart.shop', 'web-0.shop', 'web-01.shop'])
    expect(named('nobody')).to.deep.equal([])
    expect(suggestedProxy(made, 'wbe-0')).to.equal('; did you mean "web-0"?')
    expect(suggestedProxy(made, 'crat.shop')).to.equal('; did you mean "cart.shop"?')
    expect(suggestedProxy(made, 'nobody')).to.equal('')
    const many = Array.from({ length: 12 }, (_, index) => `web-${index}`)
    expect(ambiguous('web', many)).to.match(/^"web" may be any of web-0, .*web-9 and 2 more: give more of the name$/)
  })

  it('never finds a connection whose number only starts with the given one', () => {
    for (const find of [findExactly, byPart]) expect(found(find, `${node('xpod-1')}-`)).to.equal(-1)
    connections.splice(2)
    for (const find of [findExactly, byPart]) expect(found(find, `${node('pod-1')}-2`)).to.equal(-1)
  })
})

describe('the ports of proxies', () => {
  it('are those of E8, of the mesh, and of the connected proxies', () => {
    const planner = new Planner(testSettings())
    const ports = () => {
      planner.advance()
      return debugAnswers(planner, { pushAgain: () => 0, shares: () => [] }, () => true).portsOfProxies()
    }
    expect(ports()).to.include.members([15_000, 15_021]).and.not.to.include.members([15_100])
    const metadata = { PROXY_CONFIG: { proxyAdminPort: 15_100, statusPort: 15_120 }, PROXY_STATUS_PORT: '15121', STS_PORT: '15122' }
    planner.connect('one', readNode({ id: 'sidecar~127.0.0.12~a.ns~ns.svc', metadata, locality: undefined }, names, false))
    expect(ports()).to.include.members([15_000, 15_100, 15_120, 15_121, 15_122])
  })
})

describe('the debug page of service instances', () => {
  it('shows each proxy its own address although proxies share a class', () => {
    const planner = new Planner(testSettings())
    const { objects } = parseConfigFile(
      'f.yaml',
      JSON.stringify({
        apiVersion: 'networking.mesh.io/v1',
        kind: 'ServiceEntry',
        metadata: { name: 'a', namespace: 'ns' },
        spec: {
          hosts: ['a.example'],
          location: 'MESH_INTERNAL',
          resolution: 'STATIC',
          ports: [{ number: 80, name: 'http' }],
          endpoints: [{ address: '10.0.0.1' }, { address: '10.0.0.2' }],
        },
      }),
      names,
    )
    for (const object of objects) planner.state.setConfig(configKey(object), object)
    planner.advance()
    for (const address of ['10.0.0.1', '10.0.0.2'])
      planner.connect(address, readNode({ id: `sidecar~${address}~a.ns~ns.svc`, metadata: {}, locality: undefined }, names, false))
    expect(planner.classCount).to.equal(1)
    const answers = debugAnswers(planner, { pushAgain: () => 0, shares: () => [] }, () => true)
    const first = answers.instances()
    const shown = [...first.rows]
    // A piece is what is made within a millisecond.
    for (let { next } = first; next !== undefined; ) {
      const piece = answers.more(next) as typeof first
      shown.push(...piece.rows)
      next = piece.next
    }
    expect(shown.map(({ connection, namespace, instances: [instance] }) => [connection, namespace, instance?.address])).to.deep.equal([
      ['10.0.0.1', 'ns', '10.0.0.1'],
      ['10.0.0.2', 'ns', '10.0.0.2'],
    ])
  })
})
