/**
 * The fields of a VirtualService at a gateway of a real Envoy: each field has its documented effect, and none makes Envoy reject the routes
 * (docs/resources.md, R3 to R10).
 */
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { plainOperators } from '../../src/config/header-format.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { Envoy, envoysWith } from '../harness/envoy.ts'
import { Issuer } from '../harness/issuer.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { policyDocument } from '../harness/policies.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const reviews = 'reviews.shop.svc.cluster.local'
/** Every substitution command that header values may contain. */
const commands = [
  ...[...plainOperators].map((name) => `%${name}%`),
  ...['REQ(x-a)', 'REQ(:path?x-b):5', 'REQ(X-A?)', 'RESP(x-a)', 'TRAILER(x-a):3', 'PATH', 'PATH(WQ)', 'PATH(NQ:ORIG_OR_PATH):3', 'START_TIME'],
  ...['START_TIME(%Y/%m/%d %H:%M:%S.%3f)', 'START_TIME_LOCAL', 'EMIT_TIME(%s)', 'DOWNSTREAM_PEER_CERT_V_START(%b)', 'UPSTREAM_PEER_CERT_V_END'],
  ...['FILTER_STATE(k)', 'FILTER_STATE(k:FIELD:n):3', 'UPSTREAM_FILTER_STATE(k:TYPED)', 'DYNAMIC_METADATA(a:b:c)', 'CLUSTER_METADATA(a:b)'],
  ...[
    'UPSTREAM_METADATA(["a", "b"])',
    'UPSTREAM_METADATA(a:b)',
    'METADATA(ROUTE:a:b):3',
    'COMMON_DURATION(DS_RX_BEG:DS_RX_END:ns)',
    'ENVIRONMENT(X):3',
  ],
  ...['QUERY_PARAM(a)', 'GRPC_STATUS', 'GRPC_STATUS(SNAKE_STRING)', 'RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)', 'PER_REQUEST_STATE(a)'],
].map((command) => (command.startsWith('%') ? command : `%${command}%`))

