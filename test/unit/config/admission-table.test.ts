/** The rules of validation, row by row, of objects in files, in reviews and in the store of the orchestrator: the same for all. */
import { Readable } from 'node:stream'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { analyzeFiles } from '../../../actors/discovery/analysis/analyze-files.ts'
import type { AdmissionRequest } from '../../../protocols/messages/admission.ts'
import { decideAdmission } from '../../../src/config/admitted.ts'
import { kinds } from '../../../src/config/kinds.ts'
import { parseConfigDocument, parseConfigFile } from '../../../src/config/parse.ts'
import { PatternChecks } from '../../../src/config/patterns.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'

const names = meshNames('mesh.io')
const to = { destination: { host: 'a' } }
const server = (port: object, more: object = {}) => ({ port: { number: 443, name: 'p', ...port }, hosts: ['*'], ...more })
const entry = (more: object) => ({ hosts: ['a.example'], ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], ...more })
const policy = (more: object) => ({ host: 'a', trafficPolicy: more })
const locality = (setting: object) => policy({ loadBalancer: { localityLbSetting: setting } })
const custom = (rule: object) => ({ action: 'CUSTOM', provider: { name: 'x' }, rules: [rule] })
const patched = (more: object, patch: object = { operation: 'MERGE', value: {} }) => ({ configPatches: [{ applyTo: 'CLUSTER', patch, ...more }] })

