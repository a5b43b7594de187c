import { expect } from 'chai'
import fc from 'fast-check'
import type { Endpoint, Service, ServicePort } from '../../../protocols/data.ts'
import { type ServiceState, serviceState, shardOf } from '../../../src/registry/merged-services.ts'
import { keptSlice, type Slice } from '../../../src/registry/slices.ts'
import { InstanceIndex } from '../../../src/snapshot/instances.ts'
import '../../harness/seed.ts'

const port = { number: 80, name: 'http', targetPort: 0 } as ServicePort
const endpointAt = (address: string): Endpoint =>
  ({ address, ports: {}, labels: {}, locality: '', network: '', weight: 0, serviceAccount: '', namespace: 'a', workload: '' }) as Endpoint

function stateOf(hostname: string, namespace: string, slices: readonly Slice[]): ServiceState {
  const service = (services[`${namespace}/${hostname}`] ??= {
    hostname,
    namespace,
    name: hostname,
    ports: [port],
    external: false,
  } as unknown as Service)
  return serviceState(service, [shardOf({ provider: 'Mock', cluster: '' }, slices)])
}
/** One object for each service, so that changes of endpoints are not changes of services. */
const services: Record<string, Service> = {}

const addresses = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '']
const hosts = ['a.example', 'b.example', 'c.example']

describe('the index of service instances', () => {
  it('answers after any updates as one that is made of the last states, and names every address whose answer changed', () => {
    const slice = fc.tuple(fc.constantFrom('1', '2', '3'), fc.array(fc.constantFrom(...addresses), { maxLength: 3 }))
    const state = fc.record({ namespace: fc.constantFrom('a', 'b'), slices: fc.array(slice, { maxLength: 3 }) })
    const update = fc.record({ host: fc.constantFrom(...hosts), states: fc.option(fc.array(state, { maxLength: 2 }), { nil: undefined }) })
    fc.assert(
      fc.property(fc.array(update, { maxLength: 20 }), (updates) => {
        const index = new InstanceIndex()
        const last = new Map<string, readonly ServiceState[]>()
        const answers = () => new Map(addresses.map((address) => [address, index.of([address], undefined)]))
        for (const { host, states } of updates) {
          const before = answers()
          const present = last.get(host)?.flatMap(({ shards }) => shards.flatMap(({ slices }) => slices)) ?? []
          const now = states?.map(({ namespace, slices }) => {
            const made = slices.map(([key, of]) =>
              keptSlice(
                present.find((known) => known.key === key),
                { key, version: '', endpoints: of.map(endpointAt) },
              ),
            )
            return stateOf(host, namespace, made)
          })
          last.set(host, now ?? [])
          const { addresses: affected } = index.update(host, now)
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

  it('names an address that moves between services of one host name', () => {
    const index = new InstanceIndex()
    const [slice] = [keptSlice(undefined, { key: '1', version: '', endpoints: [endpointAt('10.0.0.1')] })]
    index.update('a.example', [stateOf('a.example', 'a', [slice]), stateOf('a.example', 'b', [])])
    expect(index.update('a.example', [stateOf('a.example', 'a', []), stateOf('a.example', 'b', [slice])]).addresses).to.deep.equal(
      new Set(['10.0.0.1']),
    )
    expect(index.of(['10.0.0.1'], undefined).map(({ service }) => service.namespace)).to.deep.equal(['b'])
  })
})
