/** Policies, requests, and the status each request must get: what Envoy and `/debug/authz` are both held to. */

/** What a request carries; `$name` in a header stands for a token of that name. */
export interface Row {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: readonly (readonly [string, string])[]
  /** Name of a token in `Authorization: Bearer`. */
  readonly token?: string
  readonly status: number
}

/** A set of policies in force at once, as kind and spec. */
export interface Case {
  readonly name: string
  readonly policies: readonly {
    readonly kind: 'AuthorizationPolicy' | 'RequestAuthentication'
    readonly spec: object
    readonly annotations?: object
  }[]
  /** `pathNormalization` of the mesh, when it is not the default. */
  readonly normalization?: string
  readonly rows: readonly Row[]
}

export const issuers = { one: 'https://one.example', two: 'two@issuer/with/slashes', unserved: 'https://unserved.example' }

const allow = (...rules: object[]) => ({ kind: 'AuthorizationPolicy' as const, spec: { action: 'ALLOW', rules } })
const deny = (...rules: object[]) => ({ kind: 'AuthorizationPolicy' as const, spec: { action: 'DENY', rules } })
const to = (operation: object) => ({ to: [{ operation }] })
const from = (source: object) => ({ from: [{ source }] })
const when = (key: string, values: string[], notValues?: string[]) => ({
  when: [{ key, ...(values.length > 0 ? { values } : {}), ...(notValues ? { notValues } : {}) }],
})
const jwt = (...jwtRules: object[]) => ({ kind: 'RequestAuthentication' as const, spec: { jwtRules } })
const one = { issuer: issuers.one, jwks: '$one' }
const two = { issuer: issuers.two, jwks: '$two' }

/** Rows for one thing that varies. */
const rows = <T>(values: readonly (readonly [T, number])[], row: (value: T) => Omit<Row, 'status'>): Row[] =>
  values.map(([value, status]) => ({ ...row(value), status }))
const paths = (...values: (readonly [string, number])[]) => rows(values, (path) => ({ path }))
const hosts = (...values: (readonly [string, number])[]) => rows(values, (host) => ({ host }))
const tokens = (...values: (readonly [string | undefined, number])[]) => rows(values, (token) => (token === undefined ? {} : { token }))
const header = (name: string, ...values: (readonly [readonly string[], number])[]) =>
  rows(values, (list) => ({ headers: list.map((value) => [name, value] as const) }))

