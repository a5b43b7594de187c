/** A fault in the routes of one tenant costs the others nothing. */
import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { names, testSettings } from '../../harness/settings.ts'

const services = 3000
const entry = (name: string) =>
  `{apiVersion: networking.mesh.io/v1, kind: ServiceEntry, metadata: {name: ${name}, namespace: ns}, spec: {hosts: [${name}.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}}`
const route = (name: string, match: string) =>
  `{apiVersion: networking.mesh.io/v1, kind: VirtualService, metadata: {name: ${name}, namespace: ns}, spec: {hosts: [${name}.com], http: [{match: [{uri: ${match}}], route: [{destination: {host: ${name}.com}}]}, {route: [{destination: {host: ${name}.com}}]}]}}`
const large = `{regex: "(${'[a-zA-Z0-9]{40}'.repeat(5)})"}`

for (const takesVirtualHosts of [false, true])
  describe(`a fault in one route, ${takesVirtualHosts ? 'virtual hosts by themselves' : 'whole route configurations'}`, () => {
    const planner = new Planner(testSettings())
    const set = (...documents: string[]) => {
      const { objects, faults } = parseConfigFile('f', documents.join('\n---\n'), names)
      expect(faults).to.deep.equal([])
      for (const object of objects) planner.state.setConfig(configKey(object), object)
      planner.advance()
      planner.takePush()
    }
    const reported = () => planner.faults.all().map(({ objects }) => objects.join())
    /** The least CPU of a change of a route, in milliseconds. */
    const cost = () => {
      const costs = Array.from({ length: 15 }, (_, round) => {
        const before = process.cpuUsage()
        set(route('s7', `{prefix: /${round}-${Math.trunc(before.user)}}`))
        const { user, system } = process.cpuUsage(before)
        return (user + system) / 1000
      })
      return Math.min(...costs)
    }

    before(() => {
      set(...Array.from({ length: services }, (_, index) => entry(`s${index}`)), route('s7', '{prefix: /}'), route('s9', '{prefix: /}'))
      const node = readNode({ id: 'sidecar~10.1.0.1~p.ns~ns.svc.cluster.local', metadata: {}, locality: undefined }, names, false)
      planner.connect('p', { ...node, takesVirtualHosts })
      planner.takePush()
    })

    it('does not slow the change of another one, and stays reported until it is mended', () => {
      const sound = cost()
      set(route('s9', large))
      expect(reported()).to.deep.equal(['VirtualService/ns/s9'])
      const beside = cost()
      expect(reported()).to.deep.equal(['VirtualService/ns/s9'])
      expect(beside, `ms, without the fault ${sound}`).to.be.lessThan(2 * sound + 1)
      set(route('s9', '{prefix: /mended}'))
      expect(reported()).to.deep.equal([])
      set(route('s7', large))
      set(route('s9', large))
      expect(reported()).to.have.members(['VirtualService/ns/s7', 'VirtualService/ns/s9'])
      set(route('s7', '{prefix: /mended}'))
      expect(reported()).to.deep.equal(['VirtualService/ns/s9'])
    })
  })
