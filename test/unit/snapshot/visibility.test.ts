/** The visibility that is kept up from change to change is the one that a new state makes of the same objects. */
import { expect } from 'chai'
import fc from 'fast-check'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Faults } from '../../../src/model/faults.ts'
import { MeshState } from '../../../src/snapshot/state.ts'
import type { Visibility } from '../../../src/snapshot/visibility.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

const namespace = fc.constantFrom('n1', 'n2', 'mesh-system')
const exportTo = fc.constantFrom([], ['*'], ['.'], ['n2'], ['~'], ['.', 'n3'])
const host = fc.constantFrom('a.com', 'b.com', 'x.w.com', '*.w.com', 'own.n1.svc.cluster.local')
const address = fc.constantFrom('10.0.0.1', '127.0.0.1')
const port = fc.constantFrom(80, 81)

const service = fc.record({ namespace, host, exportTo, address, port }).map(({ namespace, host, exportTo, address, port }) => {
  const ports = [{ number: port, name: 'http', protocol: 'HTTP' }]
  const spec = { hosts: [host], exportTo, location: 'MESH_INTERNAL', resolution: 'STATIC', ports, endpoints: [{ address }] }
  return { kind: 'ServiceEntry', namespace, name: `e-${host.replace('*', 'any')}`, spec }
})
const rule = fc
  .record({ namespace, host: fc.oneof(host, fc.constantFrom('*.com', '*.local')), exportTo })
  .map(({ namespace, host, exportTo }) => ({ kind: 'DestinationRule', namespace, name: 'r', spec: { host, exportTo } }))
const route = fc
  .record({ namespace, host: fc.oneof(host, fc.constant('*.com')), to: host, exportTo, name: fc.constantFrom('v', 'u') })
  .map(({ namespace, host, to, exportTo, name }) => ({
    kind: 'VirtualService',
    namespace,
    name,
    spec: { hosts: [host], exportTo, http: [{ route: [{ destination: { host: to.replace('*', 'x') } }] }] },
  }))
const change = fc.record({ object: fc.oneof({ weight: 3, arbitrary: service }, rule, route), isRemoved: fc.boolean() })

const patterns = ['*', '*.com', '*.w.com', '*.svc.cluster.local', 'a.com', 'none.com']

/** Everything that visibility says, without the order of lists that have none. */
const contentOf = ({ hosts, hostsOf, hostsNaming, names, virtualServices, virtualServicesOf, differences }: Visibility) => {
  const sorted = <Value>(map: ReadonlyMap<string, Value>) => [...map].sort(([one], [other]) => (one < other ? -1 : 1))
  return {
    hosts,
    hostsOf: sorted(hostsOf),
    hostsNaming: sorted(hostsNaming),
    covered: patterns.map((pattern) => [...names.covered(pattern)].sort()),
    virtualServices: virtualServices.all.map(({ source }) => configKey(source)),
    virtualServicesOf: sorted(virtualServicesOf).map(([key, all]) => [key, all.map(({ source }) => configKey(source))]),
    differences: sorted(differences).map(([key, { virtualServices: own, ...rest }]) => [key, rest, own.map(({ source }) => configKey(source))]),
  }
}

describe('visibility', () => {
  it('is, after any changes, that of a new state with the same objects, and parts that are equal stay the same', () => {
    fc.assert(
      fc.property(fc.array(fc.array(change, { minLength: 1, maxLength: 2 }), { minLength: 1, maxLength: 8 }), (pushes) => {
        const state = new MeshState(testSettings(), new Faults())
        const objects = new Map<string, string>()
        // Wildcard lookups make the index that later states change.
        state.current.visibility.names.covered('*.com')
        for (const changes of pushes) {
          for (const { object, isRemoved } of changes) {
            const { kind, namespace, name, spec } = object
            const text = JSON.stringify({ apiVersion: 'networking.mesh.io/v1', kind, metadata: { name, namespace }, spec })
            const [parsed] = parseConfigFile('f', text, names).objects
            const key = `${kind}/${namespace}/${name}`
            state.setConfig(key, isRemoved ? undefined : parsed)
            if (isRemoved) objects.delete(key)
            else objects.set(key, text)
          }
          const before = state.current.visibility
          const now = state.take(0).snapshot.visibility
          now.names.covered('*.com')
          const fresh = new MeshState(testSettings(), new Faults())
          for (const [key, text] of objects) fresh.setConfig(key, parseConfigFile('f', text, names).objects[0])
          const expected = fresh.take(0).snapshot.visibility
          expect(contentOf(now)).to.deep.equal(contentOf(expected))
          for (const [key, difference] of now.differences) {
            const known = before.differences.get(key)
            const isEqual = JSON.stringify(known) === JSON.stringify(difference)
            if (known && isEqual && difference.virtualServices.length === 0) expect(difference, key).to.equal(known)
          }
        }
      }),
      { numRuns: runs(500) },
    )
  })

  it('stays the same object when only a port of a service differs', () => {
    const state = new MeshState(testSettings(), new Faults())
    const set = (number: number) => {
      const spec = {
        hosts: ['a.com'],
        ports: [{ number, name: 'http', protocol: 'HTTP' }],
        resolution: 'STATIC',
        endpoints: [{ address: '10.0.0.1' }],
      }
      const text = JSON.stringify({ apiVersion: 'networking.mesh.io/v1', kind: 'ServiceEntry', metadata: { name: 'a', namespace: 'n1' }, spec })
      state.setConfig('ServiceEntry/n1/a', parseConfigFile('f', text, names).objects[0])
      return state.take(0).snapshot
    }
    const before = set(80)
    const now = set(81)
    expect(now.services.get('a.com')?.[0]?.service.ports[0]?.number).to.equal(81)
    expect(now.visibility).to.equal(before.visibility)
  })
})
