/** Pods and patches at random, with the directives of strategic merges. */
import fc from 'fast-check'
import type { MergeCase } from './ask-go.ts'

const name = fc.constantFrom('app', 'proxy', 'init', 'a', 'b')
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const list = <T>(item: fc.Arbitrary<T>, most = 4) => fc.array(item, { maxLength: most })
/** A list as it stands in a pod: with each key once. */
const keyed = <T>(item: fc.Arbitrary<T>, key: string) =>
  fc.uniqueArray(item, { maxLength: 4, selector: (each) => (each as Record<string, unknown>)[key] })

const value = fc.constantFrom('x', 'y', '')
const port = fc.record(
  { containerPort: fc.constantFrom(80, 443, 8080), protocol: optional(fc.constantFrom('TCP', 'UDP')), name: optional(value) },
  { requiredKeys: ['containerPort'] },
)
const variable = fc.record(
  { name, value: optional(value), valueFrom: optional(fc.record({ fieldRef: fc.record({ fieldPath: value }) })) },
  { requiredKeys: ['name'] },
)
const mount = fc.record(
  { mountPath: fc.constantFrom('/a', '/b', '/c'), name, readOnly: optional(fc.boolean()) },
  { requiredKeys: ['mountPath', 'name'] },
)
const volume = fc.oneof(
  fc.record({ name, emptyDir: fc.record({ medium: optional(value) }, { requiredKeys: [] }) }),
  fc.record({ name, hostPath: fc.record({ path: value }) }),
  fc.record({ name, projected: fc.record({ sources: list(fc.record({ secret: fc.record({ name }) }), 2) }) }),
)
const toleration = fc.record({ key: value, operator: fc.constantFrom('Exists', 'Equal') })
const labels = fc.dictionary(fc.constantFrom('app', 'version', 'constructor', 'x/y'), value, { maxKeys: 3 })

type Lists = (item: fc.Arbitrary<unknown>, key: string) => fc.Arbitrary<unknown>

const container = (lists: Lists) =>
  fc.record(
    {
      name,
      image: value,
      command: list(value, 2),
      env: lists(variable, 'name'),
      ports: lists(port, 'containerPort'),
      volumeMounts: lists(mount, 'mountPath'),
      securityContext: fc.record({ runAsUser: fc.nat(3), capabilities: fc.record({ drop: list(value, 2) }) }, { requiredKeys: [] }),
      resources: fc.record({ limits: fc.dictionary(fc.constantFrom('cpu', 'memory'), value) }, { requiredKeys: [] }),
    },
    { requiredKeys: ['name'] },
  )

const spec = (lists: Lists) =>
  fc.record(
    {
      containers: lists(container(lists), 'name'),
      initContainers: lists(container(lists), 'name'),
      volumes: lists(volume, 'name'),
      imagePullSecrets: lists(fc.record({ name }), 'name'),
      hostAliases: lists(fc.record({ ip: fc.constantFrom('1.1.1.1', '2.2.2.2'), hostnames: list(value, 2) }), 'ip'),
      topologySpreadConstraints: lists(fc.record({ topologyKey: fc.constantFrom('zone', 'node'), maxSkew: fc.nat(3) }), 'topologyKey'),
      tolerations: list(toleration, 3),
      nodeSelector: labels,
      affinity: fc.record({
        nodeAffinity: fc.record({
          requiredDuringSchedulingIgnoredDuringExecution: fc.record({
            nodeSelectorTerms: list(fc.record({ matchFields: list(fc.record({ key: value }), 1) }), 2),
          }),
        }),
      }),
      hostNetwork: fc.boolean(),
      serviceAccountName: value,
    },
    { requiredKeys: [] },
  )

const pod = fc.record(
  {
    apiVersion: fc.constant('v1'),
    metadata: fc.record({ name: value, labels, annotations: labels, finalizers: fc.uniqueArray(value, { maxLength: 3 }) }, { requiredKeys: [] }),
    spec: spec(keyed),
  },
  { requiredKeys: ['metadata', 'spec'] },
)

/** A list of a patch: now and then with an element that deletes, or replaces all. */
const patched: Lists = (item, key) =>
  fc.tuple(keyed(item, key), fc.nat(11), item).map(([items, dice, other]) => {
    if (dice === 0) return [...items, { $patch: 'replace' }]
    if (dice < 3) return [{ $patch: 'delete', [key]: (other as Record<string, unknown>)[key] }, ...items]
    return items
  })

/** Puts a directive, a null or an odd value somewhere into an object. */
function spoiled(object: unknown, path: readonly number[], directive: (of: Record<string, unknown>) => void): void {
  if (typeof object !== 'object' || object === null) return
  const [step, ...rest] = path
  const keys = Object.keys(object)
  if (step === undefined || keys.length === 0) {
    if (!Array.isArray(object)) directive(object as Record<string, unknown>)
    return
  }
  spoiled((object as Record<string, unknown>)[keys[step % keys.length] as string], rest, directive)
}

const directives: readonly ((of: Record<string, unknown>) => void)[] = [
  () => {},
  () => {},
  () => {},
  (of) => (of.$patch = 'replace'),
  (of) => (of.$patch = 'delete'),
  (of) => {
    for (const key of Object.keys(of).slice(0, 1)) of[key] = null
  },
  (of) => (of.$retainKeys = Object.keys(of)),
  (of) => (of.$retainKeys = Object.keys(of).slice(1)),
  (of) => {
    for (const [key, items] of Object.entries(of))
      if (Array.isArray(items) && items.length > 0 && ['containers', 'env', 'volumes'].includes(key))
        of[`$setElementOrder/${key}`] = items
          .filter((item) => !item.$patch)
          .map(({ name }) => ({ name }))
          .concat([{ name: 'proxy' }])
  },
  (of) => {
    if (Object.hasOwn(of, 'finalizers')) {
      of['$deleteFromPrimitiveList/finalizers'] = of.finalizers
      delete of.finalizers
    }
  },
]

/** A pod and a patch. */
export const mergeCase: fc.Arbitrary<MergeCase> = fc
  .tuple(
    pod,
    fc.record(
      { metadata: fc.record({ labels, annotations: labels, finalizers: list(value, 2) }, { requiredKeys: [] }), spec: spec(patched) },
      { requiredKeys: ['spec'] },
    ),
    list(fc.nat(9), 5),
    fc.nat(directives.length - 1),
  )
  .map(([original, patch, path, at]) => {
    const changed = structuredClone(patch)
    spoiled(changed, path, directives[at] as (of: Record<string, unknown>) => void)
    return JSON.parse(JSON.stringify({ pod: original, patch: changed })) as MergeCase
  })
