/** Specs with a value in every field that affects a resource, and variants of them with one unusual value. */
import { parse } from 'yaml'
import { oddWords } from './documents.ts'

/** Specs by kind, as YAML. */
const whole: Readonly<Record<string, readonly string[]>> = {
  VirtualService: [
    `
hosts: [b.fuzz.svc.cluster.local, '*.wild.example.com']
gateways: [mesh, g]
http:
- name: one
  match: [{name: m, uri: {regex: '/a.*'}, ignoreUriCase: true, scheme: {exact: http}, method: {exact: GET}, authority: {prefix: b}, headers: {x-h: {exact: v}, y-h: {regex: 'a+'}, z-h: {prefix: p}}, withoutHeaders: {w-h: {exact: v}}, queryParams: {q: {exact: v}, r: {regex: a}}}]
  route: [{destination: {host: a.fuzz.svc.cluster.local, subset: v1, port: {number: 80}}, weight: 30, headers: {request: {set: {x-a: b}, add: {x-c: d}, remove: [x-e]}, response: {set: {x-a: b}, add: {x-c: d}, remove: [x-e]}}}, {destination: {host: b.fuzz.svc.cluster.local, port: {number: 80}}, weight: 70}]
  timeout: 5s
  retries: {attempts: 2, perTryTimeout: 1s, retryOn: '5xx,503'}
  fault: {delay: {fixedDelay: 1s, percentage: {value: 10}}, abort: {httpStatus: 503, percentage: {value: 5}}}
  mirror: {host: a.fuzz.svc.cluster.local, port: {number: 80}}
  mirrorPercentage: {value: 33}
  mirrors: [{destination: {host: a.fuzz.svc.cluster.local, port: {number: 80}}, percentage: {value: 1}}]
  corsPolicy: {allowOrigins: [{exact: 'http://a'}, {prefix: h}, {regex: 'x.*'}], allowMethods: [GET], allowHeaders: [x-a], exposeHeaders: [x-b], maxAge: 10s, allowCredentials: true}
  headers: {request: {set: {x-a: b}, add: {x-c: d}, remove: [x-e]}, response: {set: {x-a: b}, add: {x-c: d}, remove: [x-e]}}
  rewrite: {uri: /new, authority: other.example.com}
`,
    `
hosts: [b.fuzz.svc.cluster.local]
gateways: [mesh, g]
http:
- match: [{uri: {prefix: /p}}]
  rewrite: {uriRegexRewrite: {match: '^/p/(.*)', rewrite: '/\\\\1'}}
  route: [{destination: {host: a.fuzz.svc.cluster.local, port: {number: 80}}}]
- match: [{uri: {exact: /r}}]
  redirect: {uri: /s, authority: x.example.com, scheme: https, port: 8443, redirectCode: 302}
- match: [{uri: {prefix: /d}}]
  directResponse: {status: 418, body: {string: text}}
- match: [{uri: {prefix: /e}}]
  directResponse: {status: 200, body: {bytes: aGVsbG8=}}
- route: [{destination: {host: a.fuzz.svc.cluster.local, port: {number: 80}}}]
tls:
- match: [{sniHosts: [b.fuzz.svc.cluster.local], destinationSubnets: [10.0.0.0/8], port: 443}]
  route: [{destination: {host: a.fuzz.svc.cluster.local, port: {number: 443}}, weight: 1}, {destination: {host: b.fuzz.svc.cluster.local, port: {number: 443}}, weight: 2}]
tcp:
- match: [{destinationSubnets: [10.0.0.0/8], port: 8080}]
  route: [{destination: {host: a.fuzz.svc.cluster.local, port: {number: 8080}}, weight: 1}, {destination: {host: b.fuzz.svc.cluster.local, port: {number: 8080}}, weight: 1}]
`,
  ],
  DestinationRule: [
    `
host: a.fuzz.svc.cluster.local
trafficPolicy:
  loadBalancer: {consistentHash: {httpCookie: {name: c, path: /p, ttl: 10s, attributes: [{name: SameSite, value: Lax}]}, minimumRingSize: 100}, localityLbSetting: {enabled: true, distribute: [{from: region/*, to: {region/*: 60, other/*: 40}}]}}
  connectionPool: {tcp: {maxConnections: 10, connectTimeout: 1s, tcpKeepalive: {probes: 1, time: 1s, interval: 1s}, maxConnectionDuration: 10s}, http: {http1MaxPendingRequests: 1, http2MaxRequests: 2, maxRequestsPerConnection: 3, maxRetries: 4, idleTimeout: 1s, h2UpgradePolicy: UPGRADE, maxConcurrentStreams: 5, http2KeepAlive: {interval: 30s, timeout: 5s}}}
  proxyProtocol: {version: V2}
  retryBudget: {percent: 12.5, minRetryConcurrency: 4}
  outlierDetection: {consecutive5xxErrors: 1, consecutiveGatewayErrors: 1, splitExternalLocalOriginErrors: true, consecutiveLocalOriginFailures: 1, interval: 1s, baseEjectionTime: 1s, maxEjectionPercent: 10, minHealthPercent: 10}
  tls: {mode: SIMPLE, sni: x.example.com, subjectAltNames: [a.example.com], credentialName: c}
subsets: [{name: v1, labels: {app: v1}, trafficPolicy: {loadBalancer: {consistentHash: {maglev: {tableSize: 101}, httpHeaderName: x-h}}}}]
`,
    `
host: a.fuzz.svc.cluster.local
trafficPolicy:
  loadBalancer: {consistentHash: {httpQueryParameterName: q, ringHash: {minimumRingSize: 10}}, localityLbSetting: {failover: [{from: region, to: other}]}, warmupDurationSecs: 10s}
  portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: LEAST_REQUEST, warmup: {duration: 30s, minimumPercent: 5, aggression: 1.5}}, connectionPool: {tcp: {maxConnections: 1}}, outlierDetection: {consecutiveErrors: 1}, tls: {mode: ISTIO_MUTUAL, sni: a, subjectAltNames: [b]}}]
  outlierDetection: {consecutive5xxErrors: 0, interval: 1s, baseEjectionTime: 400s}
subsets: [{name: v1, labels: {app: v1}}, {name: v2, labels: {app: v2}}]
`,
    `
host: a.fuzz.svc.cluster.local
trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true}}}
`,
  ],
  Gateway: [
    `
selector: {app: v1}
servers:
- {name: 'n', port: {number: 8081, protocol: HTTP, name: http}, hosts: [b.fuzz.svc.cluster.local, './x.example.com'], bind: 127.0.0.1}
- {port: {number: 8443, protocol: HTTPS, name: https}, hosts: ['b.fuzz.svc.cluster.local'], tls: {mode: SIMPLE, credentialName: cred, subjectAltNames: [a], minProtocolVersion: TLSV1_2, maxProtocolVersion: TLSV1_3, cipherSuites: [ECDHE-ECDSA-AES128-GCM-SHA256]}}
- {port: {number: 9443, protocol: HTTPS, name: mutual}, hosts: ['*.example.com'], tls: {mode: MUTUAL, credentialName: cred, subjectAltNames: [a, 'spiffe://a/b'], verifyCertificateHash: ['df:6f:f7:2f:e9:11:65:21:26:8f:6f:2d:d4:96:6f:51:df:47:98:83:fe:70:37:b3:9f:1e:9f:86:9d:18:b4:0d'], verifyCertificateSpki: ['NvqYIYSbgK2vCJpQhObf77vv+bQWtc5ek5RIOwPiC9A=']}}
- {port: {number: 7443, protocol: TLS, name: pass}, hosts: ['b.fuzz.svc.cluster.local', 'c.example.com'], tls: {mode: PASSTHROUGH}}
- {port: {number: 15443, protocol: TLS, name: auto}, hosts: ['*.local'], tls: {mode: AUTO_PASSTHROUGH}}
- {port: {number: 7000, protocol: TCP, name: tcp}, hosts: ['*']}
- {port: {number: 6443, protocol: HTTPS, name: own}, hosts: ['*'], tls: {mode: ISTIO_MUTUAL}}
`,
  ],
  ServiceEntry: [
    `
hosts: [n.example.com, '*.n.example.com']
addresses: [240.0.0.1, 10.9.0.0/16]
ports: [{number: 80, protocol: HTTP, name: http, targetPort: 8080}, {number: 443, protocol: TLS, name: tls}, {number: 9000, protocol: TCP, name: tcp}, {number: 9001, name: any}]
location: MESH_INTERNAL
resolution: STATIC
endpoints: [{address: 10.7.0.1, ports: {http: 81}, labels: {app: v1}, locality: r/z/s, weight: 5, serviceAccount: sa, network: 'n'}, {address: 10.7.0.2, weight: 7}]
subjectAltNames: [a.example.com]
exportTo: ['*']
`,
    `
hosts: [n.example.com]
ports: [{number: 80, protocol: HTTP, name: http}, {number: 9000, protocol: TCP, name: tcp}]
location: MESH_EXTERNAL
resolution: DNS
endpoints: [{address: e.example.com, ports: {http: 81}, locality: r/z, weight: 5}, {address: 10.7.0.2}]
`,
    `
hosts: ['*.n.example.com', n.example.com]
addresses: [10.9.0.0/16]
ports: [{number: 443, protocol: TLS, name: tls}, {number: 9000, protocol: TCP, name: tcp}, {number: 80, protocol: HTTP, name: http}]
resolution: NONE
`,
  ],
  WorkloadEntry: [`{address: 10.7.0.9, ports: {http: 81}, labels: {app: w}, locality: r/z, weight: 3, serviceAccount: sa, network: 'n'}`],
  Sidecar: [
    `
ingress: [{port: {number: 7070, protocol: HTTP, name: http}, bind: 127.0.0.1, captureMode: NONE, defaultEndpoint: '127.0.0.1:8080'}, {port: {number: 7071, protocol: TCP, name: tcp}, defaultEndpoint: 'unix:///tmp/x'}]
egress: [{port: {number: 7072, protocol: HTTP, name: http}, bind: 127.0.0.1, captureMode: NONE, hosts: ['./*']}, {port: {number: 7073, protocol: TCP, name: tcp}, bind: 'unix:///tmp/y', hosts: ['./*']}, {hosts: ['*/*']}]
outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: a.fuzz.svc.cluster.local, subset: v1, port: {number: 80}}}
`,
  ],
  AuthorizationPolicy: ['ALLOW', 'DENY', 'AUDIT'].map(
    (action) => `
action: ${action}
rules:
- from: [{source: {principals: [a, 'td/ns/a/sa/*'], notPrincipals: ['*b'], requestPrincipals: ['i/s'], notRequestPrincipals: ['*'], namespaces: ['n'], notNamespaces: [m], ipBlocks: [10.0.0.0/8], notIpBlocks: [10.1.0.0/16], remoteIpBlocks: ['::/0'], notRemoteIpBlocks: [1.2.3.4]}}]
  to: [{operation: {hosts: [h.com], notHosts: ['*.i.com'], ports: ['80'], notPorts: ['81'], methods: [GET], notMethods: [PUT], paths: [/a, '/b*'], notPaths: ['*c']}}]
  when: [{key: 'request.headers[x-h]', values: [v]}, {key: 'request.auth.claims[c]', values: [v], notValues: [w]}, {key: source.ip, values: [10.0.0.1]}, {key: remote.ip, notValues: [10.0.0.1]}, {key: source.namespace, values: ['n']}, {key: source.principal, values: [p]}, {key: request.auth.principal, values: [p/q]}, {key: request.auth.audiences, values: [a]}, {key: request.auth.presenter, values: [a]}, {key: destination.ip, values: [10.0.0.1]}, {key: destination.port, values: ['80']}, {key: connection.sni, values: [s]}, {key: 'experimental.envoy.filters.network.mysql_proxy[db.t]', values: ['[x]']}]
`,
  ),
  RequestAuthentication: [
    `
jwtRules:
- {issuer: i, audiences: [a], jwks: '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}', fromHeaders: [{name: x-h, prefix: 'P '}], fromParams: [p], outputPayloadToHeader: x-o, forwardOriginalToken: true, outputClaimToHeaders: [{header: x-c, claim: c}]}
- {issuer: j, jwksUri: 'https://x.example.com/keys', fromHeaders: [{name: x-i}], fromParams: [q]}
`,
  ],
  PeerAuthentication: [`{selector: {matchLabels: {app: v1}}, mtls: {mode: STRICT}, portLevelMtls: {80: {mode: DISABLE}}}`],
}

