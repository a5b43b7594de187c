import { expect } from 'chai'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { meshDefinition } from '../../../src/orchestrator/mesh-definitions.ts'

const names = meshNames('mesh.io')
const established = {
  conditions: [
    { type: 'NamesAccepted', status: 'True' },
    { type: 'Established', status: 'True' },
  ],
}
const definition = (group: string, kind: string, versions: Readonly<Record<string, boolean>>, others: object = {}, status: object = established) => ({
  spec: {
    ...{ group, scope: 'Namespaced', names: { kind, plural: `${kind.toLowerCase()}s` } },
    versions: Object.entries(versions).map(([name, served]) => ({ name, served })),
    ...others,
  },
  status,
})

describe('definitions of kinds of the mesh', () => {
  it('are those of the groups of the mesh and of the alias, with the newest known version that is served', () => {
    const read = (group: string, versions: Readonly<Record<string, boolean>>) => {
      const { kind, isAlias, version, fault } = meshDefinition(definition(group, 'Gateway', versions), names) ?? {}
      return [kind?.name, isAlias, version, fault]
    }
    expect(read('networking.mesh.io', { v1alpha3: true, v1beta1: true, v1: true })).to.deep.equal(['Gateway', false, 'v1', undefined])
    expect(read('networking.istio.io', { v1: false, v1beta1: true, v1alpha3: true, v7: true })).to.deep.equal(['Gateway', true, 'v1beta1', undefined])
  })

  it('are not those of other groups, whatever their kinds are called', () => {
    for (const group of ['gateway.networking.k8s.io', 'security.mesh.io', 'networking.mesh.io.example.com', 'mesh.io'])
      expect(meshDefinition(definition(group, 'Gateway', { v1: true }), names), group).to.equal(undefined)
    expect(meshDefinition(definition('networking.mesh.io', 'Gateways', { v1: true }), names)).to.equal(undefined)
    expect(meshDefinition(definition('networking.mesh.io', 'Gateway', { v1: true }, { names: { kind: 'Gateway', plural: '../x' } }), names)).to.equal(
      undefined,
    )
    for (const value of [{}, { spec: 7 }, { spec: { names: [], group: {} } }, { spec: { group: 'networking.mesh.io', names: { kind: 'Gateway' } } }])
      expect(meshDefinition(value, names)).to.equal(undefined)
  })

  it('say why objects cannot be read', () => {
    const fault = (versions: Readonly<Record<string, boolean>>, others: object = {}, status: object = established) =>
      meshDefinition(definition('networking.mesh.io', 'Gateway', versions, others, status), names)?.fault
    expect(fault({ v2: true, v1: false })).to.equal('it serves none of the versions v1alpha3, v1beta1, v1')
    expect(fault({ v1: true }, { scope: 'Cluster' })).to.equal('its scope is not Namespaced')
    for (const status of [{}, { conditions: [{ type: 'Established', status: 'False' }] }])
      expect(fault({ v1: true }, {}, status)).to.equal('it is not established')
    expect(fault({ v1: true }, { names: { kind: 'Gateway', plural: 'doors' } })).to.equal('its plural is not gateways')
    expect(fault({ v1: true }, { versions: 7 })).to.equal('it serves none of the versions v1alpha3, v1beta1, v1')
  })
})
