import { create } from '@bufbuild/protobuf'
import { expect } from 'chai'
import fc from 'fast-check'
import { PolicySchema } from '../../../protocols/gen/envoy/config/rbac/v3/rbac_pb.js'
import type { DescribedRequest } from '../../../protocols/messages/described-request.ts'
import { hostFault } from '../../../src/config/host-values.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { pathFault } from '../../../src/config/path-patterns.ts'
import { conditionKey, resolveRule, type WrittenRule } from '../../../src/config/policy-attributes.ts'
import { stockProgramSize } from '../../../src/config/program-bounds.ts'
import { programSize } from '../../../src/config/program-size.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { type EvaluationContext, mismatch } from '../../../src/policy/evaluate.ts'
import { normalizePath } from '../../../src/policy/paths.ts'
import { inTrustDomains, patternMatches, patternOf } from '../../../src/policy/patterns.ts'
import { requestPrincipals, rulePolicy } from '../../../src/xds/security/rbac.ts'
import { policyMatches } from '../../harness/rbac-interpreter.ts'
import { runs } from '../../harness/seed.ts'

const trustDomains = { own: 'own.domain', aliases: ['old.domain'] }
const context: EvaluationContext = {
  trustDomains,
  normalization: 'DEFAULT',
  trustsForwarded: false,
  takenHost: '',
  optOuts: new Set(),
  isDryRun: () => false,
}

