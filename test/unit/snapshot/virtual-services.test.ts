import { expect } from 'chai'
import { parseConfigFile } from '../../../src/config/parse.ts'
import type { VirtualService } from '../../../src/snapshot/objects.ts'
import { indexVirtualServices } from '../../../src/snapshot/virtual-services.ts'
import { names } from '../../harness/settings.ts'

/** Returns the match conditions of a root VirtualService with one match, with its delegate expanded. */
function expanded(rootMatch: object, delegateMatch: object) {
  const document = (name: string, spec: object) =>
    JSON.stringify({ apiVersion: 'networking.mesh.io/v1', kind: 'VirtualService', metadata: { name, namespace: 'ns' }, spec })
  const root = { hosts: ['a.example'], http: [{ match: [rootMatch], delegate: { name: 'rest' } }] }
  const rest = { http: [{ match: [delegateMatch], route: [{ destination: { host: 'a.example' } }] }] }
  const { objects, faults } = parseConfigFile('in', [document('root', root), document('rest', rest)].join('\n---\n'), names)
  expect(faults).to.deep.equal([])
  return indexVirtualServices(
    objects as VirtualService[],
    { domain: 'cluster.local', delegates: true, defaultExportTo: ['*'] },
    undefined,
  ).all[0]?.http.map(({ match }) => match?.[0])
}

describe('the match conditions of a delegate VirtualService', () => {
  it('are combined with those of the root', () => {
    expect(expanded({ headers: { a: { exact: '1' } } }, { headers: { b: { exact: '2' } } })).to.deep.equal([
      { headers: { a: { exact: '1' }, b: { exact: '2' } } },
    ])
  })

  it('drop routes that contradict the root in the value of a key', () => {
    expect(expanded({ headers: { a: { exact: '1' } } }, { headers: { a: { exact: '2' } } })).to.deep.equal([])
  })

  it('apply at the gateways that both name', () => {
    expect(expanded({ gateways: ['edge', 'mesh'] }, { gateways: ['ns/edge'] })).to.deep.equal([{ gateways: ['ns/edge'] }])
    expect(expanded({ gateways: ['edge'] }, { gateways: ['mesh'] })).to.deep.equal([])
    expect(expanded({ gateways: ['edge'] }, { uri: { prefix: '/' } })).to.deep.equal([{ gateways: ['ns/edge'], uri: { prefix: '/' } }])
  })

  for (const field of ['headers', 'queryParams'])
    it(`are combined if ${field} are named like inherited properties`, () => {
      const one = { [field]: { constructor: { exact: '1' } } }
      const other = { [field]: { a: { exact: '2' } } }
      for (const [root, rest] of [
        [one, other],
        [other, one],
      ] as const) {
        const [match] = expanded(root, rest) ?? []
        expect(Object.keys((match as Record<string, object>)[field] ?? {})).to.have.members(['constructor', 'a'])
      }
    })
})