/** A Gateway with one server of these settings of TLS. */
const tlsServer = (tls: object) => ({ servers: [server({ protocol: 'HTTPS' }, { tls: { mode: 'SIMPLE', credentialName: 'c', ...tls } })] })
const known = 'ECDHE-RSA-AES128-GCM-SHA256'
const removed = (listener: object, applyTo = 'HTTP_FILTER') => patched({ applyTo, match: { listener } }, { operation: 'REMOVE' })
const added = (name: string) =>
  patched(
    { applyTo: 'HTTP_FILTER' },
    {
      operation: 'INSERT_BEFORE',
      value: { name, typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.cors.v3.Cors' } },
    },
  )

/** By kind: what is wrong with a spec, the spec, and the fault. */
const table: Readonly<Record<string, readonly (readonly [what: string, spec: object, fault: RegExp])[]>> = {
  AuthorizationPolicy: [
    ['a selector with an empty key', { selector: { matchLabels: { '': 'x' } } }, /selector.matchLabels\[\]: a label needs a name/],
    ['a selector with a wildcard', { selector: { matchLabels: { app: 'x*' } } }, /selector.matchLabels\[[^\]]*\]: wildcards/],
    ['DENY without rules', { action: 'DENY' }, /rules: DENY needs at least one rule/],
    ['CUSTOM without rules', { action: 'CUSTOM', provider: { name: 'x' } }, /rules: CUSTOM needs at least one rule/],
    ['a provider without CUSTOM', { provider: { name: 'x' } }, /provider: only allowed with CUSTOM/],
    ['CUSTOM without the name of a provider', { action: 'CUSTOM', provider: {}, rules: [{}] }, /provider.name: required/],
    ['CUSTOM with principals', custom({ from: [{ source: { notPrincipals: ['x'] } }] }), /not available to CUSTOM/],
    ['CUSTOM with namespaces', custom({ from: [{ source: { namespaces: ['x'] } }] }), /not available to CUSTOM/],
    ['CUSTOM with principals of requests', custom({ from: [{ source: { notRequestPrincipals: ['x'] } }] }), /not available to CUSTOM/],
    ['CUSTOM with the condition source.namespace', custom({ when: [{ key: 'source.namespace', values: ['x'] }] }), /not available to CUSTOM/],
    ['CUSTOM with the condition source.principal', custom({ when: [{ key: 'source.principal', notValues: ['x'] }] }), /not available to CUSTOM/],
    ['CUSTOM with a late condition', custom({ when: [{ key: 'request.auth.claims[a]', values: ['x'] }] }), /not available to CUSTOM/],
    ['from that is empty', { rules: [{ from: [] }] }, /from: needs at least 1 entry/],
    ['to that is empty', { rules: [{ to: [] }] }, /to: needs at least 1 entry/],
    ['an empty source', { rules: [{ from: [{ source: {} }] }] }, /source: needs at least one field/],
    ['an empty operation', { rules: [{ to: [{ operation: {} }] }] }, /operation: needs at least one field/],
    ['an empty value', { rules: [{ to: [{ operation: { paths: [''] } }] }] }, /empty text matches nothing/],
    ['an unknown condition', { rules: [{ when: [{ key: 'destination.name', values: ['x'] }] }] }, /is not a known key/],
    ...['destination.labels[a]', 'destination.namespace', 'destination.user'].map(
      (key) => [`the condition ${key}`, { rules: [{ when: [{ key, values: ['x'] }] }] }, /is not a known key/] as const,
    ),
    ['a condition without values', { rules: [{ when: [{ key: 'source.ip' }] }] }, /needs values or notValues/],
    ['a port that is none', { rules: [{ to: [{ operation: { ports: ['70000'] } }] }] }, /is not a port number/],
    ['an address that is none', { rules: [{ from: [{ source: { ipBlocks: ['1.2.3'] } }] }] }, /is not an IP address or CIDR/],
  ],
  RequestAuthentication: [
    ['a rule without issuer', { jwtRules: [{ issuer: '' }] }, /issuer: required/],
    ['an empty audience', { jwtRules: [{ issuer: 'i', audiences: [''] }] }, /audiences\[0\]: must not be empty/],
    ['keys of another scheme', { jwtRules: [{ issuer: 'i', jwksUri: 'file:///k' }] }, /jwksUri: not an http or https URL/],
    ['a header without name', { jwtRules: [{ issuer: 'i', fromHeaders: [{ name: '' }] }] }, /fromHeaders\[0\].name/],
    ['an empty parameter', { jwtRules: [{ issuer: 'i', fromParams: [''] }] }, /fromParams\[0\]: must not be empty/],
  ],
  PeerAuthentication: [
    ['ports without selector', { portLevelMtls: { 80: { mode: 'STRICT' } } }, /portLevelMtls: needs a selector/],
    ['no port', { selector: { matchLabels: { a: 'b' } }, portLevelMtls: {} }, /portLevelMtls: needs at least one port/],
    ['port 0', { selector: { matchLabels: { a: 'b' } }, portLevelMtls: { 0: { mode: 'STRICT' } } }, /not a port number/],
  ],
  VirtualService: [
    ['no host', { gateways: ['g'], http: [{ route: [to] }] }, /hosts: required unless the object is a delegate/],
    ['a delegate with gateways', { gateways: ['g'], tls: [{ match: [{ sniHosts: ['a'] }], route: [to] }] }, /hosts: required/],
    ['the host * in the mesh', { hosts: ['*'], http: [{ route: [to] }] }, /hosts: the host \* is only allowed with gateways/],
    [
      'weights of 0',
      {
        hosts: ['a'],
        http: [
          {
            route: [
              { ...to, weight: 0 },
              { ...to, weight: 0 },
            ],
          },
        ],
      },
      /weights of several destinations may not all be 0/,
    ],
    ['a regular expression that is not of RE2', { hosts: ['a'], http: [{ match: [{ uri: { regex: '(?=a)' } }], route: [to] }] }, /not a valid RE2/],
    [
      'an unknown condition of retries',
      { hosts: ['a'], http: [{ route: [to], retries: { attempts: 1, retryOn: 'never' } }] },
      /not a retry condition/,
    ],
    ['a status of a fault', { hosts: ['a'], http: [{ route: [to], fault: { abort: { httpStatus: 100 } } }] }, /httpStatus: 100 is outside 200..599/],
    ['a code of a redirect', { hosts: ['a'], http: [{ redirect: { redirectCode: 200 } }] }, /redirectCode: 200 is not one of 301/],
    ['TLS without names', { hosts: ['a'], tls: [{ match: [{}], route: [to] }] }, /sniHosts: required/],
    ['a host twice', { hosts: ['a', 'a'], http: [{ route: [to] }] }, /a is listed twice/],
    ...(
      [
        [{ route: [to], redirect: { uri: '/b' } }, /route and redirect exclude each other/],
        [{ route: [to], directResponse: { status: 200 } }, /route and directResponse exclude each other/],
        [{ delegate: { name: 'd' }, redirect: { uri: '/b' } }, /redirect and delegate exclude each other/],
        [{ redirect: { uri: '/b' }, rewrite: { uri: '/c' } }, /http\[0\].rewrite: excluded by redirect/],
        [{ redirect: { uri: '/b' }, fault: { abort: { httpStatus: 500, percentage: { value: 1 } } } }, /http\[0\].fault: excluded by redirect/],
        [{ directResponse: { status: 200 }, rewrite: { uri: '/c' } }, /http\[0\].rewrite: excluded by directResponse/],
        [{ directResponse: { status: 200 }, fault: {} }, /http\[0\].fault: excluded by directResponse/],
        [{ redirect: { uri: '/b', prefixRewrite: '/c' } }, /redirect.prefixRewrite: excluded by uri/],
        [{ redirect: { port: 80, derivePort: 'FROM_REQUEST_PORT' } }, /redirect.derivePort: excluded by port/],
        [{ directResponse: { status: 200, body: { string: 'a', bytes: 'YQ==' } } }, /directResponse.body.bytes: excluded by string/],
        [{ route: [to], rewrite: { uri: '/c', uriRegexRewrite: { match: 'a', rewrite: 'b' } } }, /rewrite.uriRegexRewrite: excluded by uri/],
        [{ route: [to], mirror: { host: 'a' }, mirrors: [to] }, /http\[0\].mirrors: excluded by mirror/],
        [{ route: [to], match: [{ uri: { exact: '/a', prefix: '/b' } }] }, /match\[0\].uri.prefix: excluded by exact/],
        [{ route: [to], match: [{ headers: { x: { regex: 'a', prefix: 'b' } } }] }, /match\[0\].headers\[x\].prefix: excluded by regex/],
        [{ route: [to], fault: { delay: { fixedDelay: '1s', exponentialDelay: '1s' } } }, /delay.exponentialDelay: excluded by fixedDelay/],
        [{ route: [to], fault: { abort: { httpStatus: 500, grpcStatus: 'NOT_FOUND' } } }, /abort.grpcStatus: excluded by httpStatus/],
        [{ route: [to], fault: { abort: { httpStatus: 500, http2Error: 'x' } } }, /abort.http2Error: excluded by httpStatus/],
      ] as const
    ).map(([route, fault]) => [`fields that exclude each other: ${fault.source}`, { hosts: ['a'], http: [route] }, fault] as const),
  ],
  DestinationRule: [
    ['an empty policy', policy({}), /trafficPolicy: needs at least one field/],
    [
      'an empty policy of a subset',
      { host: 'a', subsets: [{ name: 'v1', trafficPolicy: {} }] },
      /subsets\[0\].trafficPolicy: needs at least one field/,
    ],
    ['an empty connection pool', policy({ connectionPool: {} }), /connectionPool: needs tcp or http/],
    ['a cookie without name', policy({ loadBalancer: { consistentHash: { httpCookie: { name: '', ttl: '1s' } } } }), /httpCookie.name: required/],
    ['a cookie without ttl', policy({ loadBalancer: { consistentHash: { httpCookie: { name: 'c' } } } }), /httpCookie.ttl: required/],
    [
      'a cookie of a port without ttl',
      policy({ portLevelSettings: [{ port: { number: 80 }, loadBalancer: { consistentHash: { httpCookie: { name: 'c' } } } }] }),
      /portLevelSettings\[0\].loadBalancer.consistentHash.httpCookie.ttl: required/,
    ],
    ['a credential beside files', policy({ tls: { mode: 'SIMPLE', credentialName: 'c', caCertificates: '/ca' } }), /credentialName: excludes/],
    ['MUTUAL without key', policy({ tls: { mode: 'MUTUAL', clientCertificate: '/c' } }), /MUTUAL needs clientCertificate and privateKey/],
    ['a misspelt mode of TLS', policy({ tls: { mode: 'ISTIO_MUTAL' } }), /tls.mode: .* is not one of .*; did you mean "ISTIO_MUTUAL"\?/],
    ['another misspelt mode', policy({ tls: { mode: 'SIMPEL' } }), /tls.mode: .* is not one of .*; did you mean "SIMPLE"\?/],
    ['a misspelt choice', policy({ loadBalancer: { simple: 'RANDON' } }), /loadBalancer.simple: .* is not one of .*; did you mean "RANDOM"\?/],
    ['a subset without name', { host: 'a', subsets: [{ labels: {} }] }, /subsets\[0\].name: required/],
    [
      'distribute and failover',
      locality({ distribute: [{ from: 'a', to: { a: 100 } }], failover: [{ from: 'a', to: 'b' }] }),
      /excluded by distribute/,
    ],
    ...(
      [
        [{ loadBalancer: { simple: 'RANDOM', consistentHash: { useSourceIp: true } } }, /loadBalancer.consistentHash: excluded by simple/],
        [{ loadBalancer: { consistentHash: { useSourceIp: true, httpHeaderName: 'x' } } }, /consistentHash.useSourceIp: excluded by httpHeaderName/],
        [
          { loadBalancer: { consistentHash: { httpHeaderName: 'x', httpCookie: { name: 'c', ttl: '1s' } } } },
          /consistentHash.httpCookie: excluded by httpHeaderName/,
        ],
        [
          { loadBalancer: { consistentHash: { httpHeaderName: 'x', ringHash: {}, maglev: { tableSize: 7 } } } },
          /consistentHash.maglev: excluded by ringHash/,
        ],
        [
          { loadBalancer: { consistentHash: { httpHeaderName: 'x', maglev: { tableSize: 7 }, minimumRingSize: 5 } } },
          /consistentHash.minimumRingSize: excluded by maglev/,
        ],
        [{ tunnel: {}, proxyProtocol: {} }, /trafficPolicy.proxyProtocol: excluded by tunnel/],
        [
          { portLevelSettings: [{ port: { number: 80 }, loadBalancer: { simple: 'RANDOM', consistentHash: {} } }] },
          /\[0\].loadBalancer.consistentHash: excluded/,
        ],
      ] as const
    ).map(([more, fault]) => [`fields that exclude each other: ${fault.source}`, policy(more), fault] as const),
    ['a share of 0', locality({ distribute: [{ from: 'a', to: { a: 100, b: 0 } }] }), /0 is outside 1..100/],
    ['shares that are not 100', locality({ distribute: [{ from: 'a', to: { a: 50 } }] }), /add up to 50, not 100/],
    [
      'localities that overlap',
      locality({
        distribute: [
          { from: 'a/*', to: { a: 100 } },
          { from: 'a/z/s', to: { a: 100 } },
        ],
      }),
      /"a\/z\/s" overlaps with the locality of an entry before/,
    ],
    ['failover into the same region', locality({ failover: [{ from: 'a', to: 'a' }] }), /is the same region as from/],
  ],
  Gateway: [
    ['no server', { servers: [] }, /servers: needs at least 1 entry/],
    ['a server without host', { servers: [server({ protocol: 'HTTP' }, { hosts: [] })] }, /hosts: needs at least 1 entry/],
    ['a port without name', { servers: [server({ protocol: 'HTTP', name: '' })] }, /port.name: required, but empty/],
    ['the name of a port twice', { servers: [server({ protocol: 'HTTP' }), server({ protocol: 'HTTP' })] }, /p is used twice/],
    ['HTTPS without TLS', { servers: [server({ protocol: 'HTTPS' })] }, /tls: required for protocol HTTPS/],
    [
      'TLS of HTTP',
      { servers: [server({ protocol: 'HTTP' }, { tls: { mode: 'SIMPLE', credentialName: 'c' } })] },
      /tls: not allowed for protocol HTTP/,
    ],
    [
      'mesh certificates with others',
      { servers: [server({ protocol: 'HTTPS' }, { tls: { mode: 'ISTIO_MUTUAL', credentialName: 'c' } })] },
      /takes no certificates/,
    ],
    ...(
      [
        [{ credentialName: 'c', credentialNames: ['d'] }, /tls.credentialNames: excluded by credentialName/],
        [
          { credentialName: 'c', tlsCertificates: [{ serverCertificate: '/c', privateKey: '/k' }] },
          /tls.tlsCertificates: excluded by credentialName/,
        ],
        [{ credentialName: 'c', serverCertificate: '/c', privateKey: '/k' }, /tls.serverCertificate: excluded by credentialName/],
      ] as const
    ).map(
      ([tls, fault]) =>
        [
          `fields that exclude each other: ${fault.source}`,
          { servers: [server({ protocol: 'HTTPS' }, { tls: { mode: 'SIMPLE', ...tls } })] },
          fault,
        ] as const,
    ),
    ['SIMPLE without certificate', { servers: [server({ protocol: 'HTTPS' }, { tls: { mode: 'SIMPLE' } })] }, /SIMPLE needs serverCertificate/],
    ['a selector with a wildcard', { selector: { app: '*' }, servers: [server({ protocol: 'HTTP' })] }, /selector\[[^\]]*\]: wildcards/],
  ],
  ServiceEntry: [
    ['no host', { hosts: [], ports: [] }, /hosts: needs at least 1 entry/],
    [
      'selector and endpoints',
      entry({ resolution: 'STATIC', workloadSelector: { labels: { a: 'b' } }, endpoints: [{ address: '1.2.3.4' }] }),
      /excluded by workloadSelector/,
    ],
    ['a number of a port twice', entry({ ports: [1, 2].map((name) => ({ number: 80, name: `n${name}`, protocol: 'HTTP' })) }), /80 is used twice/],
    ['a name of a port twice', entry({ ports: [80, 81].map((number) => ({ number, name: 'n', protocol: 'HTTP' })) }), /n is used twice/],
    ['endpoints without resolution', entry({ resolution: 'NONE', endpoints: [{ address: '1.2.3.4' }] }), /not allowed with resolution NONE/],
    ['an endpoint that DNS does not know', entry({ resolution: 'DNS', endpoints: [{ address: 'a b' }] }), /is not a host name or IP address/],
    ['a CIDR with DNS', entry({ resolution: 'DNS', addresses: ['10.0.0.0/8'] }), /a CIDR needs resolution NONE or STATIC/],
    [
      'a selector with an empty key',
      entry({ resolution: 'STATIC', workloadSelector: { labels: { '': 'b' } } }),
      /workloadSelector.labels\[\]: a label needs a name/,
    ],
  ],
  Sidecar: [
    ['ingress without a number', { ingress: [{ port: { number: 0 } }] }, /ingress\[0\].port.number/],
    ['ingress without port', { ingress: [{ port: { protocol: 'HTTP' } }] }, /ingress\[0\].port.number: required/],
    ['another end of ingress', { ingress: [{ port: { number: 80 }, defaultEndpoint: '1.2.3.4:80' }] }, /defaultEndpoint: .* is not 127.0.0.1:port/],
    ['egress without port before the last', { egress: [{ hosts: ['*/*'] }, { hosts: ['*/*'] }] }, /the entry without a port must be the last/],
    ['a host without namespace', { egress: [{ hosts: ['a'] }] }, /is not namespace\/host/],
    [
      'a proxy without ALLOW_ANY',
      { outboundTrafficPolicy: { mode: 'REGISTRY_ONLY', egressProxy: { host: 'a' } } },
      /egressProxy: needs mode ALLOW_ANY/,
    ],
    ['a selector with a wildcard', { workloadSelector: { labels: { 'a*': 'b' } } }, /workloadSelector.labels\[[^\]]*\]: wildcards/],
  ],
  EnvoyFilter: [
    ['no applyTo', { configPatches: [{ patch: { operation: 'MERGE', value: {} } }] }, /applyTo: required/],
    ['no patch', { configPatches: [{ applyTo: 'CLUSTER' }] }, /patch: required/],
    ['no operation', patched({}, { value: {} }), /operation: required/],
    ['no value', patched({}, { operation: 'MERGE' }), /patch.value: required for operation MERGE/],
    ['a match of another class', patched({ match: { listener: { portNumber: 80 } } }), /match.listener: does not fit applyTo CLUSTER/],
    ['a version that is no pattern', patched({ match: { proxy: { proxyVersion: '(' } } }), /proxyVersion: not a valid RE2 pattern/],
    ['a selector with a wildcard', { workloadSelector: { labels: { a: '*' } } }, /workloadSelector.labels\[[^\]]*\]: wildcards/],
  ],
}

