import { expect } from 'chai'
import { parseConfigFile } from '../../../../src/config/parse.ts'
import { type SeenWorkload, Unselected } from '../../../../src/push/classes/unselected.ts'
import { Planner } from '../../../../src/push/planner.ts'
import { names, testSettings } from '../../../harness/settings.ts'

const groups: Record<string, string> = { AuthorizationPolicy: 'security', PeerAuthentication: 'security', RequestAuthentication: 'security' }
const gateway = '{selector: {app: gate}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}'
const filter = '{workloadSelector: {labels: {app: web}}, configPatches: [{applyTo: CLUSTER, patch: {operation: REMOVE}}]}'

/** The keys of objects, as `<Kind> <namespace> <spec>`, that select none of the workloads. */
function unselected(
  objects: readonly (readonly [kind: string, namespace: string, spec: string])[],
  workloads: readonly SeenWorkload[],
  { scoped = false, hasRouters = true } = {},
): string[] {
  const made = new Planner(testSettings({ PILOT_SCOPE_GATEWAY_TO_NAMESPACE: String(scoped) }))
  for (const [kind, namespace, spec] of objects) {
    const text = `apiVersion: ${groups[kind] ?? 'networking'}.mesh.io/v1${kind === 'EnvoyFilter' ? 'alpha3' : ''}\nkind: ${kind}\nmetadata: {name: o, namespace: ${namespace}}\nspec: ${spec}\n`
    const { objects: parsed, faults } = parseConfigFile('f', text, names)
    expect(faults).to.deep.equal([])
    for (const object of parsed) made.state.setConfig(`${kind}/${namespace}/o`, object)
  }
  made.advance()
  const left = new Unselected()
  const steps = [...left.read(made.snapshot, hasRouters), ...workloads.flatMap((workload) => [...left.take(workload)])]
  expect(steps).to.deep.equal([])
  expect(left.isEmpty).to.equal(left.keys.length === 0)
  return left.keys
}

describe('objects that select nothing', () => {
  it('are those without a workload of their labels in their namespace, of each kind that selects', () => {
    const objects = [
      ['AuthorizationPolicy', 'ns', '{selector: {matchLabels: {app: web}}}'],
      ['PeerAuthentication', 'ns', '{selector: {matchLabels: {app: web}}, mtls: {mode: STRICT}}'],
      ['RequestAuthentication', 'ns', '{selector: {matchLabels: {app: web}}}'],
      ['Sidecar', 'ns', '{workloadSelector: {labels: {app: web}}, egress: [{hosts: ["./*"]}]}'],
      ['EnvoyFilter', 'ns', filter],
    ] as const
    const all = objects.map(([kind]) => `${kind}/ns/o`).sort()
    expect(unselected(objects, [{ namespace: 'ns', labels: { app: 'web', version: 'v1' } }])).to.deep.equal([])
    expect(unselected(objects, [{ namespace: 'ns', labels: { app: 'wep' } }])).to.deep.equal(all)
    expect(unselected(objects, [{ namespace: 'other', labels: { app: 'web' } }])).to.deep.equal(all)
    expect(unselected(objects, [{ type: 'router', namespace: 'ns', labels: { app: 'web' } }])).to.deep.equal(['Sidecar/ns/o'])
  })

  it('are those of a namespace without workloads, and of the root namespace those that no namespace has', () => {
    const everybody = [
      ['AuthorizationPolicy', 'ns', '{}'],
      ['PeerAuthentication', 'mesh-system', '{mtls: {mode: STRICT}}'],
    ] as const
    expect(unselected(everybody, [{ namespace: 'other', labels: {} }])).to.deep.equal(['AuthorizationPolicy/ns/o'])
    expect(unselected(everybody, [])).to.deep.equal(['AuthorizationPolicy/ns/o', 'PeerAuthentication/mesh-system/o'])
  })

  it('are Gateways that select no gateway, in any namespace or in their own', () => {
    const gateways = [['Gateway', 'ns', gateway]] as const
    const workload = { namespace: 'edge', labels: { app: 'gate' } }
    expect(unselected(gateways, [workload])).to.deep.equal([])
    expect(unselected(gateways, [{ ...workload, type: 'sidecar' }])).to.deep.equal(['Gateway/ns/o'])
    expect(unselected(gateways, [workload], { scoped: true })).to.deep.equal(['Gateway/ns/o'])
    expect(unselected(gateways, [], { hasRouters: false }), 'before a gateway has connected').to.deep.equal([])
  })

  it('are looked for in pieces, however many share a label', () => {
    const made = new Planner(testSettings())
    for (let at = 0; at < 500; at++) {
      const text = `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: o${at}, namespace: ns}\nspec: {selector: {matchLabels: {app: web, at: '${at}'}}}\n`
      for (const object of parseConfigFile('f', text, names).objects) made.state.setConfig(`AuthorizationPolicy/ns/o${at}`, object)
    }
    made.advance()
    const left = new Unselected()
    expect([...left.read(made.snapshot, true)]).to.have.length(5)
    expect([...left.take({ namespace: 'ns', labels: { app: 'web', at: '7' } })]).to.have.length(5)
    expect(left.keys).to.have.length(499).and.to.not.include('AuthorizationPolicy/ns/o7')
  })
})
