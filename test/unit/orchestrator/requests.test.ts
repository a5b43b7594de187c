import { expect } from 'chai'
import { Lines } from '../../../src/orchestrator/lines.ts'
import { ListItems } from '../../../src/orchestrator/list-items.ts'
import { formatOf } from '../../../src/orchestrator/object-format.ts'
import { RequestBudget } from '../../../src/orchestrator/request-budget.ts'
import { isNewer } from '../../../src/orchestrator/resource-versions.ts'
import {
  coreResource,
  groupResource,
  inNamespaces,
  listPath,
  named,
  namedResource,
  type Resource,
  requestPath,
} from '../../../src/orchestrator/resources.ts'
import { bookmarkOf, codeOf, eventOf, keyAndVersion, objectOf, readPage, refusalOf } from '../../../src/orchestrator/responses.ts'

describe('requests to an API server', () => {
  it('are as many as the burst at once, then as many a second as permitted', () => {
    const budget = new RequestBudget(10, 3, 0)
    expect([0, 0, 0, 0, 0].map((now) => budget.take(now))).to.deep.equal([0, 0, 0, 100, 200])
    // Those that wait have their places: the next one is behind them.
    expect(budget.take(100)).to.equal(200)
    expect([10_000, 10_000, 10_000, 10_000].map((now) => budget.take(now))).to.deep.equal([0, 0, 0, 100])
    const unlimited = new RequestBudget(0, 1, 0)
    expect([0, 0].map((now) => unlimited.take(now))).to.deep.equal([0, 0])
  })

  it('are for each of some namespaces, unless objects have none or are of one', () => {
    const paths = (resource: Resource, ...namespaces: readonly string[]) => inNamespaces(resource, namespaces).map(({ path }) => path)
    const services = coreResource('Service', 'services')
    expect(paths(services)).to.deep.equal(['/api/v1/services'])
    expect(paths(services, 'a', 'b')).to.deep.equal(['/api/v1/namespaces/a/services', '/api/v1/namespaces/b/services'])
    expect(paths(groupResource('Sidecar', 'networking.mesh.io', 'v1', 'sidecars'), 'a')).to.deep.equal([
      '/apis/networking.mesh.io/v1/namespaces/a/sidecars',
    ])
    for (const one of [coreResource('Node', 'nodes'), namedResource('ConfigMap', 'configmaps', 'c', 'mesh'), { ...services, namespace: 'c' }])
      expect(paths(one, 'a', 'b')).to.deep.equal([one.path])
  })

  it('ask for a streamed list, a page, or a watch, which the server is to end after a time that differs', () => {
    const pods = coreResource('Pod', 'pods')
    expect(requestPath(pods, { mode: 'stream' }, 0)).to.equal(
      '/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=300&sendInitialEvents=true&resourceVersionMatch=NotOlderThan',
    )
    expect(requestPath(pods, { mode: 'watch', version: '7' }, 0.5)).to.equal(
      '/api/v1/pods?watch=1&allowWatchBookmarks=true&timeoutSeconds=450&resourceVersion=7',
    )
    expect(requestPath(pods, { mode: 'page', next: '' }, 0)).to.equal('/api/v1/pods?limit=500')
    const slices = groupResource('EndpointSlice', 'discovery.k8s.io', 'v1', 'endpointslices')
    expect([slices.path, slices.name]).to.deep.equal(['/apis/discovery.k8s.io/v1/endpointslices', 'endpointslices.discovery.k8s.io'])
    expect(listPath(pods.path, { mode: 'page', next: 'a=b' })).to.equal('/api/v1/pods?limit=500&continue=a%3Db')
    expect(requestPath(pods, { mode: 'whole' }, 0)).to.equal('/api/v1/pods')
    const some = named(pods, 'a')
    expect([listPath(some.path, { mode: 'page', next: '' }), requestPath(some, { mode: 'page', next: '' }, 0)]).to.deep.equal(
      Array(2).fill('/api/v1/pods?fieldSelector=metadata.name%3Da&limit=500'),
    )
  })
})

