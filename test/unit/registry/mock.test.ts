import { expect } from 'chai'
import { type MockSettings, mockChurn, mockServices } from '../../../src/registry/mock.ts'

const settings: MockSettings = {
  services: 300,
  endpoints: 4,
  namespaces: 3,
  proxiesPerService: 2,
  churnPerSecond: 0,
  seed: 7,
  domain: 'cluster.local',
  cluster: 'east',
}

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
    const addresses = services.flatMap(({ endpoints }) => endpoints.map((endpoint) => endpoint.address))
    expect(new Set(addresses).size).to.equal(1200)
    expect(services.flatMap(({ endpoints }) => endpoints.filter((endpoint) => endpoint.workload !== ''))).to.have.length(600)
  })

  it('never replaces a workload that a load client impersonates', () => {
    const services = mockServices(settings)
    for (let step = 0; step < 50; step++) {
      const change = mockChurn(settings, services, step)
      const before = services[change?.index ?? 0]
      expect(change?.replaced.endpoints.slice(0, 2)).to.deep.equal(before?.endpoints.slice(0, 2))
      expect(change?.replaced.endpoints).not.to.deep.equal(before?.endpoints)
    }
  })
})
