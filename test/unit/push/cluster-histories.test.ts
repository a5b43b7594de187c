import { expect } from 'chai'
import fc from 'fast-check'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { resourcesOf } from '../../harness/held.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

const namespaces = ['one', 'two']
const places = ['a', 'b', 'c']
const clusters = ['', 'east', 'west']

/** A change: an object with a number of its present state, or none; or the entries of discoverySelectors. */
type Step =
  | { readonly kind: 'Namespace' | 'Node' | 'Pod' | 'ServiceEntry' | 'Sidecar'; readonly at: number; readonly state: number }
  | { readonly kind: 'selectors'; readonly state: number }

const documentOf = (kind: string, namespace: string, name: string, state: number): string => {
  const metadata = (labels: string) => `metadata: {name: ${name}, namespace: ${namespace}, labels: ${labels}}`
  switch (kind) {
    case 'Namespace':
      return `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${namespace}, labels: {mesh: "${state % 2}", topology.mesh.io/network: "n${state % 3}"}}\n`
    case 'Node':
      return `apiVersion: v1\nkind: Node\nmetadata: {name: ${name}, labels: {topology.kubernetes.io/region: "r${state % 2}", other: "${state}"}}\n`
    case 'Pod':
      return `apiVersion: v1\nkind: Pod\n${metadata(`{app: "${state % 2}"}`)}\nspec: {nodeName: ${places[state % 3]}}\nstatus: {podIP: 10.0.${state % 3}.${state % 4}}\n`
    case 'ServiceEntry':
      return `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\n${metadata('{}')}\nspec: {hosts: [${name}.${namespace}.test], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${80 + (state % 2)}, name: http}], workloadSelector: {labels: {app: "${state % 2}"}}}\n`
    default:
      return `apiVersion: networking.mesh.io/v1\nkind: Sidecar\n${metadata('{}')}\nspec: {workloadSelector: {labels: {app: "${state % 2}"}}, egress: [{hosts: ["${state % 3 === 0 ? '*' : '.'}/*"]}], outboundTrafficPolicy: {mode: REGISTRY_ONLY}}\n`
  }
}

/** What a step sets: the key of an object, and the object or undefined. */
function settingOf(step: Exclude<Step, { kind: 'selectors' }>) {
  const namespace = namespaces[step.at % 2] as string
  const name = places[step.at % 3] as string
  const [read] = parseConfigFile('f', documentOf(step.kind, namespace, name, step.state), names).objects
  if (!read) throw new Error('no object')
  const isOfCluster = ['Namespace', 'Node', 'Pod'].includes(step.kind)
  const object = { ...read, cluster: isOfCluster ? (clusters[step.at % clusters.length] as string) : '' }
  return { key: configKey(object), object: step.state === 0 ? undefined : object }
}

function meshOf(state: number) {
  const selectors = ['', '[{matchLabels: {mesh: "1"}}]', '[{matchExpressions: [{key: mesh, operator: DoesNotExist}]}]'][state % 3]
  const read = readMeshConfig(selectors === '' ? '' : `discoverySelectors: ${selectors}\n`)
  if ('error' in read) throw new Error(read.error)
  return read.value
}

function apply(planner: Planner, step: Step): void {
  if (step.kind === 'selectors') planner.state.setMesh(meshOf(step.state))
  else {
    const { key, object } = settingOf(step)
    planner.state.setConfig(key, object)
  }
}

const connectAll = (planner: Planner) => {
  for (const namespace of namespaces)
    for (const [index, name] of places.entries()) {
      const id = `sidecar~10.0.0.${index}~${name}.${namespace}~${namespace}.svc.cluster.local`
      const metadata = { CLUSTER_ID: clusters[index] as string, LABELS: { app: '1' } }
      planner.connect(`${name}.${namespace}`, readNode({ id, metadata, locality: undefined }, names, false))
    }
}

/** The versions of what all proxies are sent, by proxy, type and name. */
const heldBy = (planner: Planner) =>
  namespaces.flatMap((namespace) =>
    places.map((name) => [
      `${name}.${namespace}`,
      Object.fromEntries(
        [...resourcesOf(planner, `${name}.${namespace}`)].map(([type, resources]) => [
          type,
          resources.map((each) => `${each.name}@${each.version}`).sort(),
        ]),
      ),
    ]),
  )

const numbers = fc.nat({ max: 11 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constantFrom('Namespace', 'Node', 'Pod', 'Pod', 'Pod', 'ServiceEntry', 'Sidecar', 'Sidecar'),
      at: numbers,
      state: numbers,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('selectors' as const), state: numbers }) },
)

describe('namespaces, nodes and pods', () => {
  it('leave proxies with what a planner makes that saw only the final state, after any history', function () {
    this.timeout(300_000)
    fc.assert(
      fc.property(fc.array(fc.array(step, { minLength: 1, maxLength: 4 }), { minLength: 4, maxLength: 12 }), (rounds) => {
        const planner = new Planner(testSettings({ POD_NAMESPACE: 'one' }))
        planner.advance()
        connectAll(planner)
        for (const round of rounds) {
          for (const each of round) apply(planner, each)
          planner.advance()
          planner.takePush()
        }
        planner.sweep()
        const fresh = new Planner(testSettings({ POD_NAMESPACE: 'one' }))
        for (const each of rounds.flat()) apply(fresh, each)
        fresh.advance()
        connectAll(fresh)
        fresh.advance()
        expect(heldBy(planner)).to.deep.equal(heldBy(fresh))
        expect(
          planner.faults
            .all()
            .map(({ type, resource }) => `${type} ${resource}`)
            .sort(),
        ).to.deep.equal(
          fresh.faults
            .all()
            .map(({ type, resource }) => `${type} ${resource}`)
            .sort(),
        )
      }),
      { numRuns: runs(300) },
    )
  })
})