/** By kind: what other implementations refuse and is told as a warning (docs/operation.md, W6), the spec, and the warning of a review. */
const warned: typeof table = {
  Gateway: [
    [
      'an unknown cipher suite',
      tlsServer({ cipherSuites: ['FOO', known] }),
      /tls.cipherSuites\[0\]: "FOO" is not a cipher suite that Envoy knows: left out/,
    ],
    [
      'a misspelt cipher suite',
      tlsServer({ cipherSuites: [known, 'ECDHE-RSA-AES256-GCM-SHA348'] }),
      /cipherSuites\[1\]: .*; did you mean "ECDHE-RSA-AES256-GCM-SHA384"\?/,
    ],
    ['a cipher suite twice', tlsServer({ cipherSuites: [known, known] }), /cipherSuites\[1\]: "ECDHE-RSA-AES128-GCM-SHA256" is listed twice/],
    [
      'a cipher suite of TLS 1.3 alone',
      tlsServer({ cipherSuites: ['TLS_AES_128_GCM_SHA256'] }),
      /cipherSuites\[0\]: .* has no effect: the cipher suites of TLS 1.3 .*; .*cipherSuites: none of these cipher suites is used/,
    ],
    [
      'cipher suites of TLS 1.3 alone',
      tlsServer({ minProtocolVersion: 'TLSV1_3', cipherSuites: [known] }),
      /tls.cipherSuites: has no effect: the cipher suites of TLS 1.3/,
    ],
    [
      'versions of TLS that exclude each other',
      tlsServer({ minProtocolVersion: 'TLSV1_3', maxProtocolVersion: 'TLSV1_2' }),
      /tls.minProtocolVersion: no client can connect: TLSV1_3 is newer than maxProtocolVersion/,
    ],
    [
      'a newest version of TLS below the oldest one of Envoy',
      tlsServer({ maxProtocolVersion: 'TLSV1_1' }),
      /tls.maxProtocolVersion: no client can connect: TLSV1_1 is older than TLSV1_2/,
    ],
  ],
  EnvoyFilter: [
    [
      'deprecated names of filters in a match',
      removed({ filterChain: { filter: { name: 'envoy.http_connection_manager', subFilter: { name: 'envoy.lua' } } } }),
      /filter.name: "envoy.http_connection_manager" is a deprecated name: use "envoy.filters.network.http_connection_manager"; .*subFilter.name: "envoy.lua" .* use "envoy.filters.http.lua"/,
    ],
    [
      'a deprecated name of a listener filter',
      removed({ listenerFilter: 'envoy.listener.tls_inspector' }, 'LISTENER_FILTER'),
      /listener.listenerFilter: .* use "envoy.filters.listener.tls_inspector"/,
    ],
    [
      'a deprecated name of an added filter',
      added('envoy.cors'),
      /patch.value.name: "envoy.cors" is a deprecated name: use "envoy.filters.http.cors"/,
    ],
  ],
  VirtualService: [
    [
      'an exponential delay',
      { hosts: ['a'], http: [{ route: [to], fault: { delay: { exponentialDelay: '1s', percentage: { value: 1 } } } }] },
      /exponentialDelay: /,
    ],
    [
      'a name of TLS that its hosts do not have',
      { hosts: ['a.example'], tls: [{ match: [{ sniHosts: ['b.example'] }], route: [to] }] },
      /tls\[0\].match\[0\].sniHosts\[0\]: b.example is not among the hosts/,
    ],
  ],
}