/** Short text from an alphabet with frequent collisions that contains the metacharacters of regular expressions. */
const word = fc.stringMatching(/^[ab.+*[(|$/-]{0,4}$/)
const starred = (text: fc.Arbitrary<string>) =>
  fc.oneof(
    text.filter((value) => value !== ''),
    text.map((value) => `${value}*`),
    text.map((value) => `*${value}`),
    fc.constant('*'),
  )
const values = (text: fc.Arbitrary<string>) => fc.array(starred(text), { minLength: 1, maxLength: 3 })
const principal = fc
  .tuple(
    fc.constantFrom('own.domain', 'old.domain', 'cluster.local', 'ownxdomain'),
    fc.constantFrom('a', 'b', 'a.b', 'axb'),
    fc.constantFrom('s', 's.t', 'sxt'),
  )
  .map(([domain, namespace, account]) => `${domain}/ns/${namespace}/sa/${account}`)
const host = fc.oneof(
  fc.constantFrom('a.com', 'A.com', 'a.com:80', 'a.com.', 'b.a.com', 'axcom', 'a.com:x', 'a.com.:8080', '[::1]:80', '::1', 'com:80'),
  fc
    .tuple(
      fc.constantFrom('a.com', 'b.a.com', '.a.com', 'u@a.com', 'a%2ecom', '[::1]', 'x,a.com', ''),
      fc.constantFrom('', '.', '..'),
      fc.constantFrom('', ':', ':80', ':080', ':8080', ':x', ':80a', ':+80', ':80:80'),
    )
    .map((parts) => parts.join('')),
)
const goodHost = host.filter((text) => !text.startsWith('::') && hostFault(text) === undefined && hostFault(`*${text}`) === undefined)
/** Parts of paths with frequent collisions: characters in plain and escaped form, in either case, and near misses. */
const path = fc
  .array(
    fc.constantFrom(
      'a',
      'A',
      'b',
      '/',
      '@',
      '%40',
      '+',
      '%2b',
      '%2B',
      '|',
      '%7c',
      'é',
      '%c3%A9',
      '%',
      '4',
      '%25',
      ';',
      '=',
      '%3d',
      '.',
      '..;',
      '%c0%af',
      '%61',
      '*',
      '{*}',
      '/{*}',
      '/{**}',
      '2',
    ),
    { maxLength: 6 },
  )
  .map((parts) => `/${parts.join('')}`)
const goodPath = starred(path.map((text) => text.slice(1)))
  .map((value) => (value.startsWith('*') ? value : `/${value}`))
  .filter((value) => pathFault(value, 'DEFAULT') === undefined)
/** A path of a request that normalisation does not reject. */
const sentPath = fc
  .tuple(
    path.map((text) => text.replaceAll('é', '%C3%a9').replaceAll(/[{}]/g, '')),
    fc.constantFrom('', '', '?b'),
  )
  .map((parts) => parts.join(''))
const address = fc.constantFrom('10.0.0.1', '::ffff:10.0.0.1', '10.0.1.1', '192.168.0.1', '::1', 'fd00::1')
const range = fc.constantFrom('10.0.0.0/24', '::ffff:10.0.0.0/120', '10.0.0.1', '0.0.0.0/0', '::/0', 'fd00::/8', '192.168.0.1/32')
const port = fc.constantFrom('80', '443')
const requestPrincipal = fc.tuple(word, word).map(([issuer, subject]) => `${issuer}/${subject}`)
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const some = (record: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(Object.fromEntries(Object.entries(record).map(([name, value]) => [name, maybe(value)]))) as fc.Arbitrary<
    Record<string, string[] | undefined>
  >

const source = some({
  principals: values(principal),
  notPrincipals: values(principal),
  namespaces: values(fc.constantFrom('a', 'b', 'a.b')),
  notNamespaces: values(fc.constantFrom('a', 'a.b')),
  serviceAccounts: fc.array(fc.constantFrom('s', 'a/s', 'b/s.t', 'a.b/sxt'), { minLength: 1, maxLength: 2 }),
  notServiceAccounts: fc.array(fc.constantFrom('s', 'b/s'), { minLength: 1, maxLength: 2 }),
  trustDomains: values(fc.constantFrom('own.domain', 'old.domain', 'own', 'domain')),
  notTrustDomains: values(fc.constantFrom('ownxdomain', 'old.domain', '.domain')),
  requestPrincipals: values(requestPrincipal),
  notRequestPrincipals: values(requestPrincipal),
  ipBlocks: fc.array(range, { minLength: 1, maxLength: 2 }),
  notRemoteIpBlocks: fc.array(range, { minLength: 1, maxLength: 2 }),
})
const templates = fc.array(fc.constantFrom('/{*}', '/{**}', '/a/{*}', '/a/{**}/', '/{*}/b/{**}', '/a.$/{*}'), { minLength: 1, maxLength: 2 })
const operation = some({
  hosts: values(goodHost),
  notHosts: values(goodHost),
  paths: fc.oneof(fc.array(goodPath, { minLength: 1, maxLength: 3 }), templates),
  notPaths: fc.oneof(fc.array(goodPath, { minLength: 1, maxLength: 3 }), templates),
  methods: values(fc.constantFrom('GET', 'PUT')),
  ports: fc.array(port, { minLength: 1, maxLength: 2 }),
})
const condition = fc.record({
  key: fc.constantFrom(
    'request.headers[x]',
    'request.headers[host]',
    'request.headers[:path]',
    'request.headers[:method]',
    'request.auth.claims[c]',
    'request.auth.claims[c][d]',
    'request.auth.audiences',
    'request.auth.principal',
    'connection.sni',
    'experimental.envoy.filters.http.f[k]',
    'source.principal',
  ),
  values: values(
    fc.oneof(
      word,
      fc.constantFrom('/a', '/a@', '/a%40', '/a?b', 'GET'),
      fc.constantFrom('a b', 'true', 'True', 'false', '1', '1.0', '1e0', '12', 'tr', '1.5'),
      requestPrincipal,
      word.map((text) => `[${text}]`),
    ),
  ),
  notValues: maybe(values(word)),
})
const rule: fc.Arbitrary<WrittenRule> = fc.record({
  from: fc.array(fc.record({ source }), { maxLength: 2 }),
  to: fc.array(fc.record({ operation }), { maxLength: 2 }),
  when: fc.array(condition, { maxLength: 2 }),
})
const claim = fc.oneof(
  word,
  fc.array(fc.oneof(word, fc.constantFrom(1, 12)), { maxLength: 3 }),
  fc.tuple(word, word).map((words) => words.join(' ')),
  fc.constantFrom(0, 1, 1.5, 12, -3),
  fc.boolean(),
  fc.constantFrom<unknown>([true], [[1, 'a']], [['a'], 'b'], null, {}),
)
const request: fc.Arbitrary<DescribedRequest> = fc.record({
  protocol: fc.constantFrom('http', 'tcp'),
  method: fc.constantFrom('GET', 'PUT', 'get'),
  host,
  path: sentPath,
  headers: maybe(
    fc.array(
      fc.oneof(
        word,
        fc.tuple(word, word).map((pair) => pair.join(',')),
        fc.tuple(word, fc.constantFrom(', ', ' ,', ',  ', '\t,', ' , '), word).map((parts) => parts.join('')),
      ),
      { minLength: 1, maxLength: 3 },
    ),
  ).map((x): Record<string, string[]> => (x ? { x } : {})),
  sourceIp: address,
  remoteIp: address,
  destinationIp: address,
  destinationPort: fc.constantFrom(80, 443),
  sni: fc.oneof(word, host),
  peer: maybe(fc.oneof(principal, fc.constant('own.domain/elsewhere'))),
  claims: maybe(
    fc.record({ iss: fc.oneof(word, fc.integer()), sub: maybe(word), aud: claim, c: fc.oneof(claim, fc.record({ d: claim })) }) as fc.Arbitrary<
      Record<string, unknown>
    >,
  ),
  metadata: fc.record({ 'envoy.filters.http.f': fc.record({ k: claim }) }),
})

describe('compiled authorization policies', () => {
  it('match exactly the requests that the rules mean', () => {
    let matched = 0
    fc.assert(
      fc.property(rule, request, fc.boolean(), (written, asked, allows) => {
        const resolved = resolveRule(written, 'a')
        const policy = rulePolicy(resolved, { ...context, protocol: asked.protocol, allows })
        const compiled = policy !== undefined && policyMatches(create(PolicySchema, policy), asked, normalizePath(asked.path, 'DEFAULT'))
        const meant = mismatch(resolved, allows, asked, context) === undefined
        expect(compiled).to.equal(meant)
        matched += Number(meant)
      }),
      { numRuns: runs(5000) },
    )
    expect(matched).to.be.above(runs(250))
  })

  it('match exactly the requests that single conditions mean, with frequent matches', () => {
    const single = fc.oneof(
      source.map((one) => ({ from: [{ source: Object.fromEntries(Object.entries(one).slice(0, 1)) }] })),
      operation.map((one) => ({ to: [{ operation: Object.fromEntries(Object.entries(one).slice(0, 1)) }] })),
      condition.map((one) => ({ when: [one] })),
    )
    fc.assert(
      fc.property(single, request, (written, asked) => {
        const resolved = resolveRule(written as WrittenRule, 'a')
        const http = { ...asked, protocol: 'http' as const }
        const policy = rulePolicy(resolved, { ...context, protocol: 'http', allows: true })
        const compiled = policy !== undefined && policyMatches(create(PolicySchema, policy), http, normalizePath(asked.path, 'DEFAULT'))
        expect(compiled).to.equal(mismatch(resolved, true, http, context) === undefined)
      }),
      { numRuns: runs(10_000) },
    )
  })

  it('match values that are too long for a regular expression by plain matchers, with the same result', () => {
    const long = 'x'.repeat(90)
    const values = [long, `${long}*`, `*${long}`]
    const parts = fc.constantFrom(long, `a${long}`, `${long}a`, 'a', '')
    const joined = (separator: string) => fc.array(parts, { minLength: 1, maxLength: 3 }).map((some) => some.join(separator))
    const asked: fc.Arbitrary<DescribedRequest> = fc
      .record({
        host: fc.tuple(parts, fc.constantFrom('', '.', ':80', '.:80')).map((pair) => pair.join('').toUpperCase()),
        peer: fc.tuple(fc.constantFrom('own.domain', long), parts, parts).map(([domain, ns, sa]) => `${domain}/ns/${ns}/sa/${sa}`),
        claims: fc.record({ c: fc.oneof(joined(' '), fc.array(parts)), iss: parts, sub: parts }),
        headers: joined(',').map((x) => ({ x: [x] })),
      })
      .map((made) => ({ ...(fc.sample(request, 1)[0] as DescribedRequest), protocol: 'http', ...made }))
    const written: fc.Arbitrary<WrittenRule> = fc
      .constantFrom(...values)
      .chain((value) =>
        fc.constantFrom<WrittenRule>(
          { to: [{ operation: { hosts: [value] } }] },
          { from: [{ source: { principals: [value.replace(/^x/, 'own.domain/ns/x')] } }] },
          { from: [{ source: { namespaces: [value] } }] },
          { from: [{ source: { notNamespaces: [value] } }] },
          { from: [{ source: { requestPrincipals: [`${long}/${value}`] } }] },
          { when: [{ key: 'request.auth.claims[c]', values: [value] }] },
          { when: [{ key: 'request.auth.claims[c]', notValues: [value] }] },
          { when: [{ key: 'request.headers[x]', values: [value] }] },
        ),
      )
    let matched = 0
    fc.assert(
      fc.property(written, asked, (rule, one) => {
        const resolved = resolveRule(rule, 'a')
        const policy = rulePolicy(resolved, { ...context, protocol: 'http', allows: true })
        const compiled = policy !== undefined && policyMatches(create(PolicySchema, policy), one, '/')
        expect(compiled, JSON.stringify([rule, one])).to.equal(mismatch(resolved, true, one, context) === undefined)
        matched += Number(compiled)
      }),
      { numRuns: runs(3000) },
    )
    expect(matched).to.be.above(runs(500))
  })

  it('contain no regular expression that a stock Envoy rejects', () => {
    const texts = fc.oneof(
      fc.stringMatching(/^[ -~]{1,120}$/),
      fc.stringMatching(/^[a-zK.]{40,60}$/),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }),
    )
    const regexes = (value: unknown): string[] =>
      typeof value !== 'object' || value === null
        ? []
        : 'regex' in value && typeof value.regex === 'string'
          ? [value.regex]
          : Object.values(value).flatMap(regexes)
    const everywhere = (value: string): WrittenRule => ({
      from: [{ source: { principals: [value], namespaces: [value], requestPrincipals: [value] } }],
      to: [{ operation: { hosts: [value], methods: [value], paths: [value] } }],
      when: ['request.headers[x]', 'request.auth.claims[c]', 'connection.sni', 'experimental.envoy.filters.a[b]'].map((key) => ({
        key,
        values: [value],
      })),
    })
    const policyOf = (value: string) => rulePolicy(resolveRule(everywhere(value), 'a'), { ...context, protocol: 'http', allows: false })
    fc.assert(
      fc.property(texts, fc.constantFrom('', 'before', 'behind'), (text, star) => {
        const found = regexes(policyOf(star === 'before' ? `*${text}` : star === 'behind' ? `${text}*` : text))
        for (const regex of found) expect(programSize(regex), regex).to.be.at.most(stockProgramSize)
      }),
      { numRuns: runs(300) },
    )
    expect(regexes(policyOf('*')).length).to.be.above(3)
  })

  it('match server names case-insensitively without a regular expression that Envoy rejects', () => {
    const names = ['*', 'a.com', '*.com', 'a*', '**'].map((value) =>
      rulePolicy(resolveRule({ when: [{ key: 'connection.sni', values: [value] }] }, 'a'), { ...context, protocol: 'tcp', allows: false }),
    )
    const any = { ...(fc.sample(request, 1)[0] as DescribedRequest), protocol: 'tcp' as const, sni: 'A.com' }
    expect(names.map((policy) => policyMatches(create(PolicySchema, policy), any, '/'))).to.deep.equal([true, true, true, true, false])
  })

  it('treat headers and claims named like inherited properties as absent unless they were sent', () => {
    for (const name of ['constructor', 'toString', '__proto__'])
      for (const key of [`request.headers[${name}]`, `request.auth.claims[${name}]`]) {
        const [asked] = fc.sample(request, 1)
        const bare = { ...(asked as DescribedRequest), protocol: 'http' as const, headers: {}, claims: {} }
        expect(mismatch(resolveRule({ when: [{ key, values: ['*'] }] }, 'a'), true, bare, context), key).not.to.equal(undefined)
      }
  })

  it('match <iss>/<sub> as pairs exactly as they would as a whole', () => {
    fc.assert(
      fc.property(starred(requestPrincipal), word, word, (value, iss, sub) => {
        const pattern = patternOf(value)
        const whole = iss !== '' && sub !== '' && patternMatches(pattern, `${iss}/${sub}`)
        const pairs = requestPrincipals(pattern).some(([issuer, subject]) => patternMatches(issuer, iss) && patternMatches(subject, sub))
        expect(iss !== '' && sub !== '' && pairs).to.equal(whole)
      }),
      { numRuns: runs(5000) },
    )
  })

  it('expand principals to the aliases of the trust domain', () => {
    expect(inTrustDomains('cluster.local/ns/a/sa/b', trustDomains)).to.have.members(['own.domain/ns/a/sa/b', 'old.domain/ns/a/sa/b'])
    expect(inTrustDomains('old.domain/ns/a/sa/b', trustDomains)).to.have.members(['own.domain/ns/a/sa/b', 'old.domain/ns/a/sa/b'])
    expect(inTrustDomains('other/ns/a/sa/b', trustDomains)).to.deep.equal(['other/ns/a/sa/b'])
    expect(inTrustDomains('*/sa/b', trustDomains)).to.deep.equal(['*/sa/b'])
  })

  it('support the documented condition keys only', () => {
    for (const key of [
      'source.ip',
      'remote.ip',
      'request.headers[x-y]',
      'request.auth.claims[a][b]',
      'experimental.envoy.filters.http.x[y]',
      'connection.sni',
    ])
      expect(conditionKey(key), key).to.not.equal(undefined)
    for (const key of [
      'source.user',
      'request.headers',
      'request.headers[a][b]',
      'request.auth.claims',
      'request.auth.claims[]',
      'request.auth.claims[a]x',
      'destination.labels[a]',
      '__proto__',
    ])
      expect(conditionKey(key), key).to.equal(undefined)
  })
})

describe('policy documents', () => {
  const names = meshNames('mesh.io')
  const faultsOf = (kind: string, spec: string) =>
    parseConfigFile(
      'f.yaml',
      `apiVersion: security.mesh.io/v1\nkind: ${kind}\nmetadata: {name: p, namespace: ns}\nspec: ${spec}\n`,
      names,
    ).faults.map(({ path, reason }) => `${path}: ${reason}`)
  const refused: [kind: string, spec: string, fault: RegExp][] = [
    ['AuthorizationPolicy', '{action: DENY}', /^spec\.rules: DENY needs at least one rule/],
    ['AuthorizationPolicy', '{action: CUSTOM, rules: [{}]}', /^spec\.provider\.name: required/],
    ['AuthorizationPolicy', '{provider: {name: x}, rules: [{}]}', /^spec\.provider: only allowed with CUSTOM/],
    ['AuthorizationPolicy', '{action: LATER, rules: [{}]}', /^spec\.action/],
    ['AuthorizationPolicy', '{rules: [{form: []}]}', /^spec\.rules\[0\]\.form: unknown field/],
    ['AuthorizationPolicy', '{rules: [{from: []}]}', /^spec\.rules\[0\]\.from: needs at least 1/],
    ['AuthorizationPolicy', '{rules: [{from: [{source: {}}]}]}', /source: needs at least one field/],
    ['AuthorizationPolicy', '{rules: [{from: [{source: {principals: []}}]}]}', /principals: an empty list matches nothing/],
    ['AuthorizationPolicy', "{rules: [{from: [{source: {principals: ['']}}]}]}", /principals\[0\]: empty text/],
    ['AuthorizationPolicy', '{rules: [{from: [{source: {principal: [a]}}]}]}', /source\.principal: unknown field/],
    ['AuthorizationPolicy', '{rules: [{from: [{source: {ipBlocks: [10.0.0.0/33]}}]}]}', /ipBlocks\[0\]: .* is not an IP address or CIDR/],
    ['AuthorizationPolicy', "{rules: [{to: [{operation: {ports: ['65536']}}]}]}", /ports\[0\]: .* is not a port number/],
    [
      'AuthorizationPolicy',
      "{rules: [{to: [{operation: {hosts: ['https://a.example']}}]}]}",
      /hosts\[0\]: .* never matches: the text after the colon is not a port/,
    ],
    ['AuthorizationPolicy', "{rules: [{to: [{operation: {notHosts: ['a.example/x*']}}]}]}", /notHosts\[0\]: .* never matches: a host has no/],
    ['AuthorizationPolicy', "{rules: [{when: [{key: 'request.headers[host]', values: ['a b']}]}]}", /when\[0\]\.values\[0\]: .* never matches/],
    [
      'AuthorizationPolicy',
      "{rules: [{to: [{operation: {paths: ['/x?y=1']}}]}]}",
      /paths\[0\]: .* never matches: paths are compared without their query/,
    ],
    ['AuthorizationPolicy', '{rules: [{when: [{key: destination.user, values: [a]}]}]}', /when\[0\]\.key: .* is not a known key/],
    ['AuthorizationPolicy', '{rules: [{when: [{key: source.ip}]}]}', /when\[0\]: needs values or notValues/],
    ['AuthorizationPolicy', '{rules: [{when: [{key: source.ip, values: [x]}]}]}', /values\[0\]: .* is not an IP address/],
    [
      'AuthorizationPolicy',
      '{action: CUSTOM, provider: {name: x}, rules: [{from: [{source: {namespaces: [a]}}]}]}',
      /source\.namespaces: not available to CUSTOM/,
    ],
    [
      'AuthorizationPolicy',
      '{action: CUSTOM, provider: {name: x}, rules: [{when: [{key: "request.auth.claims[a]", values: [a]}]}]}',
      /key: .* not available to CUSTOM/,
    ],
    ['AuthorizationPolicy', '{selector: {matchLabels: {"a*": b}}}', /selector\.matchLabels\[a\*\]: wildcards/],
    ['AuthorizationPolicy', `{rules: [{to: [{operation: {hosts: [${'x'.repeat(4097)}]}}]}]}`, /hosts\[0\]: .*4096/],
    ['RequestAuthentication', '{jwtRules: [{jwksUri: "https://x/"}]}', /jwtRules\[0\]\.issuer: required/],
    ['RequestAuthentication', '{jwtRules: [{issuer: a, jwksUri: "ftp://x/"}]}', /jwksUri: not an http or https URL/],
    ['RequestAuthentication', '{jwtRules: [{issuer: a, jwksUri: "http://user:word@x/"}]}', /jwksUri: must not carry a user name/],
    ['RequestAuthentication', '{jwtRules: [{issuer: a, jwks: "{}"}]}', /jwks: not a JSON Web Key Set/],
    ['RequestAuthentication', `{jwtRules: [{issuer: a, jwks: '{"keys":[{"kty":"oct","k":"x"}]}'}]}`, /jwks: key 0 is a secret/],
    ['RequestAuthentication', `{jwtRules: [{issuer: a, jwks: '{"keys":[{"kty":"EC","crv":"P-256"}]}'}]}`, /jwks: none of its keys can be used/],
    ['RequestAuthentication', '{jwtRules: [{issuer: a, audiences: [""]}]}', /audiences\[0\]: must not be empty/],
    ['RequestAuthentication', '{jwtRules: [{issuer: a, fromHeaders: [{name: ""}]}]}', /fromHeaders\[0\]\.name/],
    ['RequestAuthentication', '{jwtRules: [{issuer: a, issuers: b}]}', /issuers: unknown field/],
    ['PeerAuthentication', '{portLevelMtls: {80: {mode: STRICT}}}', /portLevelMtls: needs a selector/],
    ['PeerAuthentication', '{selector: {matchLabels: {a: b}}, portLevelMtls: {}}', /portLevelMtls: needs at least one port/],
    ['PeerAuthentication', '{selector: {matchLabels: {a: b}}, portLevelMtls: {0: {mode: STRICT}}}', /portLevelMtls\[0\]: not a port/],
    [
      'PeerAuthentication',
      '{selector: {matchLabels: {a: b}}, portLevelMtls: {80: {mode: STRICT}, "080": {mode: DISABLE}}}',
      /portLevelMtls: names a port twice/,
    ],
    ['PeerAuthentication', '{mtls: {mode: MAYBE}}', /mtls\.mode/],
  ]
  for (const [kind, spec, fault] of refused)
    it(`${kind} ${spec} is refused by field and reason`.replace(/x{99,}/, 'x...'), () => {
      expect(faultsOf(kind, spec).join('; ')).to.match(fault)
    })

  it('are accepted if they are valid', () => {
    for (const [kind, spec] of [
      ['AuthorizationPolicy', '{}'],
      ['AuthorizationPolicy', '{rules: [{}]}'],
      [
        'AuthorizationPolicy',
        "{selector: {matchLabels: {app: a}}, action: AUDIT, rules: [{from: [{source: {notIpBlocks: ['fd00::/8']}}], when: [{key: remote.ip, notValues: ['::1']}]}]}",
      ],
      ['RequestAuthentication', '{}'],
      ['RequestAuthentication', '{jwtRules: [{issuer: a}]}'],
      ['PeerAuthentication', '{selector: {matchLabels: {a: b}}, mtls: {mode: UNSET}, portLevelMtls: {80: {mode: DISABLE}}}'],
    ] as const)
      expect(faultsOf(kind, spec), spec).to.deep.equal([])
  })

  it('are replaced by a stand-in if they were never valid, with their selector if it can be read', () => {
    const standIn = (spec: string) =>
      [
        ...parseConfigFile(
          'f.yaml',
          `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: ${spec}\n`,
          names,
        ).standIns.values(),
      ][0]?.spec
    expect(standIn('{selector: {matchLabels: {app: a}}, action: DENY}')).to.deep.include({ selector: { matchLabels: { app: 'a' } } })
    expect(standIn('{selector: {matchLabels: {app: 7}}, action: DENY}')).to.not.have.property('selector')
    expect((standIn('{action: DENY}') as { invalid: string }).invalid).to.include('DENY needs at least one rule')
  })
})
