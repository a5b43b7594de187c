import { expect } from 'chai'
import type { ConfigObject } from '../../../protocols/data.ts'
import { type PolicyCheckName, readOptOuts } from '../../../src/config/opt-outs.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import {
  checkedPolicies,
  checkedPolicyLines,
  checkedSecret,
  optOutWarnings,
  type PolicyCheck,
  policyChecks,
} from '../../../src/config/policy-checks.ts'
import { mayReadSecret } from '../../../src/identity/access.ts'
import { pairValues, SiteCertificates, secretDocument } from '../../harness/gateway-secrets.ts'
import { madeOf } from '../../harness/made.ts'
import { names } from '../../harness/settings.ts'

const sites = new SiteCertificates()
const site = sites.issue('site.example', sites.authority('root'))
sites.dispose()

/** Documents that a check concerns, and the outcome that is compared: `made` unless another function is given. */
interface Example {
  readonly documents: string
  /** Returns what differs when the check is opted out of, given the environment variables. */
  readonly outcome?: (documents: string, env: Record<string, string>) => unknown
}

const entry = (namespace: string, address: string, port: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: app, namespace: ${namespace}}\nspec: {hosts: [app.${namespace}.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: ${port}}], endpoints: [{address: ${address}}]}\n---\n`

const rules = (action: string, rule: string) =>
  `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: policy, namespace: ns}\nspec: {action: ${action}, rules: [{from: [{source: {ipBlocks: [10.0.0.0/8]}}], ${rule}}]}\n---\n`

const policy = (name: string, spec: string) =>
  `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n---\n`

/** Returns the policies that documents define, valid ones and stand-ins. */
const policiesOf = (documents: string, { MESH_POLICY_OPT_OUTS = '' }: Record<string, string>) => {
  const { objects, standIns } = parseConfigFile('f.yaml', documents, names, undefined, readOptOuts(MESH_POLICY_OPT_OUTS))
  return [...objects, ...standIns.values()]
}

/** An example for every check. A check without an example does not compile. */
const examples: { readonly [Name in PolicyCheckName]: Example } = {
  'claim-types': { documents: rules('DENY', "when: [{key: 'request.auth.claims[staff]', values: ['true']}]") },
  'forwarded-addresses': { documents: rules('ALLOW', 'when: [{key: remote.ip, values: [10.0.0.0/8]}]') },
  'host-forms': { documents: rules('DENY', 'to: [{operation: {hosts: [secret.example]}}]') },
  'never-matching-hosts': { documents: rules('DENY', "to: [{operation: {hosts: ['https://secret.example']}}]") },
  'never-matching-paths': { documents: rules('DENY', "to: [{operation: {paths: ['/a//b']}}]") },
  'path-forms': { documents: rules('DENY', "to: [{operation: {paths: ['/a@b']}}]") },
  'endpoint-addresses': { documents: entry('lab', '127.0.0.1', 'http') },
  'header-underscores': {
    documents: policy(
      'debug',
      '{action: DENY, rules: [{from: [{source: {namespaces: [other]}}], when: [{key: "request.headers[x-debug]", values: ["on"]}]}]}',
    ),
  },
  'file-readability': {
    documents: 'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: {action: "DENY}\n',
    outcome: policiesOf,
  },
  'policy-namespaces': {
    documents: 'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p}\nspec: {action: DENY, rules: [{}]}\n',
    outcome: policiesOf,
  },
  'secret-accounts': {
    documents: secretDocument('edge/site', pairValues(site), undefined, null),
    outcome: (documents, { MESH_POLICY_OPT_OUTS = '' }) => {
      const optOuts = readOptOuts(MESH_POLICY_OPT_OUTS)
      const { secrets, warnings } = parseConfigFile('f.yaml', documents, names, undefined, optOuts)
      return [secrets.map((secret) => mayReadSecret({ account: 'gateway' }, secret, optOuts.has('secret-accounts'))), warnings.length]
    },
  },
  'own-namespace-instances': { documents: entry('lab', '10.0.0.1', 'tcp') },
  'undeclared-ports': {
    documents:
      'apiVersion: security.mesh.io/v1\nkind: RequestAuthentication\nmetadata: {name: tokens, namespace: ns}\nspec: {jwtRules: [{issuer: a, jwksUri: "https://a.example/keys"}]}\n',
  },
}

describe('policy checks stricter than earlier releases', () => {
  for (const [name, { documents, outcome = madeOf }] of Object.entries<Example>(examples)) {
    it(`${name} lists the objects it concerns, and its opt-out restores the earlier behaviour`, () => {
      const { objects, standIns, secrets } = parseConfigFile('f.yaml', documents, names)
      const checked = secrets.map((secret) => checkedSecret(secret, { ...secret, hasKey: secret.material.pair !== undefined }))
      const all = [...objects, ...standIns.values(), ...checked]
      const row = checkedPolicies(all, new Set()).find(({ check }) => check === name)
      expect(row?.objects, 'objects that it concerns').not.to.deep.equal([])
      const others = Object.keys(policyChecks).filter((other) => other !== name)
      const strict = outcome(documents, {})
      expect(outcome(documents, { MESH_POLICY_OPT_OUTS: name }), 'when it is left out').not.to.deep.equal(strict)
      expect(outcome(documents, { MESH_POLICY_OPT_OUTS: others.join(',') }), 'when all others are').to.deep.equal(strict)
    })
  }

  it('endpoint-addresses also lists ports of proxies and agents that endpoints have which proxies resolve', () => {
    const documents = `
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: named, namespace: lab}
spec: {hosts: [a.example], resolution: DNS, ports: [{number: 15000, name: admin}, {number: 80, name: http, targetPort: 15020}, {number: 15001, name: moved, targetPort: 80}], endpoints: [{address: b.example, ports: {moved: 15090}}]}
---
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: addressed, namespace: lab}
spec: {hosts: [b.example], resolution: STATIC, ports: [{number: 15020, name: http}], endpoints: [{address: 10.0.0.1}]}
---
apiVersion: networking.mesh.io/v1
kind: WorkloadEntry
metadata: {name: vm, namespace: lab}
spec: {address: vm.example, ports: {http: 15000}}
`
    const { objects, faults } = parseConfigFile('f.yaml', documents, names)
    expect(faults).to.deep.equal([])
    const row = checkedPolicies(objects, new Set()).find(({ check }) => check === 'endpoint-addresses')
    expect(row?.objects.map(({ name, fields }) => [name, ...fields])).to.deep.equal([
      ['named', 'spec.ports[0].number', 'spec.ports[1].targetPort', 'spec.endpoints[0].ports.moved'],
      ['vm', 'spec.ports.http'],
    ])
  })

  it('path-forms also lists values without ambiguous characters, since servers may read their paths otherwise than Envoy', () => {
    const { objects } = parseConfigFile('f.yaml', rules('DENY', "to: [{operation: {paths: [/admin, '*'], notPaths: [/admin/*]}}]"), names)
    const row = checkedPolicies(objects, new Set()).find(({ check }) => check === 'path-forms')
    const operation = 'spec.rules[0].to[0].operation'
    expect(row?.objects.flatMap(({ fields }) => fields)).to.deep.equal([`${operation}.paths[0]`, `${operation}.notPaths[0]`])
  })

  it('file-readability: with the opt-out the first of two definitions applies', () => {
    const two = policy('p', '{action: DENY, rules: [{}]}') + policy('p', '{}') + policy('q', '{}') + policy('q', '{rules: 7}')
    const specs = (env: Record<string, string>) => policiesOf(two, env).map(({ name, spec }) => [name, 'invalid' in (spec as object)])
    expect(specs({})).to.deep.equal([
      ['p', true],
      ['q', true],
      ['q', true],
    ])
    expect(specs({ MESH_POLICY_OPT_OUTS: 'file-readability' })).to.deep.equal([
      ['p', false],
      ['q', false],
      ['q', true],
    ])
  })

  it('have kebab-case names and a description, and an opt-out with an unknown name is rejected', () => {
    for (const [name, { stricter, kinds }] of Object.entries<PolicyCheck>(policyChecks)) {
      expect(name).to.match(/^[a-z0-9]+(-[a-z0-9]+)*$/)
      expect(stricter.length, name).to.be.greaterThan(20)
      expect(kinds, name).not.to.deep.equal([])
    }
    expect(() => readOptOuts('no-such, constructor')).to.throw('environment variable MESH_POLICY_OPT_OUTS: "no-such, constructor": no such check')
    expect(optOutWarnings(readOptOuts(' , '))).to.deep.equal([])
    const all = readOptOuts(Object.keys(policyChecks).join(', '))
    expect(optOutWarnings(all)).to.have.length(all.size)
  })

  it('are reported with the objects and fields they concern, valid or not, in one line per check', () => {
    const methods: PolicyCheck = {
      stricter: 'methods are compared as they are written',
      kinds: ['AuthorizationPolicy'],
      concerns: ({ spec }: ConfigObject) => {
        const { rules } = spec as { rules: { to: { operation: { methods?: string[] } }[] }[] }
        return rules.flatMap(({ to }, rule) =>
          to.flatMap(({ operation }, i) => (operation.methods ?? []).map((_, n) => `spec.rules[${rule}].to[${i}].operation.methods[${n}]`)),
        )
      },
    }
    const text = [
      policy('good', '{rules: [{to: [{operation: {methods: [get]}}]}]}'),
      policy('bad', '{rules: [{to: [{operation: {methods: [get, post, put, delete, ""]}}]}]}'),
      policy('empty', '{}'),
      policy('other', '{rules: 7}'),
    ].join('')
    const { objects, standIns } = parseConfigFile('f.yaml', text, names)
    expect([...standIns.keys()]).to.deep.equal(['AuthorizationPolicy/ns/bad', 'AuthorizationPolicy/ns/other'])
    const checked = checkedPolicies([...objects, ...standIns.values()], new Set(['methods']), { methods })
    expect(checked[0]?.objects.map(({ name, fields }) => [name, fields.length])).to.deep.equal([
      ['good', 1],
      ['bad', 5],
    ])
    const [line, ...more] = checkedPolicyLines(checked)
    expect(more).to.deep.equal([])
    expect(line).to.equal(
      'policy check methods is disabled and concerns AuthorizationPolicy/ns/good (f.yaml, document 1: spec.rules[0].to[0].operation.methods[0]), AuthorizationPolicy/ns/bad (f.yaml, document 2: spec.rules[0].to[0].operation.methods[0], spec.rules[0].to[0].operation.methods[1], spec.rules[0].to[0].operation.methods[2] and 2 more): methods are compared as they are written; /debug/policyz lists all of them, MESH_POLICY_OPT_OUTS=methods disables the check',
    )
    const many = parseConfigFile(
      'f.yaml',
      Array.from({ length: 23 }, (_, n) => policy(`p${n}`, '{rules: [{to: [{operation: {methods: [get]}}]}]}')).join(''),
      names,
    )
    expect(checkedPolicyLines(checkedPolicies(many.objects, new Set(), { methods }))[0]).to.contain(' and 18 more: ')
  })
})
