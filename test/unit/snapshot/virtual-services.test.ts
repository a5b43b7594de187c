import { expect } from 'chai'
import fc from 'fast-check'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { sameItems } from '../../../src/model/lists.ts'
import { byAge } from '../../../src/model/order.ts'
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

describe('the index of VirtualServices', () => {
  it('keeps the resolved form of those whose sources are the same, whichever others came, went or changed their age', () => {
    const parsed = (name: string, createdAt: number, spec: object): VirtualService => ({
      ...(parseConfigFile(
        'f',
        JSON.stringify({ apiVersion: 'networking.mesh.io/v1', kind: 'VirtualService', metadata: { name, namespace: 'ns' }, spec }),
        names,
      ).objects[0] as VirtualService),
      createdAt,
    })
    const pool = ['a', 'b', 'c', 'd', 'e'].flatMap((name) => [
      ...[0, 1, 2].map((age) => parsed(name, age, { hosts: [`${name}.example`], http: [{ route: [{ destination: { host: name } }] }] })),
      parsed(name, 1, { hosts: [`${name}.example`], http: [{ delegate: { name: 'rest' } }] }),
      parsed('rest', 1, { http: [{ route: [{ destination: { host: name } }] }] }),
    ])
    const resolution = { domain: 'cluster.local', delegates: true, defaultExportTo: ['*'] }
    const index = fc.uniqueArray(fc.constantFrom(...pool), { selector: ({ name }) => name })
    fc.assert(
      fc.property(index, index, (first, second) => {
        const before = indexVirtualServices(first.toSorted(byAge), resolution, undefined)
        const after = indexVirtualServices(second.toSorted(byAge), resolution, before)
        expect(after).to.deep.equal(indexVirtualServices(second.toSorted(byAge), resolution, undefined))
        for (const old of before.all) {
          const now = after.all.find(({ source }) => source === old.source)
          expect(now === old).to.equal(now !== undefined && sameItems(now.sources, old.sources))
        }
      }),
    )
  })
})
