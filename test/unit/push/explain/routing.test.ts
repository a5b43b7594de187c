/** Where a proxy is said to send requests, by the resources that it is sent for documents. */
import { expect } from 'chai'
import type { Protocol } from '../../../../protocols/data.ts'
import type { SentRequest } from '../../../../protocols/messages/described-request.ts'
import type { Routing, RoutingInput } from '../../../../protocols/messages/explain.ts'
import { routing } from '../../../../src/push/explain/routing.ts'
import { withUnreadBytes } from '../../../../src/push/explain/unread-bytes.ts'
import { describedRequest } from '../../../harness/described-request.ts'
import { madeOf } from '../../../harness/made.ts'
import { networkingDocument as document } from '../../../harness/mesh-document.ts'

const entry = (name: string, more: string) =>
  document('ServiceEntry', name, `{hosts: [${name}.example], location: MESH_INTERNAL, ports: [{number: 80, name: http}], ${more}}`)

/** Where a proxy sends a GET request to port 80, by documents of its namespace. */
function routed(
  documents: readonly string[],
  host: string,
  given: Partial<SentRequest> = {},
  node: Parameters<typeof madeOf>[2] = {},
  more: Partial<Pick<RoutingInput, 'envoy' | 'missingSecrets'>> = {},
): Routing {
  const { resources, faults } = madeOf(documents.join('---\n'), {}, node)
  expect(faults).to.deep.equal([])
  return routing({
    request: { ...describedRequest, scheme: 'http', host, destinationPort: 80, ...given },
    ...{ namespace: 'shop', domain: 'cluster.local', envoy: [1, 40], missingSecrets: [], resources, ...more },
    isGateway: node.id?.startsWith('router~') === true,
  })
}

const sidecar = { id: 'sidecar~10.1.0.1~web.shop~shop.svc.cluster.local', metadata: { NAMESPACE: 'shop' } }

describe('a request that is passed on to the address that it was opened to', () => {
  const stock = entry('stock', 'resolution: STATIC, endpoints: [{address: 10.0.0.1}]')
  const anywhere = entry('anywhere', 'resolution: NONE')
  const bound = document(
    'Sidecar',
    'own',
    "{egress: [{port: {number: 80, name: http, protocol: HTTP}, bind: 127.0.0.1, captureMode: NONE, hosts: ['*/*']}]}",
  )

  it('fails where nothing is redirected to the listener: a misspelt host was said to be routed', () => {
    const { status, decidedBy, reason } = routed([stock, bound], 'stok.example', {}, sidecar)
    expect([status, decidedBy]).to.deep.equal([503, 'cluster'])
    expect(reason).to.match(/^no service or VirtualService that the proxy sees has stok\.example; did you mean "stock\.example"\?; /)
    expect(reason).to.contain('the connection was opened to the proxy itself')
    expect(routed([stock, bound], 'stock.example', {}, sidecar).decidedBy).to.equal('destination')
    const unredirected = { ...sidecar, metadata: { ...sidecar.metadata, INTERCEPTION_MODE: 'NONE' } }
    expect(routed([stock], 'stok.example', {}, unredirected).status, 'a proxy of which no listener is redirected to').to.equal(503)
  })

  it('fails there for services without addresses too', () => {
    expect(routed([anywhere, bound], 'anywhere.example', {}, sidecar)).to.include({ status: 503, decidedBy: 'cluster' })
    expect(routed([anywhere], 'anywhere.example', {}, sidecar).status).to.equal(200)
  })

  it('passes a listener by that is not bound and at loopback: nothing is redirected to it', () => {
    const unreached = document('Sidecar', 'own', "{egress: [{port: {number: 80, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ['*/*']}]}")
    const { status, listener, reason } = routed([stock, unreached], 'stock.example', {}, sidecar)
    expect([status, listener]).to.deep.equal([200, 'virtualOutbound'])
    expect(reason).to.match(
      /^no listener has port 80 but 127\.0\.0\.1_80, which no connection reaches: .* \(bind with captureMode DEFAULT\); there are/,
    )
  })

  it('is routed where connections are redirected', () => {
    const { status, reason } = routed([stock], 'stok.example', {}, sidecar)
    expect([status, reason]).to.deep.equal([
      200,
      'no service or VirtualService that the proxy sees has stok.example; did you mean "stock.example"?; the connection is passed on to the address that it was opened to',
    ])
  })
})

