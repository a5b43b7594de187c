/** The index of DestinationRules that follows changes is the one that is made of the last rules alone. */
import { expect } from 'chai'
import fc from 'fast-check'
import { byAge } from '../../../src/model/order.ts'
import { differingRules, indexDestinationRules, type KeptRules, type MergedRule } from '../../../src/snapshot/destination-rules.ts'
import type { DestinationRule } from '../../../src/snapshot/objects.ts'
import { runs } from '../../harness/seed.ts'

const namespaces = ['n1', 'n2']
const hosts = ['a.com', 'short', '*.com', '*.w.com', '*']
const looked = ['a.com', 'short.n1.svc.local', 'x.w.com', 'other.org']

const rule = fc
  .record({
    namespace: fc.constantFrom(...namespaces),
    name: fc.constantFrom('r', 's', 't'),
    host: fc.constantFrom(...hosts),
    createdAt: fc.integer({ min: 0, max: 2 }),
    tcp: fc.constantFrom({}, { idleTimeout: '5s' }, { maxConnections: 5 }),
    subset: fc.constantFrom('v1', 'v2'),
  })
  .map(({ namespace, name, host, createdAt, tcp, subset }) => {
    const spec = { host, trafficPolicy: { connectionPool: { tcp } }, subsets: [{ name: subset }] }
    return { kind: 'DestinationRule', namespace, name, createdAt, spec } as unknown as DestinationRule
  })
const change = fc.record({ rule, isRemoved: fc.boolean() })

const contentOf = (index: KeptRules) => ({
  rules: namespaces.map((namespace) => looked.map((host) => textOf(index.of(namespace, host)))),
  namespaces: [...index.namespaces.keys()].sort(),
  withTcpSettings: [...index.withTcpSettings.keys()].sort(),
  wildcards: namespaces.map((namespace) => index.byNamespace.get(namespace)?.wildcards.map(({ host }) => host)),
})
const textOf = (merged: MergedRule | undefined) => JSON.stringify(merged)

describe('the index of DestinationRules', () => {
  it('is, after any changes, the one of the last rules alone, and names the hosts whose rule is another', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { minLength: 1, maxLength: 2 }), { maxLength: 10 }), (steps) => {
        const objects = new Map<string, DestinationRule>()
        let index = indexDestinationRules([], 'local', undefined)
        for (const changes of steps) {
          for (const { rule, isRemoved } of changes) {
            if (isRemoved) objects.delete(`${rule.namespace}/${rule.name}`)
            else objects.set(`${rule.namespace}/${rule.name}`, rule)
          }
          const rules = [...objects.values()].sort(byAge)
          const before = index
          index = indexDestinationRules(rules, 'local', before)
          expect(contentOf(index)).to.deep.equal(contentOf(indexDestinationRules(rules, 'local', undefined)))
          const differing = differingRules(before, index)
          for (const namespace of namespaces)
            for (const host of looked) {
              const [one, other] = [before.of(namespace, host), index.of(namespace, host)]
              if (textOf(one) === textOf(other)) continue
              expect(differing === undefined || differing.includes(`${namespace} ${host}`), `${namespace} ${host}`).to.equal(true)
            }
          const isSame = JSON.stringify(contentOf(before).withTcpSettings) === JSON.stringify(contentOf(index).withTcpSettings)
          expect(index.withTcpSettings === before.withTcpSettings).to.equal(isSame)
        }
      }),
      { numRuns: runs(1000) },
    )
  })
})
