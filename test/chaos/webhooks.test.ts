/** Hostile reviews: neither pages nor proxies nor other reviews wait for them (docs/operation.md, W2 to W4). */
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { clusterType } from '../../src/xds/type-urls.ts'
import { expectBounded } from '../harness/bounded-cost.ts'
import { postReview, type ReviewAnswer, reviewOf } from '../harness/reviews.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const gateway = { servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }] }
const ready = { path: '/ready', status: 200 }

describe('webhooks withstand', () => {
  const service = new Service()
  const sockets: Socket[] = []
  let proxy: XdsClient
  let pushes = 0
  before(async () => {
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    await service.start()
    proxy = await new XdsClient(service.grpcPort, sidecarNode('10.0.0.9', 'pod', 'default'), false).connect().ready()
    expect((await review()).allowed).to.equal(true)
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    // Others are served as before: reviews, and proxies.
    expect((await review()).allowed).to.equal(true)
    const name = `later-${++pushes}`
    service.write(`${name}.yaml`, serviceEntry(name, '10.0.0.2'))
    await until('the proxy to get a push', () =>
      [...(proxy.resources.get(clusterType) ?? new Map()).keys()].some((cluster) => cluster.includes(name)),
    )
  })
  after(async () => {
    proxy?.close()
    await service.dispose()
  })

  const review = () => postReview(service.httpPort, '/validate', reviewOf({ kind: 'Gateway', spec: gateway }))
  /** Posts a body several times at once. What is refused before it was received ends its connection. */
  const flood = (times: number, body: string) =>
    Promise.all(
      Array.from({ length: times }, () =>
        postReview(service.httpPort, '/validate', body).catch((error: Error): ReviewAnswer => ({ status: 0, body: String(error) })),
      ),
    )

  it('deep reviews', async () => {
    const body = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":${'[{"a":'.repeat(500_000)}`
    let answers: Promise<ReviewAnswer[]> | undefined
    await expectBounded(service.pid, { port: service.httpPort, ...ready }, { mib: 250, descriptors: 80 }, () => {
      answers = flood(8, body)
    })
    for (const { status, message } of (await answers) ?? [])
      if (status === 200) expect(message).to.equal('error decoding the review: it is nested deeper than 256 levels')
      else expect(status).to.be.oneOf([0, 503])
  })

  it('huge reviews with costly regular expressions', async () => {
    const uri = (at: number) => ({ uri: { regex: `(${'x{1,100}|'.repeat(80)}y${at}){1,10}` } })
    const http = Array.from({ length: 3000 }, (_, at) => ({ match: [uri(at)], route: [{ destination: { host: 'a' } }] }))
    const body = reviewOf({ kind: 'VirtualService', spec: { hosts: ['a'], http } })
    expect(body.length).to.be.greaterThan(2_000_000)
    let answers: Promise<ReviewAnswer[]> | undefined
    await expectBounded(service.pid, { port: service.httpPort, ...ready }, { mib: 400, descriptors: 80 }, () => {
      answers = flood(8, body)
    })
    // Small reviews do not wait for them.
    expect((await review()).allowed).to.equal(true)
    const statuses = ((await answers) ?? []).map(({ status, allowed }) => (status === 200 ? allowed : status))
    for (const status of statuses) expect(status).to.be.oneOf([false, 503, 504])
  })

  it('small reviews with costly regular expressions', async () => {
    const uri = (at: number) => ({ uri: { regex: `(${'x{1,100}|'.repeat(80)}y${at}){1,10}` } })
    const http = Array.from({ length: 60 }, (_, at) => ({ match: [uri(at)], route: [{ destination: { host: 'a' } }] }))
    const body = reviewOf({ kind: 'VirtualService', spec: { hosts: ['a'], http } })
    expect(body.length).to.be.below(65_536)
    let answers: Promise<ReviewAnswer[]> | undefined
    await expectBounded(service.pid, { port: service.httpPort, ...ready }, { mib: 300, descriptors: 80 }, () => {
      answers = flood(16, body)
    })
    expect((await review()).allowed).to.equal(true)
    for (const { status, allowed } of (await answers) ?? []) expect(status === 200 ? allowed : status).to.be.oneOf([false, 503, 504])
  })

  it('reviews that are sent slowly, or not to their end', async () => {
    await expectBounded(service.pid, { port: service.httpPort, ...ready }, { descriptors: 300 }, () => {
      for (let times = 0; times < 200; times++) {
        const socket = connect(service.httpPort, '127.0.0.1').on('error', () => undefined)
        sockets.push(socket)
        socket.write('POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"a":')
      }
    })
    expect((await review()).allowed).to.equal(true)
  })

  it('many reviews at once', async () => {
    const body = reviewOf({ kind: 'Gateway', spec: gateway })
    let answers: Promise<ReviewAnswer[]> | undefined
    await expectBounded(service.pid, { port: service.httpPort, ...ready }, { mib: 150, descriptors: 400 }, () => {
      answers = flood(500, body)
    })
    const all = (await answers) ?? []
    for (const { status, allowed } of all) expect(status === 200 ? allowed : status).to.be.oneOf([true, 503, 0])
    expect(all.filter(({ allowed }) => allowed).length).to.be.greaterThan(0)
  })
})
