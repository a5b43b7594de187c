import { expect } from 'chai'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { stockProgramSize } from '../../../src/config/program-bounds.ts'
import { programSize } from '../../../src/config/program-size.ts'
import { withoutEffect } from '../../../src/config/without-effect.ts'
import { policyDocument } from '../../harness/policies.ts'
import { names } from '../../harness/settings.ts'

const parse = (kind: string, spec: string, annotations?: string) =>
  parseConfigFile('f.yaml', policyDocument(kind, 'p', spec, annotations === undefined ? {} : { annotations }), names)
/** Returns the fields without effect in the objects of a parsed document. */
const idle = ({ objects }: ReturnType<typeof parse>) => objects.flatMap((object) => withoutEffect(object, 'mesh.io'))
const faults = (kind: string, spec: string) => parse(kind, spec).faults.map(({ path, reason }) => `${path}: ${reason}`)
const source = (fields: string, action = 'ALLOW') =>
  faults(
    'AuthorizationPolicy',
    `{action: ${action}, provider: ${action === 'CUSTOM' ? '{name: x}' : 'null'}, rules: [{from: [{source: {${fields}}}]}]}`,
  )
const path = (value: string) => faults('AuthorizationPolicy', `{rules: [{to: [{operation: {paths: ['${value}']}}]}]}`)
const at = 'spec.rules[0].from[0].source'

describe('newer fields of policies', () => {
  it('serviceAccounts: take names without wildcards, and exclude principals and namespaces', () => {
    expect(source('serviceAccounts: [a, ns/a], notServiceAccounts: [b.c/d]')).to.deep.equal([])
    expect(source("serviceAccounts: ['a*']")).to.deep.equal([`${at}.serviceAccounts[0]: a service account is named without wildcards`])
    for (const value of ['a/b/c', '/a', 'a/'])
      expect(source(`serviceAccounts: ['${value}']`)).to.deep.equal([`${at}.serviceAccounts[0]: "${value}" is neither <name> nor <namespace>/<name>`])
    expect(source('serviceAccounts: [a], namespaces: [b]')).to.deep.equal([`${at}.namespaces: excluded by serviceAccounts`])
    expect(source('notServiceAccounts: [a], notPrincipals: [b]')).to.deep.equal([`${at}.notPrincipals: excluded by serviceAccounts`])
  })

  it('trustDomains: take patterns without slashes, up to 60 characters', () => {
    expect(source("trustDomains: [a.b, 'a*', '*a', '*'], notTrustDomains: [c]")).to.deep.equal([])
    expect(source('trustDomains: [a/ns]')).to.deep.equal([`${at}.trustDomains[0]: a trust domain has no slash`])
    expect(source("trustDomains: ['a*b']")).to.deep.equal([`${at}.trustDomains[0]: a star counts at the start or at the end only`])
    expect(source("trustDomains: ['é']").join()).to.contain('never matches')
    expect(programSize(`(?s)spiffe://[^/]*${'a'.repeat(59)}/.*`)).to.be.at.most(stockProgramSize)
    expect(source(`trustDomains: ['*${'a'.repeat(70)}']`)).to.deep.equal([`${at}.trustDomains[0]: longer than 60 characters`])
  })

  it('serviceAccounts and trustDomains: are rejected in CUSTOM policies', () => {
    for (const field of ['serviceAccounts', 'notServiceAccounts', 'trustDomains', 'notTrustDomains'])
      expect(source(`${field}: [a]`, 'CUSTOM')).to.deep.equal([`${at}.${field}: not available to CUSTOM policies`])
    const when = (key: string) =>
      faults('AuthorizationPolicy', `{action: CUSTOM, provider: {name: x}, rules: [{when: [{key: ${key}, values: [a]}]}]}`)
    for (const key of ['source.serviceAccount', 'source.trustDomain']) expect(when(key)[0]).to.contain(`${key} is not available to CUSTOM policies`)
  })

  it('paths: take templates with whole-segment operators, and no operator after {**}', () => {
    for (const good of ['/{*}', '/{**}', '/a/{*}/b/{**}', '/a/{**}/', '/{**}/a', '/a-_.~%41/{*}']) expect(path(good), good).to.deep.equal([])
    const reasons = {
      '/a/{*}.txt': 'is neither {*}, {**} nor plain text',
      '/*/a/{*}': 'is neither {*}, {**} nor plain text',
      '/a//{*}': 'is neither {*}, {**} nor plain text',
      '/{**}/a/{*}': 'no operator can follow {**}',
      'a/{*}': 'starts with a slash',
      '/a/../{*}': 'never matches',
      [`/${'a'.repeat(256)}/{*}`]: 'longer than the 256 characters',
    }
    for (const [bad, reason] of Object.entries(reasons)) expect(path(bad).join(), bad).to.contain(reason)
  })

  it('jwtRules: take fromCookies, timeout and spaceDelimitedClaims, and reject invalid values', () => {
    const rule = (fields: string) => parse('RequestAuthentication', `{jwtRules: [{issuer: i, jwksUri: 'https://i/keys', ${fields}}]}`)
    expect(rule('fromCookies: [a_b, c-d], timeout: 7s, spaceDelimitedClaims: [roles, a.b.c]')).to.deep.include({ faults: [], warnings: [] })
    expect(rule("fromCookies: ['']").faults.map(({ reason }) => reason)).to.deep.equal(['must not be empty'])
    expect(rule("fromCookies: ['a b']").faults.map(({ reason }) => reason)).to.deep.equal(['"a b" is not the name of a cookie'])
    expect(rule('timeout: 0s').faults.map(({ reason }) => reason)).to.deep.equal(['0 ms is shorter than 1 ms'])
    expect(idle(rule('spaceDelimitedClaims: [aud]')).map(({ path, reason }) => `${path}: ${reason}`)).to.deep.equal([
      'spec.jwtRules[0].spaceDelimitedClaims[0]: has no effect: aud is a registered claim, which is compared whole',
    ])
  })

  it('dry-run annotation: warns if it has no effect or is not a boolean', () => {
    const warnings = (spec: string, said: string) =>
      idle(parse('AuthorizationPolicy', spec, `{istio.io/dry-run: '${said}'}`)).map(({ reason }) => reason)
    for (const action of ['ALLOW', 'DENY', 'AUDIT']) expect(warnings(`{action: ${action}, rules: [{}]}`, 'T')).to.deep.equal([])
    expect(warnings('{rules: [{}]}', 'maybe')).to.deep.equal(['neither true nor false: the policy is enforced'])
    expect(warnings('{action: CUSTOM, provider: {name: x}, rules: [{}]}', '1').join()).to.contain('the policy has no effect')
    expect(warnings('{action: CUSTOM, provider: {name: x}, rules: [{}]}', 'FALSE')).to.deep.equal([])
  })
})

