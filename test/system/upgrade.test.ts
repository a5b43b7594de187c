import { expect } from 'chai'
import { policyDocument } from '../harness/policies.ts'
import { runCommand, Service } from '../harness/service.ts'

describe('stricter policy checks and settings without effect after an upgrade', () => {
  it('an opt-out with an unknown check fails the start', async () => {
    const { code, stderr } = await runCommand(['discovery', '--registries', 'Mock', '--httpAddr', '127.0.0.1:0'], {
      MESH_POLICY_OPT_OUTS: 'no-such-check',
    })
    expect(code).to.equal(255)
    expect(stderr).to.contain('Error: environment variable MESH_POLICY_OPT_OUTS: "no-such-check": no such check; there are: ')
  })

  it('opted-out checks are logged at every start with the affected objects, and listed', async () => {
    const service = new Service({ env: { MESH_POLICY_OPT_OUTS: 'own-namespace-instances' } })
    service.write(
      'a.yaml',
      `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a, namespace: ns}
spec: {hosts: [a.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}
`,
    )
    try {
      await service.start()
      await service.output.says('policy check own-namespace-instances is disabled (MESH_POLICY_OPT_OUTS), so this does not hold: ')
      await service.output.says('policy check own-namespace-instances is disabled and concerns ServiceEntry/ns/a (')
      const rows = await service.debug<{ check: string; optedOut: boolean; objects: { name: string; fields: string[] }[] }[]>('policyz')
      const row = rows.find(({ check }) => check === 'own-namespace-instances')
      expect([row?.optedOut, row?.objects.map(({ name }) => name)]).to.deep.equal([true, ['a']])
      expect(row?.objects[0]?.fields).not.to.deep.equal([])
    } finally {
      await service.dispose()
    }
  })

  it('objects and fields without effect are logged at start and on change, once each, and listed', async () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const telemetry = 'apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {name: t, namespace: ns}\nspec: {tracing: []}\n---\n'
    const rule = (fields: string) =>
      `apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: d, namespace: ns}\nspec: {host: a.example, trafficPolicy: {${fields}}}\n`
    service.write('a.yaml', telemetry + rule('tunnel: {}'))
    service.write('b.yaml', policyDocument('AuthorizationPolicy', 'p', '{rules: [{}], targetRefs: [{kind: Service, name: s}]}'))
    try {
      await service.start()
      await service.output.says('Telemetry/ns/t (a.yaml, document 1): has no effect yet: ')
      await service.output.says('DestinationRule/ns/d (a.yaml, document 2): field spec.trafficPolicy.tunnel: has no effect yet: ')
      await service.output.says('AuthorizationPolicy/shop/p (b.yaml, document 1): field spec.targetRefs[0]: has no effect: ')
      await service.output.says(
        '3 objects have no effect as a whole or in some fields (AuthorizationPolicy 1, DestinationRule 1, Telemetry 1); /debug/noeffectz lists them',
      )
      service.write('a.yaml', telemetry + rule('tunnel: {a: b}, tls: {mode: SIMPLE, caCrl: /crl}'))
      await service.output.says('DestinationRule/ns/d (a.yaml, document 2): field spec.trafficPolicy.tls.caCrl: has no effect: ')
      await service.output.says('trafficPolicy.tunnel: has no', 1, 1)
      const rows = await service.debug<{ kind: string; fields: { path: string }[] }[]>('noeffectz')
      expect(rows.map(({ kind, fields }) => [kind, fields.map(({ path }) => path)])).to.deep.equal([
        ['AuthorizationPolicy', ['spec.targetRefs[0]']],
        ['DestinationRule', ['spec.trafficPolicy.tunnel', 'spec.trafficPolicy.tls.caCrl']],
        ['Telemetry', ['']],
      ])
    } finally {
      await service.dispose()
    }
  })
})
