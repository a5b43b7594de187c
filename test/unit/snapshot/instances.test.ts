import { expect } from 'chai'
import fc from 'fast-check'
import type { Endpoint, Service, ServicePort } from '../../../protocols/data.ts'
import type { ServiceState } from '../../../src/registry/merged-services.ts'
import { InstanceIndex } from '../../../src/snapshot/instances.ts'
import '../../harness/seed.ts'

const port = { number: 80, name: 'http', targetPort: 0 } as ServicePort
const endpointAt = (address: string): Endpoint =>
  ({ address, ports: {}, labels: {}, locality: '', network: '', weight: 0, serviceAccount: '', namespace: 'a', workload: '' }) as Endpoint

function stateOf(hostname: string, namespace: string, addresses: readonly string[]): ServiceState {
  const service = { hostname, namespace, name: hostname, ports: [port], external: false } as unknown as Service
  return { service, endpoints: addresses.map(endpointAt), shards: [], hasLocalEndpoints: false }
}

const addresses = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '']
const hosts = ['a.example', 'b.example', 'c.example']

describe('the index of service instances', () => {
  it('answers after any updates as one that is made of the last states, and names every address whose answer changed', () => {
    const state = fc.record({ namespace: fc.constantFrom('a', 'b'), addresses: fc.array(fc.constantFrom(...addresses), { maxLength: 4 }) })
    const update = fc.record({ host: fc.constantFrom(...hosts), states: fc.option(fc.array(state, { maxLength: 2 }), { nil: undefined }) })
    fc.assert(
      fc.property(fc.array(update, { maxLength: 12 }), (updates) => {
        const index = new InstanceIndex()
        const last = new Map<string, readonly ServiceState[]>()
        const answers = () => new Map(addresses.map((address) => [address, index.of([address], undefined)]))
        for (const { host, states } of updates) {
          const before = answers()
          const now = states?.map((each) => stateOf(host, each.namespace, each.addresses))
          last.set(host, now ?? [])
          const affected = index.update(host, now)
          const fresh = new InstanceIndex()
          for (const [name, held] of [...last].reverse()) fresh.update(name, held)
          for (const [address, answer] of answers()) {
            expect(answer).to.deep.equal(fresh.of([address], undefined))
            if (!affected.has(address)) expect(answer).to.deep.equal(before.get(address))
          }
        }
      }),
    )
  })
})