describe('attachment of policies', () => {
  const gateway = '{group: gateway.networking.k8s.io, kind: Gateway, name: g}'
  for (const [kind, rest] of [
    ['AuthorizationPolicy', 'action: DENY, rules: [{}]'],
    ['RequestAuthentication', 'jwtRules: []'],
  ] as const) {
    it(`${kind}: takes one of selector, targetRef and targetRefs, with supported kinds of the same namespace`, () => {
      const of = (fields: string) => faults(kind, `{${rest}, ${fields}}`)
      expect(of(`targetRef: ${gateway}`)).to.deep.equal([])
      expect(of(`targetRefs: [${gateway}, ${gateway}]`)).to.deep.equal([])
      expect(of(`targetRefs: [${gateway}], selector: {matchLabels: {a: b}}`)).to.deep.equal(['spec.targetRefs: excluded by selector'])
      expect(of(`targetRefs: [${gateway}], targetRef: ${gateway}`)).to.deep.equal(['spec.targetRefs: excluded by targetRef'])
      expect(of('targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: g, namespace: other}')).to.deep.equal([
        'spec.targetRef.namespace: a policy is attached to objects of its own namespace',
      ])
      expect(of("targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: ''}")).to.deep.equal(['spec.targetRef.name: required, but empty'])
      for (const [group, other] of [
        ['apps', 'Deployment'],
        ['networking.istio.io', 'Gateway'],
        ['gateway.networking.k8s.io', 'HTTPRoute'],
      ])
        expect(of(`targetRef: {group: ${group}, kind: ${other}, name: g}`)).to.deep.equal([
          `spec.targetRef.kind: "${group}/${other}" cannot be a target: Gateway, GatewayClass, Service and ServiceEntry can`,
        ])
      for (const target of [
        '{kind: Service, name: s}',
        '{group: core, kind: Service, name: s}',
        '{group: networking.istio.io, kind: ServiceEntry, name: s}',
      ]) {
        const warnings = idle(parse(kind, `{${rest}, targetRefs: [${target}]}`))
        expect(warnings.map(({ path }) => path)).to.deep.equal(['spec.targetRefs[0]'])
        expect(warnings[0]?.reason).to.contain('has no effect: a Service')
      }
    })
  }
})