describe('responses of an API server', () => {
  it('are cut into lines, wherever the bytes are divided', () => {
    const text = '{"a":"ü"}\n\n{"b":2}\n{"c"'
    const bytes = Buffer.from(text)
    for (let size = 1; size <= bytes.length; size++) {
      const lines = new Lines(100)
      const found: string[] = []
      for (let start = 0; start < bytes.length; start += size) found.push(...lines.take(bytes.subarray(start, start + size)))
      expect(found).to.deep.equal(['{"a":"ü"}', '{"b":2}'])
    }
    expect(() => new Lines(5).take(Buffer.from('123456'))).to.throw('an event has more than 5 bytes')
  })

  it('are events, bookmarks and errors', () => {
    expect(eventOf({ type: 'ADDED', object: { a: 1 } })).to.deep.equal({ type: 'ADDED', object: { a: 1 } })
    for (const value of [[], { type: 'OTHER', object: {} }, { type: 'ADDED' }]) expect(() => eventOf(value)).to.throw()
    const watch = formatOf('application/json', undefined).watch(100)
    expect([...watch.take(Buffer.from('{"type":"ADDED","object":{"a":1}}\n'))]).to.deep.equal([{ type: 'ADDED', object: { a: 1 } }])
    expect(() => [...watch.take(Buffer.from('{\n'))]).to.throw()
    expect(bookmarkOf({ metadata: { resourceVersion: '7' } })).to.deep.equal({ version: '7', endsList: false })
    expect(bookmarkOf({ metadata: { resourceVersion: '7', annotations: { 'k8s.io/initial-events-end': 'true' } } }).endsList).to.equal(true)
    expect(codeOf({ code: 410, message: 'too old' })).to.deep.equal({ code: 410, reason: 'too old', askedMs: 0 })
  })

  it('are pages of lists, whose objects are told as they come, wherever the bytes are divided', () => {
    const objects = [{ metadata: { namespace: 'n', name: 'ü"]}', resourceVersion: '3' }, items: [{ a: [1] }] }, {}, { text: '\\"items":[{' }]
    const around = '"metadata":{"resourceVersion":"9","continue":"t","items":[{}]}'
    for (const text of [
      `{${around},"items":[${objects.map((each) => JSON.stringify(each))}]}\n`,
      `{\n  "items" : [\n${objects.map((each) => JSON.stringify(each, undefined, 2)).join(' ,\n')} ] , "x": [[1]],\n${around}}`,
    ]) {
      const bytes = Buffer.from(text)
      for (let size = 1; size <= bytes.length; size++) {
        const items = new ListItems(200)
        const found: string[] = []
        for (let start = 0; start < bytes.length; start += size) found.push(...items.take(bytes.subarray(start, start + size)))
        expect(found.map(objectOf)).to.deep.equal(objects)
        expect(items.end()).to.deep.equal({ version: '9', next: 't' })
      }
    }
    expect(() => new ListItems(5).take(Buffer.from('{"items":[{"a":"bcdef"}]'))).to.throw('an object of a list has more than 5 bytes')
    expect(() => new ListItems(5).take(Buffer.alloc(65_537, 'x'))).to.throw('a list has more than 65536 bytes besides its objects')
    expect(() => new ListItems(99).end()).to.throw()
    for (const text of ['7', '[]', '{']) expect(() => objectOf(text)).to.throw()
  })

  it('are pages with a version', () => {
    expect(readPage('{"metadata":{"resourceVersion":"9"},"items":null}')).to.deep.equal({ version: '9', next: '' })
    for (const text of ['', '{}', '{"items":[]}', '{"metadata":{},"items":[]}']) expect(() => readPage(text)).to.throw()
    expect(keyAndVersion({ metadata: { name: 'n1' } })).to.deep.equal(['/n1', ''])
  })

  it('are refusals with a reason, and the time that the server asks for', () => {
    const { messageIn } = formatOf('application/json', undefined)
    const refusal = (status: number, body: string, retryAfter?: string) => refusalOf(status, messageIn(Buffer.from(body)), retryAfter)
    expect(refusal(403, '{"message":"pods is forbidden"}')).to.deep.equal({ code: 403, reason: 'pods is forbidden', askedMs: 0 })
    expect(refusal(429, 'too many', '3')).to.deep.equal({ code: 429, reason: 'too many', askedMs: 3000 })
    expect(refusal(503, '', 'soon')).to.deep.equal({ code: 503, reason: 'status 503', askedMs: 0 })
  })

  it('have versions that are numbers, of any length', () => {
    expect(isNewer('10', '9')).to.equal(true)
    expect(isNewer('9', '10')).to.equal(false)
    expect(isNewer('9', '9')).to.equal(false)
    expect(isNewer('99999999999999999999', '99999999999999999998')).to.equal(true)
    expect(isNewer('1', undefined)).to.equal(true)
    expect(isNewer('x', 'y')).to.equal(true)
    expect(isNewer('x', 'x')).to.equal(false)
  })
})