describe('a header on several lines', () => {
  const user = (value: string) =>
    `{name: '${value}', match: [{headers: {x-user: {exact: '${value}'}}}], route: [{destination: {host: stock.example}}]}`
  const documents = [
    entry('stock', 'resolution: STATIC, endpoints: [{address: 10.0.0.1}]'),
    document('VirtualService', 'stock', `{hosts: [stock.example], http: [${user('a,b')}, ${user('b')}]}`),
  ]
  const taken = (envoy: RoutingInput['envoy']) => {
    const { tried, changes } = routed(documents, 'stock.example', { headers: { 'x-user': ['a', 'b'] } }, sidecar, { envoy })
    return [tried.find(({ matched }) => matched)?.name, changes.filter((change) => change.includes('older than 1.39'))]
  }

  it('is compared value by value from Envoy 1.39 on, and as one text before; both are said where the release is not known', () => {
    for (const minor of [36, 38]) expect(taken([1, minor]), `1.${minor}`).to.deep.equal(['a,b', []])
    for (const minor of [39, 40]) expect(taken([1, minor]), `1.${minor}`).to.deep.equal(['b', []])
    const older =
      'route 1 (a,b) would take it if the Envoy, whose release is not known, is older than 1.39 and compares the values of a header as one text'
    expect(taken(undefined)).to.deep.equal(['b', [older]])
  })
})

