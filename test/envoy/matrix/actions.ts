/** Cases of the policy matrix: actions, dry runs, methods, and combined conditions. */
import { allow, type Case, deny, header, issuers, jwt, one, paths, rows, to, when } from './shape.ts'

export const actionCases: readonly Case[] = [
  { name: 'no policy', policies: [], rows: [...paths(['/', 200], ['/any/thing?x=1', 200]), { method: 'DELETE', status: 200 }] },
  {
    name: 'an ALLOW policy without rules, which allows nothing',
    policies: [{ kind: 'AuthorizationPolicy', spec: {} }],
    rows: [...paths(['/', 403], ['/x', 403]), { method: 'POST', status: 403 }],
  },
  {
    name: 'an ALLOW rule without conditions, which allows everything',
    policies: [allow({})],
    rows: [...paths(['/', 200], ['/x?y', 200]), { method: 'POST', status: 200 }],
  },
  { name: 'DENY with a rule without conditions', policies: [deny({})], rows: paths(['/', 403], ['/x', 403]) },
  { name: 'DENY before ALLOW', policies: [allow({}), deny(to({ paths: ['/admin'] }))], rows: paths(['/', 200], ['/admin', 403], ['/admin/x', 200]) },
  {
    name: 'AUDIT, which denies nothing',
    policies: [{ kind: 'AuthorizationPolicy', spec: { action: 'AUDIT', rules: [{}] } }],
    rows: paths(['/', 200], ['/x', 200]),
  },
  {
    name: 'a dry run of DENY, which denies nothing',
    policies: [{ kind: 'AuthorizationPolicy', spec: { action: 'DENY', rules: [{}] }, annotations: { 'istio.io/dry-run': 'true' } }],
    rows: paths(['/', 200], ['/x', 200]),
  },
  {
    name: 'a dry run of ALLOW, which requires nothing',
    policies: [{ kind: 'AuthorizationPolicy', spec: { action: 'ALLOW', rules: [] }, annotations: { 'security.mesh.io/dry-run': 'true' } }],
    rows: paths(['/', 200]),
  },
  {
    name: 'a dry-run annotation that is false or unknown, which leaves the policy in force',
    policies: ['false', 'yes'].map((said) => ({ ...deny(to({ paths: [`/${said}`] })), annotations: { 'mesh.io/dry-run': said } })),
    rows: paths(['/false', 403], ['/yes', 403], ['/', 200]),
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
    name: 'characters of regular expressions, which are literal',
    policies: [allow(to({ paths: ['/a.b', '/c+d', '/e[f]*'] }), when('request.headers[x-v]', ['1.0(x)']))],
    rows: [
      ...paths(['/a.b', 200], ['/axb', 403], ['/c+d', 200], ['/ccd', 403], ['/e[f]', 200], ['/e[f]g', 200], ['/ef', 403]),
      ...header('x-v', [['1.0(x)'], 200], [['1a0(x)'], 403], [['1.0x'], 403]),
    ],
  },
  {
    name: 'tokens, operations, claims and DENY combined',
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
