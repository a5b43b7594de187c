import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { policiesFor } from '../../../src/snapshot/policies.ts'
import { policyDocument } from '../../harness/policies.ts'
import { names, testSettings } from '../../harness/settings.ts'

const label = 'gateway.networking.k8s.io/gateway-name'
const gateway = (name: string) => `{group: gateway.networking.k8s.io, kind: Gateway, name: ${name}}`
const deny = (name: string, targets: string, namespace = 'shop') =>
  policyDocument('AuthorizationPolicy', name, `{action: DENY, rules: [{}], ${targets}}`, { namespace })

function plan(...documents: string[]): Planner {
  const planner = new Planner(testSettings())
  for (const object of parseConfigFile('f.yaml', documents.join('---\n'), names).objects) planner.state.setConfig(configKey(object), object)
  planner.advance()
  return planner
}

describe('policies with targetRefs', () => {
  it('select only the proxies of the referenced Gateways in their own namespace', () => {
    const { snapshot } = plan(
      deny('one', `targetRef: ${gateway('a')}`),
      deny('two', `targetRefs: [${gateway('a')}, ${gateway('b')}, {kind: Service, name: a}]`),
      deny('waypoints', 'targetRefs: [{kind: Service, name: a}]'),
      deny('root', `targetRefs: [${gateway('a')}]`, 'mesh-system'),
      deny('all', 'selector: {matchLabels: {}}'),
    )
    const selected = (namespace: string, labels: Record<string, string>) =>
      policiesFor(snapshot.policies, 'mesh-system', { namespace, labels }).authorization.map(({ name }) => name)
    expect(selected('shop', { [label]: 'a' })).to.have.members(['one', 'two', 'all'])
    expect(selected('shop', { [label]: 'b' })).to.have.members(['two', 'all'])
    expect(selected('shop', { app: 'a' })).to.deep.equal(['all'])
    expect(selected('other', { [label]: 'a' })).to.deep.equal([])
    expect(selected('mesh-system', { [label]: 'a' })).to.deep.equal(['root'])
  })

  it('change only the configuration of the proxies they refer to when they are created or deleted', () => {
    const planner = plan(deny('other', 'selector: {matchLabels: {app: x}}'))
    for (const name of ['a', 'b', 'c'])
      planner.connect(
        name,
        readNode({ id: `router~10.0.0.1~${name}.shop~shop.svc`, metadata: { LABELS: { [label]: name } }, locality: undefined }, names, false),
      )
    const classes = () => planner.proxies().map(({ proxyClass }) => proxyClass?.id)
    const before = classes()
    const change = (document: string | undefined) => {
      const [object] = document === undefined ? [] : parseConfigFile('f.yaml', document, names).objects
      planner.state.setConfig('AuthorizationPolicy/shop/new', object)
      planner.advance()
      return classes().map((id, index) => id !== before[index])
    }
    expect(change(deny('new', `targetRef: ${gateway('b')}`))).to.deep.equal([false, true, false])
    expect(change(deny('new', `targetRefs: [${gateway('a')}, ${gateway('c')}]`))).to.deep.equal([true, false, true])
    expect(change(undefined)).to.deep.equal([false, false, false])
  })
})
