import { expect } from 'chai'
import type { Endpoint } from '../../../protocols/data.ts'
import { type MockService, type MockSettings, mockChurn, mockRollout, mockServices, rolloutSteps } from '../../../src/registry/mock.ts'

const settings: MockSettings = {
  services: 300,
  endpoints: 4,
  namespaces: 3,
  proxiesPerService: 2,
  churnPerSecond: 0,
  largeServices: 0,
  largeEndpoints: 0,
  seed: 7,
  domain: 'cluster.local',
  cluster: 'east',
}

const endpointsOf = ({ slices }: MockService): readonly Endpoint[] => slices.flatMap(({ endpoints }) => endpoints)

describe('the Mock registry', () => {
  it('creates the same services and the same churn from the same seed', () => {
    expect(mockServices(settings)).to.deep.equal(mockServices(settings))
    const services = mockServices(settings)
    const steps = (seed: number) => Array.from({ length: 20 }, (_, step) => mockChurn({ ...settings, seed }, services, step))
    expect(steps(7)).to.deep.equal(steps(7))
    expect(steps(7)).not.to.deep.equal(steps(8))
  })

  it('spreads services over namespaces, with a unique address for every workload', () => {
    const services = mockServices(settings)
    expect(new Set(services.map(({ service }) => service.namespace))).to.deep.equal(new Set(['mock-0', 'mock-1', 'mock-2']))
    const addresses = services.flatMap((service) => endpointsOf(service).map((endpoint) => endpoint.address))
    expect(new Set(addresses).size).to.equal(1200)
    expect(services.flatMap(endpointsOf).filter((endpoint) => endpoint.workload !== '')).to.have.length(600)
  })

  it('never replaces a workload that a load client impersonates', () => {
    const services = mockServices(settings)
    for (let step = 0; step < 50; step++) {
      const change = mockChurn(settings, services, step)
      const before = services[change?.index ?? 0]
      const [slice] = before?.slices ?? []
      expect(change?.slice.endpoints.slice(0, 2)).to.deep.equal(slice?.endpoints.slice(0, 2))
      expect(change?.slice.endpoints).not.to.deep.equal(slice?.endpoints)
    }
  })

  it('rolls large services out one after the other, and each workload from not ready over ready to gone', () => {
    const large = { ...settings, services: 2, largeServices: 2, largeEndpoints: 250 }
    const services = mockServices(large)
    expect(services.map(({ service, slices }) => [service.name, slices.length])).to.deep.equal([
      ['mock-0', 1],
      ['mock-1', 1],
      ['large-0', 3],
      ['large-1', 3],
    ])
    const addresses = () => services.slice(2).map((service) => endpointsOf(service).map(({ address }) => address))
    const before = addresses()
    const roll = (step: number) => {
      for (const { index, slice } of mockRollout(large, services, step)) {
        const { service, slices } = services[index] as MockService
        expect(slices.some(({ key, version }) => key === slice.key && version !== slice.version)).to.equal(true)
        services[index] = { service, slices: slices.map((known) => (known.key === slice.key ? slice : known)) }
      }
    }
    const readiness = () => {
      const found: Record<string, number> = {}
      for (const { readiness: of = 'ready' } of endpointsOf(services[2] as MockService)) found[of] = (found[of] ?? 0) + 1
      return found
    }
    roll(0)
    expect(readiness()).to.deep.equal({ ready: 250, unready: 1 })
    for (let step = 1; step < 200; step++) {
      roll(step)
      expect(readiness()).to.deep.equal({ ready: 250, unready: 1, terminating: 1 })
    }
    for (let step = 200; step < rolloutSteps(large); step++) roll(step)
    expect(readiness()).to.deep.equal({ ready: 250 })
    const between = addresses()
    expect(between[0]?.filter((address) => before[0]?.includes(address))).to.deep.equal([])
    expect(between[1]).to.deep.equal(before[1])
    for (let step = rolloutSteps(large); step < 2 * rolloutSteps(large); step++) roll(step)
    expect(addresses()[1]?.filter((address) => before[1]?.includes(address))).to.deep.equal([])
    expect(new Set(addresses().flat()).size).to.equal(500)
  })
})