for (const { version, path: binary, delta } of envoysWith({ delta: false }, { delta: true })) {
  describe(`VirtualServices, Envoy ${version}, ${delta ? 'delta' : 'state of the world'}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const v1 = new HttpBackend('v1')
    const v2 = new HttpBackend('v2')
    const issuer = new Issuer('issuer@shop.example')
    const address = '127.0.0.21'
    const ports = { http: 0, other: 0 }
    let gateway: Envoy

    const to = (subset: string, more = '') => `{destination: {host: reviews, subset: ${subset}}${more}}`
    const routes = (name: string, host: string, http: string, more = '') =>
      document('VirtualService', name, `{hosts: [${host}], gateways: [edge], http: [${http}]${more}}`)
    const send = (host: string, path = '/', options: { method?: string; headers?: Record<string, string>; port?: number } = {}) =>
      call(address, options.port ?? ports.http, path, { host, ...options })
    const seen = (backend = v1) => backend.seen.at(-1) as HttpBackend['seen'][number]

    before(async () => {
      for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
      await Promise.all([v1.start(), v2.start(), issuer.rotate()])
      const server = (port: number, name: string, host: string) =>
        `{port: {number: ${port}, name: ${name}, protocol: HTTP}, bind: ${address}, hosts: ['${host}']}`
      service.write(
        'mesh.yaml',
        [
          document(
            'ServiceEntry',
            'reviews',
            `{hosts: [${reviews}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${v1.port}}, labels: {v: v1}}, {address: 127.0.0.1, ports: {http: ${v2.port}}, labels: {v: v2}}]}`,
          ),
          document('DestinationRule', 'reviews', `{host: reviews, subsets: [{name: v1, labels: {v: v1}}, {name: v2, labels: {v: v2}}]}`),
          document(
            'Gateway',
            'edge',
            `{selector: {app: edge}, servers: [${server(ports.http, 'http', '*')}, ${server(ports.other, 'other', 'match.example')}]}`,
          ),
        ].join('---\n'),
      )
      service.write(
        'routes.yaml',
        documents()
          .map(([name, host, http]) => routes(name, host, http))
          .join('---\n'),
      )
      service.write(
        'delegates.yaml',
        document('VirtualService', 'pages', `{http: [{match: [{uri: {prefix: /pages/new}}], route: [${to('v2')}]}, {route: [${to('v1')}]}]}`),
      )
      service.write(
        'tokens.yaml',
        policyDocument(
          'RequestAuthentication',
          'tokens',
          `{selector: {matchLabels: {app: edge}}, jwtRules: [{issuer: ${issuer.name}, jwks: '${issuer.jwks}'}]}`,
        ),
      )
      service.write('ready.yaml', routes('ready', 'ready.example', `{route: [${to('v1')}]}`))
      await service.start()
      gateway = new Envoy({
        binary,
        delta,
        grpcPort: service.grpcPort,
        nodeId: `router~${address}~edge.shop~shop.svc.cluster.local`,
        metadata: { NAMESPACE: 'shop', LABELS: { app: 'edge' } },
      })
      await gateway.start()
      await until('the gateway to route', async () => (await send('ready.example')).status === 200)
    })
    afterEach(async () => {
      expect(await service.rejections()).to.deep.equal([])
      expect(await gateway.rejected()).to.equal(0)
    })
    after(async () => {
      await Promise.all([gateway.dispose(), service.dispose(), v1.stop(), v2.stop()])
    })

    const change = (operations: string) => `headers: {request: ${operations}}`
    const documents = (): readonly (readonly [name: string, host: string, http: string])[] => [
      ['host-set', 'host-set.example', `{${change('{set: {Host: inner.example, x-a: one}}')}, route: [${to('v1')}]}`],
      ['host-add', 'host-add.example', `{${change("{add: {':authority': added.example}}")}, route: [${to('v1')}]}`],
      ['host-of-one', 'host-of-one.example', `{route: [${to('v1', `, ${change('{set: {hOST: one.example}, remove: [x-b]}')}`)}]}`],
      [
        'host-of-weighted',
        'host-of-weighted.example',
        `{route: [${to('v1', `, weight: 50, ${change('{set: {host: first.example}}')}`)}, ${to('v2', `, weight: 50, ${change("{set: {':authority': second.example}}")}`)}]}`,
      ],
      [
        'host-twice',
        'host-twice.example',
        `{rewrite: {authority: rewritten.example}, ${change('{set: {Host: header.example}}')}, route: [${to('v1')}]}`,
      ],
      [
        'pseudo',
        'pseudo.example',
        `{headers: {request: {set: {':path': /x, ':method': PUT, ':scheme': https}, remove: [host, ':path']}, response: {set: {':status': '299', host: a}, remove: [':status', x-backend]}}, route: [${to('v1')}]}`,
      ],
      [
        'both',
        'both.example',
        `{headers: {request: {set: {x-order: route}, add: {x-order: more}}, response: {set: {x-out: route}}}, route: [${to('v1', ", headers: {request: {set: {x-order: destination}}, response: {add: {x-out: 'too'}}}")}]}`,
      ],
      [
        'commands',
        'commands.example',
        `{${change(`{set: {x-share: '100%%', x-from: '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%', x-all: '${commands.join('')}'}}`)}, route: [${to('v1')}]}`,
      ],
      [
        'faults',
        'faults.example',
        [
          `{match: [{uri: {prefix: /none}}], fault: {abort: {httpStatus: 418}, delay: {fixedDelay: 9s}}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /zero}}], fault: {abort: {httpStatus: 418, percentage: {value: 0}}, delay: {fixedDelay: 9s, percentage: {}, percent: 100}}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /rare}}], fault: {abort: {httpStatus: 418, percentage: {value: 0.0001}}}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /abort}}], fault: {abort: {httpStatus: 418, percentage: {value: 100}}}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /grpc}}], fault: {abort: {grpcStatus: NOT_FOUND, percentage: {value: 100}}}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /slow}}], fault: {delay: {fixedDelay: 0.3s, percent: 100}}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /neither}}], fault: {abort: {percentage: {value: 100}}, delay: {exponentialDelay: 1s, percentage: {value: 100}}}, route: [${to('v1')}]}`,
        ].join(),
      ],
      [
        'redirects',
        'redirects.example',
        [
          `{match: [{uri: {prefix: /uri}}], redirect: {uri: /elsewhere, authority: other.example}}`,
          `{match: [{uri: {prefix: /prefix}}], redirect: {prefixRewrite: /new, redirectCode: 308}}`,
          `{match: [{uri: {prefix: /port}}], redirect: {port: 8443, scheme: https, redirectCode: 302}}`,
          `{match: [{uri: {prefix: /usual}}], redirect: {port: 443, scheme: https, redirectCode: 303}}`,
          `{match: [{uri: {prefix: /asked}}], redirect: {derivePort: FROM_REQUEST_PORT, authority: other.example, redirectCode: 307}}`,
          `{match: [{uri: {prefix: /default}}], redirect: {derivePort: FROM_PROTOCOL_DEFAULT, authority: other.example}}`,
        ].join(),
      ],
      [
        'answers',
        'answers.example',
        [
          `{match: [{uri: {exact: /text}}], directResponse: {status: 503, body: {string: closed}}, headers: {response: {set: {content-type: text/html}}}}`,
          `{match: [{uri: {exact: /bytes}}], directResponse: {status: 200, body: {bytes: aGVsbG8=}}}`,
          `{match: [{uri: {exact: /long}}], directResponse: {status: 200, body: {string: ${'x'.repeat(200_000)}}}}`,
          `{directResponse: {status: 404}}`,
        ].join(),
      ],
      [
        'rewrites',
        'rewrites.example',
        [
          `{match: [{uri: {prefix: /old/}}], rewrite: {uri: /new/}, route: [${to('v1')}]}`,
          `{match: [{uri: {exact: /exact}}], rewrite: {uri: /whole}, route: [${to('v1')}]}`,
          `{match: [{uri: {regex: '/re/[0-9]+/.*'}}], rewrite: {uri: /matched, authority: re.example}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /swap}}], rewrite: {uriRegexRewrite: {match: '^/swap/([^/]+)/(.*)$', rewrite: '/\\2/\\1'}}, route: [${to('v1')}]}`,
          `{match: [], rewrite: {uri: /base}, route: [${to('v1')}]}`,
        ].join(),
      ],
      [
        'matches',
        'match.example',
        [
          `{match: [{port: ${ports.other}}], directResponse: {status: 210}}`,
          `{match: [{uri: {prefix: /Case}, ignoreUriCase: true}], directResponse: {status: 211}}`,
          `{match: [{headers: {x-user: {exact: ann}, x-more: {}}}], directResponse: {status: 212}}`,
          `{match: [{headers: {x-version: {regex: 'v[0-9]+'}}}, {headers: {x-version: {prefix: canary}}}], directResponse: {status: 213}}`,
          `{match: [{uri: {exact: /without}, withoutHeaders: {x-no: {exact: 'yes'}, x-none: {}}}], directResponse: {status: 214}}`,
          `{match: [{queryParams: {v: {exact: 'true'}}}, {queryParams: {'n': {regex: '\\d+'}}}, {queryParams: {any: {regex: '*'}}}], directResponse: {status: 215}}`,
          `{match: [{method: {exact: PUT}, uri: {exact: /method}, scheme: {exact: http}}], directResponse: {status: 216}}`,
          `{match: [{authority: {prefix: other}}], directResponse: {status: 217}}`,
          `{match: [{gateways: [shop/elsewhere]}, {sourceNamespace: elsewhere}, {sourceLabels: {app: elsewhere}}], directResponse: {status: 218}}`,
          `{match: [{uri: {prefix: /counted}, statPrefix: counted}], route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /edge}, gateways: [edge], sourceLabels: {app: elsewhere}}], directResponse: {status: 219}}`,
          `{directResponse: {status: 404}}`,
        ].join(),
      ],
      [
        'mirrors',
        'mirrors.example',
        [
          `{match: [{uri: {prefix: /one}}], route: [${to('v1')}], mirror: {host: reviews, subset: v2}}`,
          `{match: [{uri: {prefix: /none}}], route: [${to('v1')}], mirror: {host: reviews, subset: v2}, mirrorPercentage: {}}`,
          `{match: [{uri: {prefix: /list}}], route: [${to('v1')}], mirrors: [{destination: {host: reviews, subset: v2}, percentage: {value: 100}}, {destination: {host: nowhere}}]}`,
        ].join(),
      ],
      [
        'cors',
        'cors.example',
        [
          `{match: [{uri: {prefix: /list}}], corsPolicy: {allowOrigins: [{exact: 'https://a.example'}, {regex: 'https://.*[.]b[.]example'}, {prefix: 'http://c'}], allowMethods: [GET, PUT], allowHeaders: [x-in], exposeHeaders: [x-out], maxAge: 24h, allowCredentials: true}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /strict}}], corsPolicy: {allowOrigins: [{exact: 'https://a.example'}], unmatchedPreflights: IGNORE}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /any}}], corsPolicy: {allowOrigin: ['*']}, route: [${to('v1')}]}`,
        ].join(),
      ],
      [
        'retries',
        'retries.example',
        [
          `{match: [{uri: {prefix: /twice}}], retries: {attempts: 2, retryOn: '500, 502', backoff: 5ms, perTryTimeout: 2s, retryIgnorePreviousHosts: false}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /off}}], retries: {attempts: 0}, route: [${to('v1')}]}`,
          `{match: [{uri: {prefix: /timeout}}], timeout: 0.2s, route: [${to('v1')}]}`,
        ].join(),
      ],
      [
        'claims',
        'claims.example',
        [
          `{match: [{headers: {'@request.auth.claims.group': {exact: staff}}}], directResponse: {status: 241}}`,
          `{match: [{headers: {'@request.auth.claims[https://shop.example/role][level]': {regex: 'g.*'}}}], directResponse: {status: 242}}`,
          `{match: [{headers: {'@request.auth.claims.sub': {}}, withoutHeaders: {'@request.auth.claims.guest': {exact: 'yes'}}}], directResponse: {status: 243}}`,
          `{directResponse: {status: 244}}`,
        ].join(),
      ],
      ['delegating', 'delegating.example', `{match: [{uri: {prefix: /pages}}], delegate: {name: pages}}, {directResponse: {status: 404}}`],
      ['older', 'shared.example', `{match: [{uri: {prefix: /older}}], directResponse: {status: 231}}, {directResponse: {status: 232}}`],
      ['younger', 'shared.example', `{match: [{uri: {prefix: /younger}}], directResponse: {status: 233}}, {directResponse: {status: 234}}`],
      ['capital', 'CAPITAL.example', `{directResponse: {status: 235}}`],
    ]

    it('set the Host header, as Host or :authority, for a route or for one destination', async () => {
      await send('host-set.example')
      expect(seen().headers).to.include({ host: 'inner.example', 'x-a': 'one' })
      await send('host-add.example')
      expect(seen().headers.host).to.equal('added.example')
      await send('host-of-one.example', '/', { headers: { 'x-b': 'b' } })
      expect(seen().headers.host).to.equal('one.example')
      expect(seen().headers).not.to.have.property('x-b')
      await send('host-twice.example')
      expect(seen().headers.host).to.equal('rewritten.example')
      const begun = [v1.seen.length, v2.seen.length]
      await until('both destinations', async () => {
        await send('host-of-weighted.example')
        return v1.seen.length > (begun[0] ?? 0) && v2.seen.length > (begun[1] ?? 0)
      })
      expect([seen(v1).headers.host, seen(v2).headers.host]).to.deep.equal(['first.example', 'second.example'])
    })

    it('leave pseudo headers unchanged, and change the other headers', async () => {
      const answer = await send('pseudo.example', '/kept')
      expect([answer.status, answer.headers['x-backend'], seen().path, seen().headers.host]).to.deep.equal([
        200,
        undefined,
        '/kept',
        'pseudo.example',
      ])
    })

    it('set headers before they add values, and apply the route before the destination', async () => {
      const answer = await send('both.example', '/', { headers: { 'x-order': 'client' } })
      expect(seen().headers['x-order']).to.equal('destination, more')
      expect(answer.headers['x-out']).to.equal('route, too')
    })

    it('substitute commands in header values', async () => {
      await send('commands.example')
      expect(seen().headers).to.include({ 'x-share': '100%', 'x-from': '127.0.0.1' })
      expect(seen().headers['x-all']).to.be.a('string')
    })

    it('inject delays and aborts into the configured percentage of requests only', async () => {
      for (const path of ['/none', '/zero', '/rare', '/neither']) expect((await send('faults.example', path)).status, path).to.equal(200)
      expect((await send('faults.example', '/abort')).status).to.equal(418)
      const grpc = await send('faults.example', '/grpc', { headers: { 'content-type': 'application/grpc' } })
      expect([grpc.status, grpc.headers['grpc-status']]).to.deep.equal([200, '5'])
      const begun = performance.now()
      expect((await send('faults.example', '/slow')).status).to.equal(200)
      expect(performance.now() - begun).to.be.greaterThan(290)
    })

    it('redirect with the configured status, scheme, authority, port and path', async () => {
      const location = async (path: string) => {
        const { status, headers } = await send('redirects.example', path)
        return [status, headers.location]
      }
      expect(await location('/uri/x')).to.deep.equal([301, 'http://other.example/elsewhere'])
      expect(await location('/prefix/x?y=1')).to.deep.equal([308, 'http://redirects.example/new/x?y=1'])
      expect(await location('/port')).to.deep.equal([302, 'https://redirects.example:8443/port'])
      expect(await location('/usual')).to.deep.equal([303, 'https://redirects.example/usual'])
      expect(await location('/asked')).to.deep.equal([307, `http://other.example:${ports.http}/asked`])
      expect(await location('/default')).to.deep.equal([301, 'http://other.example/default'])
    })

    it('send direct responses with status, headers and bodies of up to 200,000 bytes', async () => {
      const text = await send('answers.example', '/text')
      expect([text.status, text.body, text.headers['content-type']]).to.deep.equal([503, 'closed', 'text/html'])
      expect((await send('answers.example', '/bytes')).body).to.equal('hello')
      expect((await send('answers.example', '/long')).body).to.have.length(200_000)
      expect((await send('answers.example', '/')).status).to.equal(404)
    })

    it('rewrite paths by prefix, exact match and regular expression, and authorities', async () => {
      const rewritten = async (path: string) => {
        await send('rewrites.example', path)
        return seen().path
      }
      expect(await rewritten('/old/page?a=1')).to.equal('/new/page?a=1')
      expect(await rewritten('/exact')).to.equal('/whole')
      expect(await rewritten('/re/12/rest?a=1')).to.equal('/matched?a=1')
      expect(seen().headers.host).to.equal('re.example')
      expect(await rewritten('/swap/one/two')).to.equal('/two/one')
      expect(await rewritten('/x')).to.equal('/basex')
    })

    it('match on port, path, header, query parameter and method, and answer 404 otherwise', async () => {
      const status = async (path: string, options: Parameters<typeof send>[2] = {}) => (await send('match.example', path, options)).status
      expect(await status('/', { port: ports.other })).to.equal(210)
      expect(await status('/cASE/x')).to.equal(211)
      expect(await status('/', { headers: { 'x-user': 'ann', 'x-more': '' } })).to.equal(212)
      expect(await status('/', { headers: { 'x-user': 'ann' } })).to.equal(404)
      expect(await status('/', { headers: { 'x-version': 'v12' } })).to.equal(213)
      expect(await status('/', { headers: { 'x-version': 'canary-1' } })).to.equal(213)
      expect(await status('/', { headers: { 'x-version': 'xv1' } })).to.equal(404)
      expect(await status('/without')).to.equal(214)
      expect(await status('/without', { headers: { 'x-no': 'other' } })).to.equal(214)
      expect(await status('/without', { headers: { 'x-no': 'yes' } })).to.equal(404)
      expect(await status('/without', { headers: { 'x-none': 'a' } })).to.equal(404)
      for (const query of ['v=true', 'n=12', 'any=', 'any=x']) expect(await status(`/?${query}`), query).to.equal(215)
      for (const query of ['v=false', 'n=1a']) expect(await status(`/?${query}`), query).to.equal(404)
      expect(await status('/method', { method: 'PUT' })).to.equal(216)
      expect(await status('/method')).to.equal(404)
      expect(await status('/edge')).to.equal(219)
      expect(await status('/counted')).to.equal(200)
      await until('the request to be counted', async () => /[.]route[.]counted[.]upstream_rq_total: 1$/m.test(await gateway.admin('/stats')))
    })

    it('mirror the configured percentage of requests to one or several destinations', async () => {
      await send('mirrors.example', '/none')
      await send('mirrors.example', '/one')
      await send('mirrors.example', '/list')
      await until('the mirrored requests', () => ['/one', '/list'].every((path) => v2.seen.some((request) => request.path === path)))
      expect(v2.seen.some(({ path }) => path === '/none')).to.equal(false)
    })

    it('answer CORS preflights of allowed origins, and forward or end those of other origins as configured', async () => {
      const preflight = (path: string, origin: string) =>
        send('cors.example', path, { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'PUT' } })
      const listed = await preflight('/list', 'https://x.b.example')
      expect(listed.headers).to.include({
        'access-control-allow-origin': 'https://x.b.example',
        'access-control-allow-methods': 'GET,PUT',
        'access-control-allow-headers': 'x-in',
        'access-control-max-age': '86400',
        'access-control-allow-credentials': 'true',
      })
      expect((await send('cors.example', '/list', { headers: { origin: 'https://a.example' } })).headers['access-control-expose-headers']).to.equal(
        'x-out',
      )
      const before = v1.seen.length
      await preflight('/list', 'https://stranger.example')
      expect(v1.seen.length, 'a preflight of a stranger goes on').to.equal(before + 1)
      await preflight('/strict', 'https://stranger.example')
      expect(v1.seen.length, 'where it is ignored, it ends here').to.equal(before + 1)
      expect((await preflight('/any', 'https://whoever.example')).headers['access-control-allow-origin']).to.equal('https://whoever.example')
    })

    it('retry failed requests unless retries are off, and answer 504 after the timeout', async () => {
      v1.failures.push(500, 502)
      expect((await send('retries.example', '/twice')).status).to.equal(200)
      v1.failures.push(503)
      expect((await send('retries.example', '/off')).status).to.equal(503)
      const { promise, resolve } = Promise.withResolvers<void>()
      v1.until = promise
      const late = await send('retries.example', '/timeout').finally(() => {
        resolve()
        v1.until = undefined
      })
      expect(late.status).to.equal(504)
    })

    it('match on claims of a valid token, and not on headers with the names of claims', async () => {
      const status = async (claims: Record<string, unknown>, headers: Record<string, string> = {}) =>
        (await send('claims.example', '/', { headers: { authorization: `Bearer ${await issuer.token(claims)}`, ...headers } })).status
      expect([await status({ group: 'staff' }), await status({ group: ['other', 'staff'] })]).to.deep.equal([241, 241])
      expect(await status({ 'https://shop.example/role': { level: 'gold' } })).to.equal(242)
      expect([await status({ group: 'other' }), await status({ guest: 'yes' })]).to.deep.equal([243, 244])
      expect((await send('claims.example', '/')).status).to.equal(244)
      expect((await send('claims.example', '/', { headers: { group: 'staff' } })).status).to.equal(244)
      expect((await send('claims.example', '/', { headers: { authorization: 'Bearer e30.e30.e30' } })).status).to.equal(401)
    })

    it('include the routes of their delegates, and answer 404 for paths of no delegate', async () => {
      expect((await send('delegating.example', '/pages/new')).body).to.equal('v2')
      expect((await send('delegating.example', '/pages/old')).body).to.equal('v1')
      expect((await send('delegating.example', '/')).status).to.equal(404)
    })

    it('for one host are merged: routes of older objects come first, and catch-all routes last', async () => {
      const statuses = await Promise.all(['/older', '/younger', '/'].map(async (path) => (await send('shared.example', path)).status))
      expect(statuses).to.deep.equal([231, 233, 232])
      expect((await send('capital.example')).status).to.equal(235)
    })

    it('to a destination with a cookie hash set the cookie with path, TTL and attributes if the request has none', async () => {
      const cookie = '{name: session, path: /p, ttl: 60s, attributes: [{name: SameSite, value: Strict}, {name: Secure}]}'
      service.write(
        'sticky.yaml',
        [
          document(
            'ServiceEntry',
            'sticky',
            `{hosts: [sticky.example], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${v1.port}}}]}`,
          ),
          document('DestinationRule', 'sticky', `{host: sticky.example, trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: ${cookie}}}}}`),
          routes('sticky', 'sticky.example', '{route: [{destination: {host: sticky.example}}]}'),
        ].join('---\n'),
      )
      await until('the route', async () => (await send('sticky.example')).status === 200)
      const [set = ''] = (await send('sticky.example')).headers['set-cookie'] ?? []
      expect(set).to.match(/^session="[0-9a-f]+"; Max-Age=60; Path=\/p; SameSite=Strict; Secure/)
      expect((await send('sticky.example', '/', { headers: { cookie: 'session="known"' } })).headers).not.to.have.property('set-cookie')
    })

    it('that are invalid are reported with object and field, and later objects still apply', async () => {
      const bad: readonly (readonly [fields: string, path: string])[] = [
        ["headers: {request: {set: {x-a: '50% off'}}}", 'spec.http[0].headers.request.set[x-a]'],
        ["headers: {response: {add: {x-a: '%NOPE%'}}}", 'spec.http[0].headers.response.add[x-a]'],
        ["headers: {request: {set: {'bad name': a}}}", 'spec.http[0].headers.request.set[bad name]'],
        ["headers: {request: {set: {host: 'a b'}}}", 'spec.http[0].headers.request.set[host]'],
        ['rewrite: {authority: "a\\nb"}', 'spec.http[0].rewrite.authority'],
        ['fault: {abort: {grpcStatus: NOTHING, percentage: {value: 1}}}', 'spec.http[0].fault.abort.grpcStatus'],
        ["match: [{uri: {regex: ''}}]", 'spec.http[0].match[0].uri.regex'],
        ["match: [{queryParams: {'': {exact: a}}}]", 'spec.http[0].match[0].queryParams[]'],
        ["match: [{headers: {'a b': {exact: a}}}]", 'spec.http[0].match[0].headers[a b]'],
      ]
      service.write(
        'bad.yaml',
        bad.map(([fields], index) => routes(`bad${index}`, `bad${index}.example`, `{${fields}, route: [${to('v1')}]}`)).join('---\n'),
      )
      service.write('later.yaml', routes('later', 'later.example', `{route: [${to('v1')}]}`))
      await until('what came after', async () => (await send('later.example')).status === 200)
      for (const [index, [, path]] of bad.entries()) {
        expect((await send(`bad${index}.example`)).status).to.equal(404)
        const object = `VirtualService/shop/bad${index}`
        await service.output.says(new RegExp(`${object}[^\\n]*${path.replaceAll(/[[\].]/g, '.')}`))
      }
    })
  })
}
