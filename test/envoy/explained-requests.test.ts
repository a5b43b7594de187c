/** Where a proxy is said to send a request is where the stock Envoy sends it: generated requests to generated routes of a gateway. */
import { expect } from 'chai'
import fc from 'fast-check'
import { freePort } from '../../bench/ports.ts'
import type { RouteRequestResponse } from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { AdminClient } from '../../src/cli/admin-client.ts'
import { call, exchange, HttpBackend } from '../harness/backend.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { seed } from '../harness/seed.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const hosts = ['a.example', 'b.example', '*.wild.example', 'deep.wild.example'] as const

const text = fc.constantFrom<object>(
  ...[
    { exact: 'anna' },
    { prefix: 'an' },
    { regex: 'a.*a' },
    { regex: '*' },
    { exact: '' },
    { prefix: '' },
    { exact: 'a b' },
    { regex: '\\d+' },
    { exact: 'anna,an' },
    { regex: '.*,.*' },
  ],
)
const uri = fc.constantFrom<object>(
  ...[
    { prefix: '/a' },
    { prefix: '/a/b' },
    { prefix: '/A' },
    { exact: '/a' },
    { exact: '/a/b' },
    { exact: '/' },
    { regex: '/a/[bc]+' },
    { regex: '/.*x' },
  ],
)
/** A value in one of `outOf` cases. */
const oneIn = <Value>(outOf: number, value: fc.Arbitrary<Value>) =>
  fc.oneof({ arbitrary: fc.constant(undefined), weight: outOf - 1 }, { arbitrary: value, weight: 1 })
const match = fc.record({
  uri: oneIn(2, uri),
  ignoreUriCase: oneIn(3, fc.boolean()),
  method: oneIn(4, fc.constantFrom<object>({ exact: 'GET' }, { regex: 'P.*' }, { prefix: 'P' })),
  scheme: oneIn(9, fc.constantFrom<object>({ exact: 'http' }, { exact: 'https' })),
  authority: oneIn(9, fc.constantFrom<object>({ exact: 'a.example' }, { prefix: 'b' })),
  headers: oneIn(3, fc.record({ 'x-user': text })),
  withoutHeaders: oneIn(6, fc.record({ 'x-user': text })),
  queryParams: oneIn(4, fc.record({ q: text })),
})
const rules = fc.array(fc.array(match, { minLength: 1, maxLength: 2 }), { minLength: 3, maxLength: 6 })

/** Rules that answer, delay or change requests, by the first part of their host. */
const live = 'route: [{destination: {host: live.example}}]'
const cors = 'corsPolicy: {allowOrigins: [{exact: https://shop.example}], allowMethods: [GET]'
const settings = {
  aborted: `{fault: {abort: {httpStatus: 418, percentage: {value: 100}}}, ${live}}`,
  'aborted-grpc': `{fault: {abort: {grpcStatus: UNAVAILABLE, percentage: {value: 100}}}, ${live}}`,
  'aborted-redirect': '{fault: {abort: {httpStatus: 503, percentage: {value: 100}}}, redirect: {uri: /there}}',
  'aborted-answer': '{fault: {abort: {httpStatus: 503, percentage: {value: 100}}}, directResponse: {status: 202}}',
  'aborted-never': `{fault: {abort: {httpStatus: 503, percentage: {value: 0}}}, ${live}}`,
  'aborted-seldom': `{fault: {abort: {httpStatus: 503, percentage: {value: 0.0001}}, delay: {fixedDelay: 0.1s, percentage: {value: 100}}}, ${live}}`,
  answer: '{directResponse: {status: 202}}',
  redirect: '{redirect: {uri: /there, redirectCode: 307}}',
  cors: `{${cors}}, ${live}}`,
  'cors-ignored': `{${cors}, unmatchedPreflights: IGNORE}, ${live}}`,
  'cors-aborted': `{${cors}}, fault: {abort: {httpStatus: 418, percentage: {value: 100}}}, ${live}}`,
  'cors-redirect': `{${cors}}, redirect: {uri: /there}}`,
  prefix: `{match: [{uri: {prefix: /a}}], rewrite: {uri: /b, authority: other.example}, ${live}}`,
  exact: `{match: [{uri: {exact: /a/b}}], rewrite: {uri: /c}, ${live}}`,
  regex: `{match: [{uri: {regex: /a/.*}}], rewrite: {uri: /d}, ${live}}`,
  groups: `{rewrite: {uriRegexRewrite: {match: "/a/(.*)", rewrite: "/$/\\\\1"}}, ${live}}`,
  headers: `{headers: {request: {set: {x-user: bob}, add: {x-more: m}, remove: [x-gone]}, response: {set: {x-answer: given}}}, timeout: 3s, retries: {attempts: 0}, ${live}}`,
  mirrored: `{mirrors: [{destination: {host: empty.example}}, {destination: {host: missing.example}}], ${live}}`,
}