describe('a request by TLS', () => {
  const edge = { id: 'router~10.1.0.2~edge.shop~shop.svc.cluster.local', metadata: { NAMESPACE: 'shop', LABELS: { app: 'edge' } } }
  const one = (protocol: string, host: string, tls: string) =>
    `{port: {number: 443, name: ${protocol.toLowerCase()}, protocol: ${protocol}}, hosts: [${host}], tls: ${tls}}`
  const gateway = document(
    'Gateway',
    'edge',
    `{selector: {app: edge}, servers: [${one('HTTPS', 'a.example', '{mode: SIMPLE, credentialName: a}')}, ${one('TLS', 'b.example', '{mode: PASSTHROUGH}')}]}`,
  )
  const route = document(
    'VirtualService',
    'b',
    '{hosts: [b.example], gateways: [edge], tls: [{match: [{sniHosts: [b.example]}], route: [{destination: {host: b.example}}]}]}',
  )
  const b = entry('b', 'resolution: STATIC, endpoints: [{address: 10.0.0.1}]')

  it('is taken by its server name, whichever host it names', () => {
    const to = (host: string, sni: string) => routed([gateway], host, { scheme: 'https', destinationPort: 443, sni }, edge)
    const [closed, unrouted] = [
      [0, 'no filter chain of the listener matches'],
      [404, 'no service or VirtualService that the proxy sees has other.example'],
    ]
    const answerOf = ({ status, reason }: Routing) => [status, reason]
    expect(answerOf(to('other.example', 'a.example'))).to.deep.equal(unrouted)
    expect(answerOf(to('a.example', 'other.example'))).to.deep.equal(closed)
    expect(answerOf(to('a.example', ''))).to.deep.equal(closed)
  })

  it('needs a certificate of the client where the mode is MUTUAL, which is said to be taken for granted', () => {
    const assumed = (documents: string) => routed([documents], 'a.example', { scheme: 'https', destinationPort: 443, sni: 'a.example' }, edge).assumed
    expect(assumed(gateway)).to.deep.equal([])
    expect(assumed(gateway.replace('SIMPLE', 'MUTUAL'))).to.deep.equal([
      'the TLS of the port: the client is taken to present a certificate that the proxy accepts; connections of clients without one are closed',
    ])
  })

  it('is closed at a port of plain text', () => {
    const plain = document('Gateway', 'plain', "{selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}")
    const to = (scheme: SentRequest['scheme']) => routed([plain], 'a.example', { scheme, sni: 'a.example' }, edge)
    expect(to('https')).to.include({
      status: 0,
      decidedBy: 'listener',
      reason: 'port 80 is plain text: the proxy reads requests of http there, and none by TLS (https)',
    })
    expect(to('http').status).to.equal(404)
  })

  it('arrives with the server name of the client, or with that of the mutual TLS around it', () => {
    const names = (documents: readonly string[]) =>
      routed(documents, 'b.example', { scheme: 'https', destinationPort: 443, sni: 'b.example' }, edge).arrivals.flatMap(({ endpoints }) =>
        endpoints.map(({ sni, isIdentified }) => [sni, isIdentified]),
      )
    expect(names([gateway, route, b])).to.deep.equal([['b.example', false]])
    expect(routed([gateway, route, b], 'b.example', { scheme: 'https', destinationPort: 443, sni: 'b.example' }, edge).protocol).to.equal('tcp')
    const mutual = document('DestinationRule', 'b', '{host: b.example, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}')
    expect(names([gateway, route, b, mutual])).to.deep.equal([['outbound_.80_._.b.example', true]])
  })

  it('of the proxy fails without the secret that a DestinationRule names', () => {
    const plain = [
      document('Gateway', 'edge', "{selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}"),
      document('VirtualService', 'b', '{hosts: [b.example], gateways: [edge], http: [{route: [{destination: {host: b.example}}]}]}'),
      document('DestinationRule', 'b', '{host: b.example, trafficPolicy: {tls: {mode: MUTUAL, credentialName: key}}}'),
      b,
    ]
    const sent = (missingSecrets: readonly string[]) => routed(plain, 'b.example', {}, edge, { missingSecrets })
    expect(sent([])).to.include({ status: 200, decidedBy: 'destination' })
    expect(sent(['kubernetes://key'])).to.include({
      status: 503,
      decidedBy: 'cluster',
      reason:
        'TLS to it cannot begin: kubernetes://key does not exist, or lacks what is needed, or the gateway may not read it (tls.credentialName of the DestinationRule); one that was sent to the proxy before it was removed stays in use there',
    })
  })

  it('fails at a port of plain text of the destination, unless its own TLS is begun before, and so does plain text at a port of TLS', () => {
    const to = (scheme: SentRequest['scheme'], protocol: Protocol, documents: readonly string[]) => {
      const { status, decidedBy, reason } = withUnreadBytes(
        routed(documents, 'b.example', { scheme, destinationPort: scheme === 'https' ? 443 : 80, sni: 'b.example' }, edge),
        { 'outbound|80||b.example': protocol },
      )
      return [status, decidedBy, /port 80 of b\.example is [a-z]+: ([^(]*?)(?: \(|$)/.exec(reason)?.[1] ?? '']
    }
    const passed = [gateway, route, b]
    const plain = [
      document('Gateway', 'edge', "{selector: {app: edge}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}"),
      document('VirtualService', 'b', '{hosts: [b.example], gateways: [edge], http: [{route: [{destination: {host: b.example}}]}]}'),
      b,
    ]
    const rule = (mode: string) => document('DestinationRule', 'b', `{host: b.example, trafficPolicy: {tls: {mode: ${mode}}}}`)
    const [sent, closed, failed] = [
      [200, 'destination', ''],
      [0, 'cluster'],
      [503, 'cluster'],
    ]
    expect(to('https', 'http', passed)).to.deep.equal([...closed, 'plain text is expected there, and TLS arrives, which nothing on the way ends'])
    expect(to('https', 'http', [...passed, rule('ISTIO_MUTUAL')]), 'within mutual TLS of the mesh').to.include(
      'plain text is expected there, and TLS arrives, which nothing on the way ends',
    )
    expect(to('https', 'tls', [...passed, rule('SIMPLE')])).to.deep.equal([
      ...closed,
      'the TLS of the client arrives within that which the proxy begins',
    ])
    for (const protocol of ['tls', 'https', 'tcp', 'unknown'] as const) expect(to('https', protocol, passed), protocol).to.deep.equal(sent)
    for (const protocol of ['tls', 'https'] as const)
      expect(to('http', protocol, plain), protocol).to.deep.equal([...failed, 'TLS is expected there, and plain text arrives'])
    expect(to('http', 'https', [...plain, rule('SIMPLE')])).to.deep.equal(sent)
    expect(to('http', 'http', [...plain, rule('SIMPLE')]), 'a port of which plain text is what workloads send').to.deep.equal(sent)
    expect(to('http', 'http', plain)).to.deep.equal(sent)
  })
})

describe('a mirror', () => {
  it('to a service that is not known is said to copy nothing', () => {
    const to = (host: string) =>
      routed(
        [
          entry('a', 'resolution: STATIC, endpoints: [{address: 10.0.0.1}]'),
          entry('b', 'resolution: STATIC, endpoints: [{address: 10.0.0.2}]'),
          document('VirtualService', 'a', `{hosts: [a.example], http: [{route: [{destination: {host: a.example}}], mirror: {host: ${host}}}]}`),
        ],
        'a.example',
        {},
        sidecar,
      ).changes.filter((change) => change.includes('(mirror)'))
    expect(to('b.example')).to.deep.equal(['all requests are sent to b.example too, whose answers do not count (mirror)'])
    expect(to('nobody.example')).to.deep.equal(['nothing is mirrored: no service that the proxy sees is nobody.example (mirror)'])
  })
})