/** Texts that a proxy may reject as a pattern, a format, an address or a name. */
const oddText = [
  ...oddWords,
  '',
  '*',
  '(',
  'a{1001}',
  '(?=a)',
  '.*'.repeat(40),
  'a'.repeat(120),
  'é'.repeat(60),
  '10.0.0.0/08',
  '10.0.0.1/33',
  '1.2.3.4/24',
  '99999h',
  '0s',
  '1ns',
  '\\x{100}',
  '\\p{Emoji}',
  '..',
  '%2F',
  '%zz',
  '%00',
  ':80',
  'a:80',
  'http://x',
  '*.*.com',
  '**',
  'te',
  ':method',
  'cookie',
  '-1',
]
const oddNumbers = [0, 1, 99, 100, 101, 200, 304, 599, 65_535, 2_147_483_648, 4_294_967_295, 5_000_011, 8_388_609, 0.0000001, 1e308]

/** A spec with one unusual value, and a description of the change. */
export interface OddSpec {
  readonly kind: string
  readonly spec: unknown
  readonly what: string
}

/** The specs without unusual values. */
export const wholeSpecs = (): { readonly kind: string; readonly spec: unknown }[] =>
  Object.entries(whole).flatMap(([kind, texts]) => texts.map((text) => ({ kind, spec: parse(text) as unknown })))

