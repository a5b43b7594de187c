/** Objects with very many mistakes, or that are very costly beside others: they take little, and others are analyzed. */
import { expect } from 'chai'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { nearest } from '../../../src/model/edit-distance.ts'
import { testSettings } from '../../harness/settings.ts'

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
    expect(nearest('reviews', ['ratings', 'reviwes', 'review', 'details'])).to.equal('review')
    expect(nearest('web', ['wbe', 'wob'])).to.equal(undefined)
    expect(nearest('details', ['detials-1', 'detailz'])).to.equal('detailz')
  })
})