/** A limit of a patch. */
const localLimits = document(
  'EnvoyFilter',
  'limits',
  JSON.stringify({
    configPatches: [
      {
        applyTo: 'HTTP_FILTER',
        match: { context: 'GATEWAY', listener: { filterChain: { filter: { name: 'envoy.filters.network.http_connection_manager' } } } },
        patch: {
          operation: 'INSERT_BEFORE',
          value: {
            name: 'envoy.filters.http.local_ratelimit',
            typed_config: {
              '@type': 'type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit',
              stat_prefix: 'limits',
            },
          },
        },
      },
    ],
  }),
)

/** What is said of requests to them on the way; none for those that are not named. */
const onTheWay: Readonly<Record<string, readonly string[]>> = {
  'aborted-seldom': [
    'all requests wait 0.1 s first (fault.delay of the route)',
    '0.0001 % of the requests are answered with 503 (fault.abort of the route)',
  ],
  prefix: ['the path is sent as /b/b', 'the host is sent as other.example'],
  exact: ['the path is sent as /c'],
  regex: ['the path is sent as /d'],
  groups: ['the path is sent as /$/b'],
  headers: [
    'request headers are set: x-user, x-more',
    'request headers are removed: x-gone',
    'response headers are set: x-answer',
    'the client receives 504 when there is no answer within 3 s (timeout)',
    'failed requests are not tried again (retries)',
  ],
  mirrored: [
    'nothing is mirrored: empty.example has no endpoints on port 80 (mirror)',
    'nothing is mirrored: no service that the proxy sees is missing.example (mirror)',
  ],
}

/** Headers of which Envoy makes one when it reads a request, and others. */
const oneHeader = [
  ...['accept', 'accept-encoding', 'access-control-request-method', 'authorization', 'cache-control', 'content-type', 'grpc-timeout'],
  ...['if-match', 'if-modified-since', 'if-none-match', 'if-range', 'if-unmodified-since', 'pragma'],
  ...['origin', 'referer', 'user-agent', 'via', 'x-forwarded-host'],
]
const severalHeaders = ['x-user', 'accept-language', 'etag', 'forwarded', 'range']
const headerRoute = (index: number) => `${[...oneHeader, ...severalHeaders][index >> 1]}-${index % 2 === 0 ? 'joined' : 'each'}`

const request = fc.record({
  host: fc.constantFrom(
    'a.example',
    'A.example',
    'b.example',
    'b.example:8080',
    'x.wild.example',
    'deep.wild.example',
    'wild.example',
    'other.example',
  ),
  path: fc.constantFrom(
    ...[
      '/',
      '/a',
      '/a/',
      '/a/b',
      '/A/b',
      '/a//b',
      '/a/../a/b',
      '/a/b?q=1',
      '/a?q=12&q=1',
      '/?q=a%20b',
      '/a?q',
      '/a%2Fb',
      '/a/bx',
      '/a?q=anna',
      '/a?q=a+b',
      '/a/c',
    ],
  ),
  method: fc.constantFrom('GET', 'POST', 'PUT'),
  users: fc.constantFrom<readonly string[]>([], ['anna'], ['an'], [''], ['7'], ['anna', 'an'], ['7', 'anna'], ['anna,an'], ['', '']),
})