type Path = readonly (string | number)[]

/**
 * Yields every spec with every unusual value in place of each of its values, with every list emptied and doubled, and with every field
 * removed.
 */
export function* oddSpecs(): Generator<OddSpec> {
  for (const [kind, texts] of Object.entries(whole))
    for (const [index, text] of texts.entries()) {
      const given = parse(text)
      const changed = (path: Path, what: string, change: (within: Record<string | number, unknown>, step: string | number) => void): OddSpec => {
        const spec = structuredClone(given)
        const within = path.slice(0, -1).reduce((at, step) => at[step], spec)
        change(within, path.at(-1) as string | number)
        return { kind, spec, what: `${kind} ${index}: ${path.join('.')} ${what}` }
      }
      yield { kind, spec: given, what: `${kind} ${index}` }
      for (const [path, value] of placesOf(given)) {
        const odd =
          typeof value === 'string' ? oddText : typeof value === 'number' ? oddNumbers : Array.isArray(value) ? [[], [...value, ...value]] : []
        for (const each of odd) yield changed(path, JSON.stringify(each), (within, step) => (within[step] = structuredClone(each)))
        yield changed(path, 'left out', (within, step) => delete within[step])
      }
    }
}

/** Yields all paths below a value, with the values there. */
function* placesOf(value: unknown, path: Path = []): Generator<readonly [Path, unknown]> {
  if (typeof value !== 'object' || value === null) return
  for (const [key, each] of Object.entries(value)) {
    const at = [...path, Array.isArray(value) ? Number(key) : key]
    yield [at, each]
    yield* placesOf(each, at)
  }
}