export const cases: readonly Case[] = [
  { name: 'no policy', policies: [], rows: [...paths(['/', 200], ['/any/thing?x=1', 200]), { method: 'DELETE', status: 200 }] },
  {
    name: 'a policy without rules lets nothing through',
    policies: [{ kind: 'AuthorizationPolicy', spec: {} }],
    rows: [...paths(['/', 403], ['/x', 403]), { method: 'POST', status: 403 }],
  },
  {
    name: 'a rule without conditions lets everything through',
    policies: [allow({})],
    rows: [...paths(['/', 200], ['/x?y', 200]), { method: 'POST', status: 200 }],
  },
  { name: 'DENY with a rule without conditions', policies: [deny({})], rows: paths(['/', 403], ['/x', 403]) },
  { name: 'DENY before ALLOW', policies: [allow({}), deny(to({ paths: ['/admin'] }))], rows: paths(['/', 200], ['/admin', 403], ['/admin/x', 200]) },
  {
    name: 'AUDIT denies nothing',
    policies: [{ kind: 'AuthorizationPolicy', spec: { action: 'AUDIT', rules: [{}] } }],
    rows: paths(['/', 200], ['/x', 200]),
  },
  {
    name: 'dry run denies nothing',
    policies: [{ kind: 'AuthorizationPolicy', spec: { action: 'DENY', rules: [{}] }, annotations: { 'istio.io/dry-run': 'true' } }],
    rows: paths(['/', 200], ['/x', 200]),
  },
  {
    name: 'a dry run of ALLOW requires nothing',
    policies: [{ kind: 'AuthorizationPolicy', spec: { action: 'ALLOW', rules: [] }, annotations: { 'security.mesh.io/dry-run': 'true' } }],
    rows: paths(['/', 200]),
  },
  {
    name: 'a dry run that says no, or nothing that is known, is none',
    policies: ['false', 'yes'].map((said) => ({ ...deny(to({ paths: [`/${said}`] })), annotations: { 'mesh.io/dry-run': said } })),
    rows: paths(['/false', 403], ['/yes', 403], ['/', 200]),
  },
  {
    name: 'ALLOW path templates',
    policies: [allow(to({ paths: ['/a/{*}', '/b/{*}/c/{**}', '/d/{**}/'] }))],
    rows: paths(
      ...(['/a/x', '/a/x?y=/z', '/a//x', '/b/x/c/', '/b/x/c/y/z', '/d/x/', '/d/x/y/', '/a/x*y'] as const).map((path) => [path, 200] as const),
      ...(['/a/', '/a', '/a/x/y', '/a/x%2fy', '/b/c/', '/b/x/y/c/', '/d/x', '/d', '/a/x[y', '/a/x]', '/xa/x'] as const).map(
        (path) => [path, 403] as const,
      ),
    ),
  },
  {
    name: 'DENY path templates: characters that operators do not take lead nobody past them',
    policies: [deny(to({ paths: ['/a/{*}', '/b/{*}/c/{**}'] }))],
    rows: paths(
      ...(
        [
          '/a/x',
          '/a//x',
          '/./a/x',
          '/a/x*y',
          '/a/[',
          '/a/x]y',
          '/a/%2a',
          '/a/x%7Cy',
          '/a/x|y',
          '/b/x/c/[',
          '/b/[/c/y',
          '/b/x/c/',
          '/a/%C3%A9',
        ] as const
      ).map((path) => [path, 403] as const),
      ...(['/a/x/y', '/a/', '/b/x', '/c/x[y'] as const).map((path) => [path, 200] as const),
    ),
  },
  {
    name: 'ALLOW all but a path template',
    policies: [allow(to({ notPaths: ['/a/{*}'] }))],
    rows: paths(['/a/x', 403], ['/a/x[y', 403], ['/a/x/y', 200], ['/', 200]),
  },
  {
    name: 'tokens in cookies',
    policies: [jwt({ ...one, fromCookies: ['auth-token', 'other'] }), allow(from({ requestPrincipals: ['*'] }))],
    rows: [
      { headers: [['cookie', 'a=b; auth-token=$one; c=d']], status: 200 },
      { headers: [['cookie', 'other="$one"']], status: 200 },
      { headers: [['cookie', 'auth-token=$forged']], status: 401 },
      { headers: [['cookie', 'auth-token=$one; other=$forged']], status: 401 },
      { headers: [['cookie', 'auth-tokens=$one']], status: 403 },
      { token: 'one', status: 403 },
    ],
  },
  {
    name: 'claims whose words count each, named as such or not',
    policies: [jwt({ ...one, spaceDelimitedClaims: ['words'] }), allow(when('request.auth.claims[scope]', ['read']))],
    rows: tokens([undefined, 403]),
  },
  {
    name: 'DENY an exact path, however it is written',
    policies: [deny(to({ paths: ['/admin/panel'] }))],
    rows: paths(
      ['/admin/panel', 403],
      ['/admin/panel?x=1', 403],
      ['/admin/panel?', 403],
      ['/admin//panel', 403],
      ['//admin/panel', 403],
      ['/admin/./panel', 403],
      ['/x/../admin/panel', 403],
      ['/admin%2Fpanel', 403],
      ['/admin%2fpanel', 403],
      ['/admin%5Cpanel', 403],
      ['/admin%5cpanel', 403],
      ['/admin\\panel', 403],
      ['/admin/%2e/panel', 403],
      ['/x/%2e%2e/admin/panel', 403],
      ['/x%2F..%2Fadmin/panel', 403],
      ['/%61dmin/panel', 403],
      ['/admin/p%61nel', 403],
      ['/admin///panel', 403],
      ['/admin/%2Fpanel', 403],
      ['/admin/panel#x', 400],
      ['/admin/panel;x=1', 200],
      ['/admin;/panel', 200],
      ['/Admin/panel', 200],
      ['/admin/panel/', 200],
      ['/admin/panels', 200],
      ['/admin', 200],
      ['/admin/panel%20', 200],
      ['/admin%252Fpanel', 200],
      ['/?/admin/panel', 200],
    ),
  },
  {
    name: 'ALLOW by notPaths, however it is written',
    policies: [allow(to({ notPaths: ['/admin*'] }))],
    rows: paths(
      ['/admin', 403],
      ['/admin/x', 403],
      ['//admin', 403],
      ['/x/../admin', 403],
      ['/%61dmin', 403],
      ['/x%2F..%2Fadmin', 403],
      ['\\admin', 400],
      ['/.//admin', 403],
      ['/open', 200],
      ['/open?/admin', 200],
      ['/open/admin', 200],
      ['/ADMIN', 200],
      ['/%2Fadmin', 403],
      ['/%5Cadmin', 403],
    ),
  },
  {
    name: 'paths by prefix, suffix and presence',
    policies: [allow(to({ paths: ['/api/*', '*.html', '/exact'] }))],
    rows: paths(
      ['/api/', 200],
      ['/api/x', 200],
      ['/api', 403],
      ['/apix', 403],
      ['/x.html', 200],
      ['/x.html?y', 200],
      ['/x.htmls', 403],
      ['/exact', 200],
      ['/exact/', 403],
      ['/api//x', 200],
      ['/x/../api/y', 200],
      ['/api/../private', 403],
      ['/api/%2e%2e/private', 403],
      ['/api%2F..%2Fprivate', 403],
      ['/x?.html', 403],
      ['/x%2Ehtml', 200],
    ),
  },
  { name: 'any path', policies: [allow(to({ paths: ['*'] }))], rows: paths(['/', 200], ['/x', 200]) },
  {
    name: 'paths without normalization',
    normalization: 'NONE',
    policies: [deny(to({ paths: ['/admin'] }))],
    rows: paths(['/admin', 403], ['/admin?x', 403], ['//admin', 200], ['/x/../admin', 200], ['/%61dmin', 200]),
  },
  {
    name: 'paths with basic normalization',
    normalization: 'BASE',
    policies: [deny(to({ paths: ['/a/b'] }))],
    rows: paths(['/a/b', 403], ['/x/../a/b', 403], ['/a\\b', 403], ['/a//b', 200], ['/a%2Fb', 200], ['/a%5Cb', 200], ['/%61/b', 403]),
  },
  {
    name: 'paths with merged slashes',
    normalization: 'MERGE_SLASHES',
    policies: [deny(to({ paths: ['/a/b'] }))],
    rows: paths(['/a/b', 403], ['/a//b', 403], ['//a/b', 403], ['/a%2Fb', 200], ['/x/../a/b', 403]),
  },
  {
    name: 'DENY a host, however it is written',
    policies: [deny(to({ hosts: ['secret.com'] }))],
    rows: hosts(
      ['secret.com', 403],
      ['Secret.com', 403],
      ['SECRET.COM', 403],
      ['secret.com:80', 403],
      ['secret.com:8080', 403],
      ['Secret.Com:443', 403],
      ['secret.com.', 403],
      ['secret.com.:80', 403],
      ['secretxcom', 200],
      ['notsecret.com', 200],
      ['secret.com.evil.org', 200],
      ['x.secret.com', 200],
    ),
  },
  {
    name: 'hosts by suffix, prefix and port',
    policies: [allow(to({ hosts: ['*.shop.com', 'api.*', 'exact.org:8080'] }))],
    rows: hosts(
      ['a.shop.com', 200],
      ['A.Shop.Com:80', 200],
      ['shop.com', 403],
      ['a.shop.com.evil', 403],
      ['api.x', 200],
      ['API.y:1', 200],
      ['xapi.y', 403],
      ['exact.org:8080', 200],
      ['Exact.org:8080', 200],
      ['exact.org', 403],
      ['exact.org:80', 403],
      ['ashop.com', 403],
    ),
  },
  {
    name: 'hosts in forms that servers may take for others',
    policies: [deny(to({ hosts: ['secret.com', '*.inner.org:8080'] }))],
    rows: hosts(
      ['secret.com:', 403],
      ['secret.com:x', 403],
      ['secret.com:+80', 403],
      ['secret.com.:', 403],
      ['u@secret.com', 403],
      ['u@open.com', 403],
      ['secret%2ecom', 403],
      ['secret.com,open.com', 403],
      ['open.com:80@secret.com', 403],
      ['', 403],
      ['a.inner.org:8080', 403],
      ['a.inner.org:08080', 403],
      ['a.inner.org:', 403],
      ['a.inner.org.:8080', 403],
      ['a.inner.org', 200],
      ['a.inner.org:80', 200],
      ['open.com:x', 200],
      ['open.com:', 200],
      ['[::1]:80', 200],
    ),
  },
  {
    name: 'hosts that may be others let nobody in',
    policies: [allow(to({ hosts: ['open.com', '*.open.org', 'api.*'] }))],
    rows: hosts(
      ['open.com', 200],
      ['open.com.', 200],
      ['open.com:8080', 200],
      ['a.open.org:80', 200],
      ['api.x:80', 200],
      ['open.com:', 403],
      ['open.com:x', 403],
      ['u@open.com', 403],
      ['secret.com,a.open.org', 403],
      ['api.x:y', 403],
      ['api.x,secret.com', 403],
    ),
  },
  {
    name: 'the header host is the host',
    policies: [deny(when('request.headers[Host]', ['secret.com']))],
    rows: hosts(['secret.com', 403], ['SECRET.com:80', 403], ['secret.com:x', 403], ['u@secret.com', 403], ['open.com', 200]),
  },
  {
    name: 'paths plain and escaped',
    policies: [deny(to({ paths: ['/a@b', '/c%2bd', '/café/*', '*ad', '/(x)/{*}'] }))],
    rows: paths(
      ['/a@b', 403],
      ['/a%40b', 403],
      ['/a%2540b', 200],
      ['/c+d', 403],
      ['/c%2Bd', 403],
      ['/c%2bd', 403],
      ['/caf%C3%A9/x', 403],
      ['/caf%c3%a9/x', 403],
      ['/caf%C3%a9/x', 403],
      ['/CAF%C3%A9/x', 200],
      ['/caf%E9/x', 200],
      ['/bad', 403],
      ['/b%61d', 403],
      ['/x%ad', 200],
      ['/x%Ad', 200],
      ['/(x)/y', 403],
      ['/%28x%29/y', 403],
      ['/(x)/[y]', 403],
      ['/(x)/y/z', 200],
      ['/x/%c0%ae/y', 403],
      ['/a@b?x', 403],
      ['/a@b/c', 200],
    ),
  },
  {
    name: 'paths plain and escaped under basic normalization',
    normalization: 'BASE',
    policies: [allow(to({ paths: ['/a@b', '/c%2Fd', '/e|f*'] }))],
    rows: paths(['/a@b', 200], ['/a%40b', 200], ['/c%2fd', 200], ['/c/d', 403], ['/e%7Cf', 200], ['/e%7cfg', 200], ['/e%C0%AF', 403], ['/e|f', 200]),
  },
  {
    name: 'the root, however many slashes',
    policies: [deny(to({ paths: ['/'] }))],
    rows: paths(['/', 403], ['//', 403], ['///', 403], ['/x/..', 403], ['/x', 200]),
  },
  {
    name: 'ALLOW by notHosts',
    policies: [allow(to({ notHosts: ['secret.com'] }))],
    rows: hosts(['secret.com', 403], ['Secret.com:1', 403], ['open.com', 200]),
  },
  {
    name: 'methods',
    policies: [allow(to({ methods: ['GET', 'P*'] }))],
    rows: rows(
      [
        ['GET', 200],
        ['POST', 200],
        ['PUT', 200],
        ['PATCH', 200],
        ['DELETE', 403],
        ['HEAD', 403],
        ['OPTIONS', 403],
      ] as const,
      (method) => ({ method }),
    ),
  },
  {
    name: 'notMethods',
    policies: [allow(to({ notMethods: ['DELETE'] }))],
    rows: [
      { method: 'DELETE', status: 403 },
      { method: 'GET', status: 200 },
      { method: 'POST', status: 200 },
    ],
  },
  {
    name: 'several operations, several fields',
    policies: [
      allow({
        to: [
          { operation: { methods: ['GET'], paths: ['/read/*'] } },
          { operation: { methods: ['POST'], paths: ['/write/*'], notPaths: ['/write/locked*'] } },
        ],
      }),
    ],
    rows: [
      { method: 'GET', path: '/read/x', status: 200 },
      { method: 'POST', path: '/read/x', status: 403 },
      { method: 'POST', path: '/write/x', status: 200 },
      { method: 'GET', path: '/write/x', status: 403 },
      { method: 'POST', path: '/write/locked', status: 403 },
      { method: 'POST', path: '/write//locked/1', status: 403 },
    ],
  },
  {
    name: 'DENY by a header, also among several',
    policies: [deny(when('request.headers[x-role]', ['admin', 'root*']))],
    rows: [
      ...header(
        'x-role',
        [['admin'], 403],
        [['user', 'admin'], 403],
        [['admin', 'user'], 403],
        [['user,admin'], 403],
        [['user, admin'], 403],
        [['rooted'], 403],
        [['user', 'rooty'], 403],
        [['Admin'], 200],
        [['admins'], 200],
        [['user'], 200],
        [['user', 'guest'], 200],
      ),
      ...header('X-ROLE', [['admin'], 403]),
      { status: 200 },
    ],
  },
  {
    name: 'ALLOW by a header, also among several',
    policies: [allow(when('request.headers[x-role]', ['admin', '*-lead']))],
    rows: [
      ...header(
        'x-role',
        [['admin'], 200],
        [['team-lead'], 200],
        [['user', 'admin'], 200],
        [['admin', 'user'], 200],
        [['user,admin'], 200],
        [['x'], 403],
      ),
      { status: 403 },
    ],
  },
  {
    name: 'ALLOW by what a header is not, also among several',
    policies: [allow(when('request.headers[x-role]', [], ['guest']))],
    rows: [...header('x-role', [['guest'], 403], [['user', 'guest'], 403], [['user,guest'], 403], [['user'], 200]), { status: 200 }],
  },
  {
    name: 'headers with spaces around commas',
    policies: [deny(when('request.headers[x-role]', ['admin']))],
    rows: header(
      'x-role',
      [['user,  admin'], 403],
      [['user,\tadmin'], 403],
      [['user ,admin'], 403],
      [['admin  ,user'], 403],
      [['user , admin , x'], 403],
      [['user,  x'], 200],
      [['user, admins'], 200],
    ),
  },
  {
    name: 'a header that must be there',
    policies: [allow(when('request.headers[x-key]', ['*']))],
    rows: [...header('x-key', [['a'], 200], [['', 'a'], 200], [[', ,a'], 200], [[''], 403], [['', ''], 403], [[' , ,'], 403]), { status: 403 }],
  },
  {
    name: 'a header that must not be there, whatever it says',
    policies: [deny(when('request.headers[x-key]', ['*']))],
    rows: [...header('x-key', [['a'], 403], [['', 'a'], 403], [[''], 403], [['', ''], 403], [[','], 403]), { status: 200 }],
  },
  {
    name: 'a header without which nothing passes',
    policies: [deny(when('request.headers[x-key]', [], ['*']))],
    rows: [...header('x-key', [['a'], 200], [[''], 403], [[','], 403]), { status: 403 }],
  },
  {
    name: 'a header with which nothing passes',
    policies: [allow(when('request.headers[x-key]', [], ['*']))],
    rows: [...header('x-key', [['a'], 403], [[''], 403], [['', ''], 403]), { status: 200 }],
  },
  {
    name: 'regular-expression characters are only characters',
    policies: [allow(to({ paths: ['/a.b', '/c+d', '/e[f]*'] }), when('request.headers[x-v]', ['1.0(x)']))],
    rows: [
      ...paths(['/a.b', 200], ['/axb', 403], ['/c+d', 200], ['/ccd', 403], ['/e[f]', 200], ['/e[f]g', 200], ['/ef', 403]),
      ...header('x-v', [['1.0(x)'], 200], [['1a0(x)'], 403], [['1.0x'], 403]),
    ],
  },
  { name: 'source addresses', policies: [allow(from({ ipBlocks: ['127.0.0.0/8'] }))], rows: [{ status: 200 }] },
  {
    name: 'other source addresses',
    policies: [allow(from({ ipBlocks: ['10.0.0.0/8', '192.0.2.1'] }))],
    rows: [{ status: 403 }, { headers: [['x-forwarded-for', '10.0.0.1']], status: 403 }],
  },
  { name: 'notIpBlocks', policies: [allow(from({ notIpBlocks: ['127.0.0.1'] }))], rows: [{ status: 403 }] },
  { name: 'DENY by address', policies: [deny(when('source.ip', ['127.0.0.1/32']))], rows: [{ status: 403 }] },
  { name: 'remote addresses', policies: [allow(from({ remoteIpBlocks: ['127.0.0.1'] }))], rows: [{ status: 200 }] },
  {
    name: 'an address that the client says lets nobody in',
    policies: [allow(from({ remoteIpBlocks: ['10.0.0.0/8'] }))],
    rows: [
      { status: 403 },
      { headers: [['x-forwarded-for', '10.0.0.1']], status: 403 },
      { headers: [['x-forwarded-for', '::ffff:10.0.0.1']], status: 403 },
    ],
  },
  { name: 'an IPv4 address in its form in IPv6', policies: [deny(from({ ipBlocks: ['::ffff:127.0.0.0/104'] }))], rows: [{ status: 403 }] },
  { name: 'ports', policies: [allow(to({ ports: ['$port'] }))], rows: [{ status: 200 }] },
  { name: 'other ports', policies: [allow(to({ ports: ['1'] }))], rows: [{ status: 403 }] },
  { name: 'notPorts', policies: [deny(to({ notPorts: ['1'] }))], rows: [{ status: 403 }] },
  {
    name: 'destination address and port',
    policies: [
      allow({
        when: [
          { key: 'destination.ip', values: ['$address'] },
          { key: 'destination.port', values: ['$port'] },
        ],
      }),
    ],
    rows: [{ status: 200 }],
  },
  {
    name: 'identities without mutual TLS: ALLOW',
    policies: [allow(from({ principals: ['*'] }), from({ namespaces: ['*'] }))],
    rows: [{ status: 403 }],
  },
  {
    name: 'identities without mutual TLS: DENY',
    policies: [deny(from({ principals: ['*'] }), from({ namespaces: ['a'] }))],
    rows: [{ status: 200 }],
  },
  {
    name: 'identities without mutual TLS: DENY all but',
    policies: [deny(from({ notPrincipals: ['cluster.local/ns/a/sa/b'] }))],
    rows: [{ status: 403 }],
  },
  { name: 'identities without mutual TLS: ALLOW all but', policies: [allow(from({ notNamespaces: ['a'] }))], rows: [{ status: 200 }] },
  {
    name: 'tokens of one issuer',
    policies: [jwt(one)],
    rows: [
      ...tokens(
        [undefined, 200],
        ['one', 200],
        ['two', 401],
        ['unknown', 401],
        ['expired', 401],
        ['justExpired', 200],
        ['early', 401],
        ['almostEarly', 200],
        ['forged', 401],
        ['none', 401],
        ['otherKid', 401],
        ['noKid', 200],
        ['algConfusion', 401],
        ['garbage', 401],
        ['twoParts', 401],
        ['noIssuer', 401],
        ['tampered', 401],
        ['large', 200],
      ),
      { headers: [['authorization', 'bearer $one']], status: 200 },
      { headers: [['authorization', 'Basic abc']], status: 200 },
      {
        headers: [
          ['authorization', 'Bearer $one'],
          ['authorization', 'Bearer $forged'],
        ],
        status: 401,
      },
      {
        headers: [
          ['authorization', 'Bearer $one'],
          ['authorization', 'Bearer $oneOther'],
        ],
        status: 401,
      },
      { headers: [['authorization', 'Bearer $one,Bearer $forged']], status: 401 },
      { headers: [['authorization', 'Bearer $forged,Bearer $one']], status: 401 },
      { headers: [['authorization', 'x Bearer $one']], status: 200 },
      { headers: [['authorization', 'Bearer  $one']], status: 200 },
      { headers: [['authorization', 'Bearer']], status: 200 },
      { headers: [['authorization', 'Bearer ']], status: 200 },
      {
        headers: [
          ['authorization', 'Bearer $forged'],
          ['authorization', 'Bearer $one'],
        ],
        status: 401,
      },
      { path: '/?access_token=$one', status: 200 },
      { path: '/?access_token=$forged', status: 401 },
      { path: '/?access_token=$forged', token: 'one', status: 401 },
      { path: '/?access_token=$one', token: 'forged', status: 401 },
      { headers: [['x-filler', '$huge']], status: 431 },
      { headers: [['authorization', 'Bearer $huge']], status: 431 },
    ],
  },
  {
    name: 'tokens of two issuers',
    policies: [jwt(one, two)],
    rows: [
      ...tokens([undefined, 200], ['one', 200], ['two', 200], ['unknown', 401], ['forged', 401], ['none', 401], ['expired', 401], ['noIssuer', 401]),
      { path: '/?access_token=$two', token: 'one', status: 200 },
      { path: '/?access_token=$forged', token: 'two', status: 401 },
      { path: '/?access_token=$unknown', token: 'one', status: 401 },
    ],
  },
  {
    name: 'two tokens, one principal',
    policies: [jwt(one, two), allow(from({ requestPrincipals: [`${issuers.two}/subject`] }))],
    rows: [
      { path: '/?access_token=$two', token: 'one', status: 403 },
      { path: '/?access_token=$one', token: 'two', status: 200 },
      { path: '/?access_token=$two', token: 'twoOther', status: 403 },
      { path: '/?access_token=$two', status: 200 },
      { path: '/?access_token=$two', token: 'two', status: 200 },
      { path: '/?access_token=$twoOther', token: 'two', status: 200 },
    ],
  },
  {
    name: 'audiences of two issuers',
    policies: [jwt({ ...one, audiences: ['shop'] }, two)],
    rows: tokens(['audShop', 200], ['audOther', 403], ['two', 200], ['unknown', 401], ['forged', 403], [undefined, 200]),
  },
  {
    name: 'an issuer whose keys cannot be had',
    policies: [jwt(one, { issuer: issuers.unserved, jwksUri: 'http://127.0.0.1:1/jwks' })],
    rows: tokens([undefined, 200], ['one', 200], ['unserved', 401], ['unknown', 401]),
  },
  {
    name: 'audiences',
    policies: [jwt({ ...one, audiences: ['shop', 'https://api.example/'] })],
    rows: tokens(['audShop', 200], ['audList', 200], ['audUrl', 200], ['audOther', 403], ['one', 403], [undefined, 200]),
  },
  {
    name: 'tokens in places of their own',
    policies: [jwt({ ...one, fromHeaders: [{ name: 'x-jwt' }, { name: 'x-pre', prefix: 'Token ' }], fromParams: ['jwt'] })],
    rows: [
      { headers: [['x-jwt', '$one']], status: 200 },
      { headers: [['x-jwt', '$forged']], status: 401 },
      { headers: [['x-pre', 'Token $one']], status: 200 },
      { headers: [['x-pre', 'Token $forged']], status: 401 },
      { headers: [['x-pre', '$forged']], status: 200 },
      { path: '/?jwt=$one', status: 200 },
      { path: '/?jwt=$forged', status: 401 },
      { token: 'forged', status: 200 },
      {
        headers: [
          ['x-jwt', '$one'],
          ['x-pre', 'Token $forged'],
        ],
        status: 401,
      },
      { status: 200 },
    ],
  },
  {
    name: 'RequestAuthentication and a required principal',
    policies: [jwt(one, two), allow(from({ requestPrincipals: [`${issuers.one}/subject`] }))],
    rows: tokens(
      [undefined, 403],
      ['one', 200],
      ['two', 403],
      ['oneOther', 403],
      ['forged', 401],
      ['unknown', 401],
      ['noSubject', 403],
      ['oneSlash', 403],
    ),
  },
  {
    name: 'principals with slashes, dots and stars',
    policies: [jwt(one, two), allow(from({ requestPrincipals: [`${issuers.two}/subject`, '*/a/b', 'https://one.example/x*'] }))],
    rows: tokens(['two', 200], ['one', 403], ['oneSlash', 200], ['oneX', 200], ['twoOther', 403], ['likeOne', 401], [undefined, 403]),
  },
  {
    name: 'a principal without a slash is nobody',
    policies: [jwt(one), allow(from({ requestPrincipals: ['subject'] }))],
    rows: tokens(['one', 403], ['noSubject', 403], [undefined, 403]),
  },
  {
    name: 'any principal',
    policies: [jwt(one), allow(from({ requestPrincipals: ['*'] }))],
    rows: tokens(['one', 200], ['noSubject', 403], [undefined, 403], ['forged', 401]),
  },
  {
    name: 'DENY without a principal',
    policies: [jwt(one), deny(from({ notRequestPrincipals: ['*'] }))],
    rows: tokens(['one', 200], ['noSubject', 403], [undefined, 403], ['forged', 401]),
  },
  {
    name: 'DENY a principal by suffix',
    policies: [jwt(one, two), deny(from({ requestPrincipals: ['*/blocked'] }))],
    rows: tokens(['one', 200], ['blocked', 403], ['twoBlocked', 403], [undefined, 200]),
  },
  {
    name: 'principals without RequestAuthentication',
    policies: [allow(from({ requestPrincipals: ['*'] }))],
    rows: tokens(['one', 403], [undefined, 403], ['forged', 403]),
  },
  {
    name: 'claims that are lists, words and nested',
    policies: [jwt(one), allow(when('request.auth.claims[groups]', ['admins', 'team-*']), when('request.auth.claims[realm][roles]', ['owner']))],
    rows: tokens(
      ['groupsList', 200],
      ['groupsTeam', 200],
      ['groupsOther', 403],
      ['groupsText', 200],
      ['groupsWords', 200],
      ['groupsNumber', 403],
      ['groupsEmpty', 403],
      ['nestedOwner', 200],
      ['nestedOther', 403],
      ['nestedText', 200],
      ['one', 403],
      [undefined, 403],
      ['groupsObject', 403],
    ),
  },
  {
    name: 'scope as a list or as words',
    policies: [jwt(one), allow(when('request.auth.claims[scope]', ['write']))],
    rows: tokens(['scopeList', 200], ['scopeWords', 200], ['scopeOther', 403], ['scopeLike', 403], ['one', 403]),
  },
  {
    name: 'a claim of several words',
    policies: [jwt(one), allow(when('request.auth.claims[title]', ['team lead']))],
    rows: tokens(['titleLead', 200], ['titleOther', 403], ['one', 403]),
  },
  {
    name: 'DENY claims that are true, false or numbers',
    policies: [jwt(one), deny(when('request.auth.claims[staff]', ['true', '7']))],
    rows: tokens(
      ['staffTrue', 403],
      ['staffSeven', 403],
      ['staffList', 403],
      ['staffNested', 403],
      ['staffText', 403],
      ['staffFalse', 200],
      ['staffNull', 200],
      ['one', 200],
    ),
  },
  {
    name: 'DENY a claim that is there, whatever it is',
    policies: [jwt(one), deny(when('request.auth.claims[staff]', ['*']))],
    rows: tokens(['staffTrue', 403], ['staffSeven', 403], ['staffFalse', 403], ['staffNull', 403], ['one', 200]),
  },
  {
    name: 'claims of other types let nobody in',
    policies: [jwt(one), allow(when('request.auth.claims[staff]', ['true', '7']))],
    rows: tokens(['staffText', 200], ['staffTrue', 403], ['staffSeven', 403], ['staffList', 403], ['one', 403]),
  },
  {
    name: 'what a claim is not',
    policies: [jwt(one), allow(when('request.auth.claims[groups]', [], ['guests']))],
    rows: tokens(['groupsGuests', 403], ['groupsList', 200], ['one', 200], [undefined, 200]),
  },
  {
    name: 'a claim with a URL for a name',
    policies: [jwt(one), allow(when('request.auth.claims[https://example.com/role]', ['x']))],
    rows: tokens(['urlClaim', 200], ['one', 403]),
  },
  {
    name: 'audiences and presenters as conditions',
    policies: [
      jwt(one),
      allow({
        when: [
          { key: 'request.auth.audiences', values: ['shop'] },
          { key: 'request.auth.presenter', values: ['app'] },
        ],
      }),
    ],
    rows: tokens(['audShopApp', 200], ['audListApp', 200], ['audShop', 403], ['audOther', 403], ['one', 403]),
  },
  {
    name: 'everything at once',
    policies: [
      jwt(one),
      allow({
        from: [{ source: { requestPrincipals: [`${issuers.one}/*`], notRequestPrincipals: ['*/blocked'] } }],
        to: [{ operation: { methods: ['GET'], paths: ['/api/*'] } }],
        when: [{ key: 'request.auth.claims[groups]', values: ['admins'] }],
      }),
      deny({ to: [{ operation: { paths: ['/api/internal*'] } }] }),
    ],
    rows: [
      { token: 'groupsList', path: '/api/x', status: 200 },
      { token: 'groupsList', path: '/api/internal', status: 403 },
      { token: 'groupsList', path: '/api/%69nternal', status: 403 },
      { token: 'groupsList', path: '/x', status: 403 },
      { token: 'groupsList', path: '/api/x', method: 'POST', status: 403 },
      { token: 'one', path: '/api/x', status: 403 },
      { token: 'blockedAdmin', path: '/api/x', status: 403 },
      { path: '/api/x', status: 403 },
      { token: 'forged', path: '/api/x', status: 401 },
    ],
  },
]