/** An object of a kind, and the review of its creation. */
function made(name: string, spec: object) {
  const kind = kinds.get(name)
  const [group, version] = [`${kind?.group}.mesh.io`, kind?.versions[0] ?? '']
  const object = { apiVersion: `${group}/${version}`, kind: name, metadata: { name: 'x', namespace: 'ns' }, spec }
  const request: AdmissionRequest = {
    ...{ uid: 'u', kind: { group, version, kind: name }, resource: { group, version, resource: '' }, subResource: '', name: 'x', namespace: 'ns' },
    ...{ operation: 'CREATE', user: '', isDryRun: false, object, oldObject: undefined },
  }
  const { answer } = decideAdmission(request, { names, patterns: new PatternChecks(), optOuts: new Set() })
  return { object, answer }
}

/** What `pilot-discovery validate` finds in a file, in YAML. */
async function validated(object: object): Promise<string> {
  const order = { paths: ['-'], isCheck: true, domain: 'cluster.local', form: 'text', failOn: 'error', cluster: undefined } as const
  const { findings } = await analyzeFiles(order, Readable.from([Buffer.from(stringify(object, { compat: 'yaml-1.1' }))]), {})
  return findings.map(({ level, path, message }) => `${level} ${path}: ${message}`).join('; ')
}

