/** Objects with very many mistakes, or that are very costly beside others: they take little, and others are analyzed. */
import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigObject } from '../../../protocols/data.ts'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { Claimants } from '../../../src/analysis/claimants.ts'
import { MeshFacts } from '../../../src/analysis/mesh-facts.ts'
import { viewOf } from '../../../src/analysis/mesh-view.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { mayMeet } from '../../../src/analysis/references.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { nearest } from '../../../src/model/edit-distance.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

const object = (kind: string, path: string, spec: object) => {
  const [namespace, name] = path.split('/')
  return { apiVersion: 'networking.mesh.io/v1', kind, metadata: { name, namespace }, spec }
}
const list = <Item>(length: number, item: (index: number) => Item): Item[] => Array.from({ length }, (_, index) => item(index))
const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }]
const entry = (path: string, hosts: readonly string[]) => object('ServiceEntry', path, { hosts, ports, resolution: 'DNS' })

/** The findings of an object. */
function findingsOf(key: string, ...objects: readonly object[]) {
  const mesh = new OfflineMesh(testSettings())
  mesh.add('all.yaml', objects.map((each) => JSON.stringify(each)).join('\n---\n'))
  expect(mesh.faults).to.deep.equal([])
  const analysis = new Analysis(mesh.facts())
  analysis.refresh()
  return analysis.of(key)
}

describe('the analysis of a costly object', () => {
  it('tells the first findings of a code and the number of the others, and suggests names for a few', () => {
    const http = list(200, (index) => ({ match: [{ uri: { exact: `/${index}` } }], route: [{ destination: { host: `revews-${index}.example` } }] }))
    const hosts = list(200, (index) => `reviews-${index}.example`)
    const findings = findingsOf('VirtualService/a/v', entry('a/e', hosts), object('VirtualService', 'a/v', { hosts: ['x.example'], http }))
    expect(findings).to.have.length(51)
    expect(findings.find(({ path }) => path === '')?.message).to.equal('150 more of this code in the object are not listed')
    expect(findings.filter(({ message }) => message.includes('did you mean'))).to.have.length(10)
  })

  it('is given up where the product of two sizes is too large; what was found before is told, and other objects are analyzed', () => {
    const gateway = object('Gateway', 'a/g', { selector: {}, servers: [{ port: ports[0], hosts: list(4000, (index) => `h${index}.example`) }] })
    const http = [{ route: [{ destination: { host: 'none.example' } }] }]
    const huge = object('VirtualService', 'a/v', { gateways: ['g'], hosts: list(4000, (index) => `g${index}.example`), http })
    const small = object('VirtualService', 'b/v', { hosts: ['y.example'], http })
    const codesOf = (key: string) => [...new Set(findingsOf(key, gateway, huge, small).map(({ code }) => code))].sort()
    expect(codesOf('VirtualService/a/v')).to.deep.equal(['IST0001', 'IST0101', 'IST0132'])
    expect(codesOf('VirtualService/b/v')).to.deep.equal(['IST0101'])
  })

  it('is given up where too many routes are compared with those before', () => {
    const http = list(5000, (index) => ({ match: [{ uri: { exact: `/${index}` } }], redirect: { uri: '/' } }))
    const codes = findingsOf('VirtualService/a/v', object('VirtualService', 'a/v', { hosts: ['x.example'], http })).map(({ code }) => code)
    expect(codes).to.deep.equal(['IST0001'])
  })

  it('names a few of very many objects that claim the same host', () => {
    const http = [{ redirect: { uri: '/' } }]
    const others = list(20, (index) => object('VirtualService', `a/v${index}`, { hosts: ['x.example'], http }))
    const [finding] = findingsOf('VirtualService/a/v0', ...others)
    expect(finding?.message).to.match(/VirtualService a\/v1, a\/v\d+, a\/v\d+, a\/v\d+, a\/v\d+ and 14 more: only/)
  })

  it('finds the nearest name among many, and none where all differ in too much', () => {
    expect(nearest('reviews', ['ratings', 'reviwse', 'review', 'details'])).to.equal('review')
    expect(nearest('web', ['wob', 'wabe'])).to.equal(undefined)
    expect(nearest('details', ['detials-1', 'detailz'])).to.equal('detailz')
  })

  it('of 10,000 VirtualServices with the same host looks at each of them a few times, whoever sees them', () => {
    const http = [{ redirect: { uri: '/' } }]
    const parts = { domain: 'cluster.local', names, patchFaults: () => [] }
    for (const exportTo of [undefined, ['.'], ['a', 'b']]) {
      const facts = new MeshFacts({ ...parts, mesh: viewOf(undefined, undefined, undefined, testSettings().features) })
      const [first] = parseConfigFile(
        'a.yaml',
        JSON.stringify(object('VirtualService', 'a/v', { hosts: ['x.example'], http, exportTo })),
        names,
      ).objects
      for (let index = 0; index < 10_000; index++) facts.add({ ...(first as ConfigObject), name: `v-${index}` })
      const analysis = new Analysis(facts)
      analysis.refresh()
      const messages = analysis.of('VirtualService/a/v-5').map(({ message }) => message)
      expect(messages.join()).to.contain('and 9994 more')
      expect(facts.claimantSteps).to.be.below(20 * 10_000)
    }
  })

  it('meets those others of a claim that some namespace sees beside it', () => {
    const target = fc.constantFrom<string>('*', '.', '~', 'a', 'b', 'c')
    const made = fc.record({ namespace: fc.constantFrom<string>('a', 'b', 'c'), exportTo: fc.uniqueArray(target, { maxLength: 3 }) })
    fc.assert(
      fc.property(fc.array(made, { maxLength: 12 }), fc.uniqueArray(target, { minLength: 1, maxLength: 2 }), (all, fallback) => {
        const objects = new Map(
          all.map(({ namespace, exportTo }, index): [string, ConfigObject] => [
            `VirtualService/${namespace}/v-${index}`,
            { kind: 'VirtualService', namespace, name: `v-${index}`, createdAt: 0, spec: { exportTo } } as unknown as ConfigObject,
          ]),
        )
        const claimants = new Claimants((key) => objects.get(key))
        for (const key of objects.keys()) claimants.add('claim', key)
        for (const each of objects.values()) {
          const others = claimants.all('claim').filter((other) => other !== each && mayMeet(each, other, fallback))
          expect(claimants.meeting('claim', each, fallback, 5)).to.deep.equal({ count: others.length, first: others.slice(0, 5) })
        }
      }),
      { numRuns: runs(500) },
    )
  })
})