for (const { version, path: binary } of envoyBinaries())
  describe(`explained requests, Envoy ${version}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const backend = new HttpBackend('live')
    const address = '127.0.0.43'
    let port = 0
    let gateway: Envoy

    /** A VirtualService whose rules answer with their own names. */
    const answering = (name: string, host: string, matches: readonly (readonly object[])[]) =>
      document(
        'VirtualService',
        name,
        JSON.stringify({
          hosts: [host],
          gateways: ['edge'],
          http: matches.map((match, index) => ({
            name: `${name}-${index}`,
            match,
            directResponse: { status: 200, body: { string: `${name}-${index}` } },
          })),
        }),
      )
    const explained = async (given: { host: string; path: string; method?: string; headers?: { name: string; value: string }[] }) => {
      const client = new AdminClient({ socket: service.env.MESHD_ADMIN_SOCKET as string })
      return client.askedAgain(() => client.rpcs.routeRequest({ proxy: 'edge.shop', port, ...given }))
    }
    const routeOf = ({ status, routing }: RouteRequestResponse) =>
      status === 200 ? (routing?.tried.find(({ matched }) => matched)?.name ?? '') : String(status)

    before(async () => {
      port = await freePort()
      await backend.start()
      const entry = (name: string, more: string) =>
        document(
          'ServiceEntry',
          name,
          `{hosts: [${name}.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}]${more}}`,
        )
      const to = (name: string, destination: string) =>
        document('VirtualService', name, `{hosts: [${name}.example], gateways: [edge], http: [{route: [{destination: {${destination}}}]}]}`)
      const generated = fc.sample(rules, { numRuns: hosts.length * 2, seed })
      service.write(
        'mesh.yaml',
        [
          document(
            'Gateway',
            'edge',
            `{selector: {app: edge}, servers: [{port: {number: ${port}, name: http, protocol: HTTP}, bind: ${address}, hosts: ['*']}]}`,
          ),
          entry('live', `, endpoints: [{address: 127.0.0.1, ports: {http: ${backend.port}}, labels: {v: one}}]`),
          entry('empty', ''),
          document('DestinationRule', 'live', '{host: live.example, subsets: [{name: one, labels: {v: one}}, {name: two, labels: {v: two}}]}'),
          to('to-live', 'host: live.example'),
          to('to-one', 'host: live.example, subset: one'),
          to('to-two', 'host: live.example, subset: two'),
          to('to-three', 'host: live.example, subset: three'),
          to('to-empty', 'host: empty.example'),
          to('to-nobody', 'host: nobody.example'),
          to('to-port', 'host: live.example, port: {number: 81}'),
          ...Object.entries(settings).map(([name, rule]) =>
            document('VirtualService', `set-${name}`, `{hosts: [${name}.set.example], gateways: [edge], http: [${rule}]}`),
          ),
          answering(
            'headers',
            'headers.example',
            [...oneHeader, ...severalHeaders].flatMap((name) => [
              [{ headers: { [name]: { exact: 'a,b' } } }],
              [{ headers: { [name]: { exact: 'b' } } }],
            ]),
          ).replaceAll(/"headers-(\d+)"/g, (_, index) => `"${headerRoute(Number(index))}"`),
          answering('own', 'own.example', [
            [{ headers: { 'x-forwarded-proto': { exact: 'https' } } }],
            [{ headers: { 'x-forwarded-proto': { exact: 'http' }, 'x-user': { exact: 'a' } } }],
            [{ headers: { 'x-request-id': {} } }],
          ]),
          ...generated.map((matches, index) => answering(`v${index}`, hosts[index % hosts.length] as string, matches)),
        ].join('---\n'),
      )
      await service.start()
      gateway = new Envoy({
        binary,
        delta: version === '1.40',
        grpcPort: service.grpcPort,
        nodeId: `router~${address}~edge.shop~shop.svc.cluster.local`,
        metadata: { NAMESPACE: 'shop', LABELS: { app: 'edge' } },
      })
      await gateway.start()
      await until('the gateway to route', async () => (await call(address, port, '/', { host: 'to-live.example' })).status === 200)
    })
    after(async () => {
      expect(await service.rejections()).to.deep.equal([])
      await Promise.all([gateway.dispose(), service.dispose(), backend.stop()])
    })

    it('generated requests take the routes that are said to take them', async () => {
      const wrong: string[] = []
      const taken = new Set<string>()
      for (const { host, path, method, users } of fc.sample(request, { numRuns: 300, seed })) {
        const [seen, said] = await Promise.all([
          call(address, port, path, { host, method, headers: users.length === 0 ? {} : { 'x-user': [...users] } }),
          explained({ host, path, method, headers: users.map((value) => ({ name: 'x-user', value })) }),
        ])
        const went = seen.status === 200 ? seen.body : String(seen.status)
        taken.add(went)
        if (went !== routeOf(said)) wrong.push(`${method} ${host}${path} ${users}: Envoy ${went}, said ${routeOf(said)} (${said.reason})`)
      }
      expect(wrong).to.deep.equal([])
      expect([...taken])
        .to.include('404')
        .and.to.have.length.above(10)
    })

    it('several values of a header are compared as that Envoy compares them: of some headers it makes one', async () => {
      for (const name of [...oneHeader, ...severalHeaders]) {
        const headers = ['a', 'b'].map((value) => ({ name, value }))
        const seen = await call(address, port, '/', { host: 'headers.example', headers: { [name]: ['a', 'b'] } })
        const isOne = version === '1.36' || oneHeader.includes(name)
        expect([name, seen.body]).to.deep.equal([name, `${name}-${isOne ? 'joined' : 'each'}`])
        expect([name, routeOf(await explained({ host: 'headers.example', path: '/', headers }))]).to.deep.equal([name, seen.body])
      }
    })

    it('headers that the proxy sets before it routes are there, whatever the client says of the scheme', async () => {
      const asked: readonly Record<string, string>[] = [
        {},
        { 'x-user': 'a' },
        { 'x-user': 'a', 'x-forwarded-proto': 'https' },
        { 'x-request-id': 'own' },
      ]
      for (const headers of asked) {
        const seen = await call(address, port, '/', { host: 'own.example', headers })
        const said = await explained({ host: 'own.example', path: '/', headers: Object.entries(headers).map(([name, value]) => ({ name, value })) })
        expect([headers, routeOf(said)]).to.deep.equal([headers, seen.body])
      }
    })

    it('paths with other characters than those of ASCII that are shown are answered with 400', async () => {
      for (const path of ['/a\u00e9', '/a b', '/a\u007f', '/?q=\u00e9', '/a%00', '/a%C3%A9', '/?q=%00', '/a"<>\\^`{|}']) {
        const seen = await exchange(address, port, `GET ${path} HTTP/1.1\r\nhost: headers.example\r\nconnection: close\r\n\r\n`)
        expect([path, (await explained({ host: 'headers.example', path })).status]).to.deep.equal([path, Number(/^HTTP\/1.1 (\d+)/.exec(seen)?.[1])])
      }
    })

    it('the field of each route is the one whose number its name has', async () => {
      const { routing } = await explained({ host: 'a.example', path: '/a/b' })
      const routes = routing?.tried.filter(({ name }) => name !== '') ?? []
      expect(routes).to.have.length.above(3)
      for (const { name, field, object } of routes) {
        expect(object?.name).to.equal(name.split('-')[0])
        expect(field).to.match(new RegExp(`^http\\[${name.split('-')[1]}\\]\\.match\\[\\d\\]$`))
      }
    })

    it('what routes answer in place of destinations, and change of requests, is what is said of them', async () => {
      for (const name of Object.keys(settings)) {
        const said = await explained({ host: `${name}.set.example`, path: '/a/b?q=1', headers: [{ name: 'x-gone', value: 'x' }] })
        const seen = await call(address, port, '/a/b?q=1', { host: `${name}.set.example`, headers: { 'x-gone': 'x' } })
        expect([name, said.status]).to.deep.equal([name, seen.status])
        expect([name, said.routing?.changes]).to.deep.equal([name, onTheWay[name] ?? []])
        const path = said.routing?.changes.flatMap((change) => /^the path is sent as (.*)/.exec(change)?.[1] ?? [])[0]
        const host = said.routing?.changes.flatMap((change) => /^the host is sent as (.*)/.exec(change)?.[1] ?? [])[0]
        if (said.decidedBy !== 'destination') continue
        expect(backend.seen.at(-1)?.path).to.equal(`${path ?? '/a/b'}?q=1`)
        expect(backend.seen.at(-1)?.headers.host).to.equal(host ?? `${name}.set.example`)
      }
      expect(backend.seen.some(({ headers }) => headers['x-user'] === 'bob' && headers['x-gone'] === undefined)).to.equal(true)
    })

    it('preflight requests of browsers are answered by the proxy where they are said to be', async () => {
      for (const name of Object.keys(settings))
        for (const origin of ['https://shop.example', 'https://other.example']) {
          const headers = { origin, 'access-control-request-method': 'GET' }
          const given = Object.entries(headers).map(([key, value]) => ({ name: key, value }))
          const before = backend.seen.length
          const host = `${name}.set.example`
          const [said, seen] = [
            await explained({ host, path: '/a/b', method: 'OPTIONS', headers: given }),
            await call(address, port, '/a/b', { host, method: 'OPTIONS', headers }),
          ]
          expect([name, origin, said.status, said.decidedBy === 'destination']).to.deep.equal([
            name,
            origin,
            seen.status,
            backend.seen.length > before,
          ])
        }
    })

    it('filters of patches are named, whose work is not known', async () => {
      expect((await explained({ host: 'to-live.example', path: '/' })).routing?.unjudged).to.deep.equal([])
      service.write('limits.yaml', localLimits)
      await until('the filter', async () => ((await explained({ host: 'to-live.example', path: '/' })).routing?.unjudged.length ?? 0) > 0)
      expect((await explained({ host: 'to-live.example', path: '/' })).routing?.unjudged).to.deep.equal(['envoy.filters.http.local_ratelimit'])
      service.remove('limits.yaml')
    })

    it('requests to subsets, ports and services without endpoints fail as they are said to, with the reason', async () => {
      const reasons = {
        'to-live': 'it is sent to live.example; no proxy of the destination is connected here, so its policies are not judged',
        'to-one': 'it is sent to live.example; no proxy of the destination is connected here, so its policies are not judged',
        'to-two':
          'subset two selects none of the 1 endpoint of live.example: no endpoint with its labels is ready and reached from the network of the proxy',
        'to-three': 'no DestinationRule that counts for live.example here has a subset three',
        'to-empty': 'empty.example has no endpoints on port 80',
        'to-nobody': 'no service that the proxy sees is nobody.example',
        'to-port': 'live.example has no port 81; it has 80',
      }
      for (const [name, reason] of Object.entries(reasons)) {
        const said = await explained({ host: `${name}.example`, path: '/' })
        expect([said.reason, said.status]).to.deep.equal([reason, (await call(address, port, '/', { host: `${name}.example` })).status])
      }
    })
  })
