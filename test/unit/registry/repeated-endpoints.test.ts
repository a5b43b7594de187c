import { expect } from 'chai'
import fc from 'fast-check'
import type { Endpoint, EndpointSlice, Service } from '../../../protocols/data.ts'
import { Faults } from '../../../src/model/faults.ts'
import { portOf, servesPort } from '../../../src/model/workload.ts'
import { MergedServices, type ServiceState } from '../../../src/registry/merged-services.ts'
import { RepeatedEndpoints } from '../../../src/registry/repeated-endpoints.ts'
import { selectedSlices, sliceOf } from '../../../src/registry/slices.ts'
import { runs } from '../../harness/seed.ts'

const endpoint = (address: string, changes: Partial<Endpoint> = {}): Endpoint => ({
  ...{ address, ports: { http: 8080 }, labels: {}, locality: '', network: '', weight: 1, serviceAccount: '', namespace: 'ns', workload: '' },
  ...changes,
})
const slice = (key: string, ...endpoints: Endpoint[]) => sliceOf({ key, version: '', endpoints })
const key = 'ns/a.com'
const ports = ['http', 'grpc', 'tcp'].map((name, index) => ({ number: 80 + index, name, protocol: 'http' as const, targetPort: 0 }))
const service = (provider: string): Service => ({
  ...{ hostname: 'a.com', namespace: 'ns', name: 'a', provider, cluster: 'c', addresses: [], resolution: 'static', external: false },
  ...{ exportTo: [], serviceAccounts: [], selector: undefined, createdAt: 0, ports },
})

/** The ports of all endpoints that traffic can go to, each as `readiness address name number`. */
const portsIn = (slices: readonly EndpointSlice[]): string[] =>
  slices
    .flatMap(({ endpoints }) => endpoints)
    .flatMap((each) =>
      ports.flatMap((port) => (servesPort(each, port) ? [`${each.readiness ?? 'ready'} ${each.address} ${port.name} ${portOf(each, port)}`] : [])),
    )

describe('endpoints that several slices of a Service have (docs/resources.md, O7)', () => {
  it('are told once by a cluster, and still so after a change of the other slice', () => {
    const services = new MergedServices(new Faults())
    const now = (): ServiceState | undefined => services.merge().services.get('a.com')?.[0]
    const addresses = () => now()?.endpoints.map(({ address }) => address)
    services.set('Orchestrator/c', key, {
      service: service('Orchestrator'),
      slices: [slice('one', endpoint('10.0.0.1'), endpoint('10.0.0.2')), slice('two', endpoint('10.0.0.2'), endpoint('10.0.0.3'))],
    })
    expect(addresses()).to.deep.equal(['10.0.0.1', '10.0.0.2', '10.0.0.3'])
    services.setSlice('Orchestrator/c', key, 'one', slice('one', endpoint('10.0.0.1')))
    expect(addresses()).to.deep.equal(['10.0.0.1', '10.0.0.2', '10.0.0.3'])
    services.setSlice('Orchestrator/c', key, 'two', undefined)
    expect(addresses()).to.deep.equal(['10.0.0.1'])
  })

  it('keep what was told while it is equal', () => {
    const repeated = new RepeatedEndpoints()
    const [one, two] = [slice('one', endpoint('10.0.0.1')), slice('two', endpoint('10.0.0.1'), endpoint('10.0.0.2'))]
    const first = repeated.without([one, two], ports)
    expect(first[0]).to.equal(one)
    expect(repeated.without([slice('one', endpoint('10.0.0.1'), endpoint('10.0.0.9')), two], ports)[1]).to.equal(first[1])
    const apart = [one, slice('two', endpoint('10.0.0.2'))]
    expect(repeated.without(apart, ports)).to.equal(apart)
  })

  it('are left as they are where entries tell them, or where they are WorkloadEntries', () => {
    const services = new MergedServices(new Faults())
    services.set('ServiceEntry/ns/a', key, {
      service: service('ServiceEntry'),
      slices: [slice('', endpoint('10.0.0.1', { weight: 3 }), endpoint('10.0.0.1'))],
    })
    expect(services.merge().services.get('a.com')?.[0]?.endpoints).to.have.length(2)
    const entries = selectedSlices([endpoint('10.0.0.1', { weight: 3 }), endpoint('10.0.0.1')], []).map((each) => sliceOf(each))
    expect(new RepeatedEndpoints().without(entries, ports)).to.equal(entries)
  })

  it('have every port of every address once for each readiness, whatever the slices are', () => {
    const one = fc.record({
      address: fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3'),
      ports: fc.dictionary(fc.constantFrom('http', 'grpc', 'tcp'), fc.constantFrom(1, 2)),
      readiness: fc.constantFrom('ready', 'unready', 'terminating', undefined),
      isWhole: fc.boolean(),
    })
    const slices = fc.array(fc.array(one, { maxLength: 4 }), { maxLength: 4 })
    fc.assert(
      fc.property(slices, (lists) => {
        const all = lists.map((list, index) =>
          slice(
            `${index}`,
            ...list.map(({ address, ports, readiness, isWhole }) =>
              endpoint(address, { ports, ...(readiness ? { readiness } : {}), ...(isWhole ? {} : { serves: Object.keys(ports).slice(0, 1) }) }),
            ),
          ),
        )
        const told = portsIn(new RepeatedEndpoints().without(all, ports))
        expect(told).to.deep.equal([...new Set(portsIn(all))])
      }),
      { numRuns: runs(500) },
    )
  })
})