describe('validation', () => {
  for (const [name, rows] of Object.entries(warned))
    for (const [what, spec, warning] of rows)
      it(`takes ${name} with ${what}, in a file, and in a review with a warning`, async () => {
        const { object, answer } = made(name, spec)
        expect([answer.allowed, (answer.warnings ?? []).join('; ')]).to.satisfy(([allowed, said]: [boolean, string]) => allowed && warning.test(said))
        expect(await validated(object))
          .to.match(warning)
          .and.not.include('error ')
      })

  it('takes cipher suites, versions of TLS and names of filters that have an effect, without a warning', () => {
    const tls = { minProtocolVersion: 'TLSV1_0', maxProtocolVersion: 'TLSV1_1', cipherSuites: [known, 'AES128-SHA'] }
    for (const [kind, spec] of [
      ['Gateway', tlsServer(tls)],
      ['Gateway', tlsServer({ minProtocolVersion: 'TLS_AUTO', maxProtocolVersion: 'TLSV1_2' })],
      ['EnvoyFilter', added('envoy.filters.http.cors')],
      ['EnvoyFilter', removed({ listenerFilter: 'envoy.filters.listener.tls_inspector' }, 'LISTENER_FILTER')],
    ] as const)
      expect(made(kind, spec).answer).to.deep.equal({ allowed: true, warnings: [] })
  })

  for (const [name, rows] of Object.entries(table))
    for (const [what, spec, fault] of rows)
      it(`refuses ${name} with ${what}, in a file, a review and the store`, async () => {
        const { object, answer } = made(name, spec)
        expect(answer.allowed).to.equal(false)
        expect(answer.message).to.match(/^configuration is invalid: /)
        expect(answer.message).to.match(fault)
        for (const { faults } of [parseConfigFile('f.yaml', JSON.stringify(object), names), parseConfigDocument('cluster', object, names, {})])
          expect(faults.map(({ path, reason }) => `${path}: ${reason}`).join('; ')).to.match(fault)
        expect(await validated(object))
          .to.match(fault)
          .and.include('error ')
      })
})
