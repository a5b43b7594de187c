/** Which namespaces the mesh discovers (docs/resources.md, O3). */
import type { Namespace } from '../../protocols/data.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import type { ResourceFault } from '../model/faults.ts'
import { compare } from '../model/order.ts'
import type { MeshNames } from '../names/mesh-names.ts'

type Labels = Readonly<Record<string, string>>
type Selector = NonNullable<MeshConfig['discoverySelectors']>[number]

/** The label that the orchestrator gives every namespace: its name. It holds for a namespace that no source tells of too. */
const nameLabel = 'kubernetes.io/metadata.name'

/**
 * Whether a selector selects labels, whose names are in the mesh form: all of its parts must hold. One without parts selects everything.
 */
export function selectsLabels({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels, names: MeshNames): boolean {
  const given = (key: string) => {
    const name = names.canonicalKey(key)
    return Object.hasOwn(labels, name) ? labels[name] : undefined
  }
  if (!Object.entries(matchLabels).every(([key, value]) => given(key) === value)) return false
  return matchExpressions.every(({ key, operator, values = [] }) => {
    const value = given(key)
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value)
      case 'NotIn':
        return value === undefined || !values.includes(value)
      case 'Exists':
        return value !== undefined
      default:
        return value === undefined
    }
  })
}

/** What was answered for a namespace of a cluster, and whether any source tells of it. */
interface Answer {
  readonly namespace: string
  readonly cluster: string
  readonly isCovered: boolean
  readonly isKnown: boolean
}

/** The settings that decide beside the namespaces. */
type DiscoverySettings = Pick<MeshConfig, 'discoverySelectors' | 'rootNamespace'>

/** Answers which namespaces are discovered, and finds the answers that another namespace object or setting changes. */
export class Discovery {
  readonly #names: MeshNames
  #settings: DiscoverySettings
  /** The labels of the namespaces by name, then by cluster. */
  readonly #namespaces = new Map<string, Map<string, Labels>>()
  /** The answers that were given, by namespace, then by cluster. None while there are no selectors. */
  readonly #answers = new Map<string, Map<string, Answer>>()

  /** Whether an answer was given that {@link takeFaults} did not see yet. */
  #isNew = false

  constructor(names: MeshNames, settings: DiscoverySettings) {
    this.#names = names
    this.#settings = settings
  }

  /** Whether services and configuration of a namespace count. An object without a namespace counts. */
  covers(namespace: string, cluster: string): boolean {
    const { discoverySelectors = [], rootNamespace } = this.#settings
    if (discoverySelectors.length === 0 || namespace === '' || namespace === rootNamespace) return true
    const known = this.#answers.get(namespace)?.get(cluster)
    if (known) return known.isCovered
    this.#isNew = true
    const answer = this.#answer(namespace, cluster)
    const answers = this.#answers.get(namespace)
    if (answers) answers.set(cluster, answer)
    else this.#answers.set(namespace, new Map([[cluster, answer]]))
    return answer.isCovered
  }

  /** Replaces the settings. Returns the namespaces that were answered for and whose answer differs now; `all` when any may. */
  setSettings(settings: DiscoverySettings): ReadonlySet<string> | 'all' {
    const before = this.#settings
    this.#settings = settings
    if (before.discoverySelectors === settings.discoverySelectors && before.rootNamespace === settings.rootNamespace) return new Set()
    const [had, has] = [before, settings].map(({ discoverySelectors = [] }) => discoverySelectors.length > 0)
    if (!had && !has) return new Set()
    this.#isNew = true
    const answered = [...this.#answers.keys()]
    if (!had || !has || before.rootNamespace !== settings.rootNamespace) {
      this.#answers.clear()
      return 'all'
    }
    return new Set(answered.filter((namespace) => this.#differs(namespace)))
  }

  /** Sets or removes a namespace. Returns it if what was answered for it differs now. */
  setNamespace(before: Namespace | undefined, now: Namespace | undefined): ReadonlySet<string> {
    for (const { name, cluster } of [before ?? []].flat()) {
      const clusters = this.#namespaces.get(name)
      clusters?.delete(cluster)
      if (clusters?.size === 0) this.#namespaces.delete(name)
    }
    for (const { name, cluster, labels } of [now ?? []].flat()) {
      const clusters = this.#namespaces.get(name)
      if (clusters) clusters.set(cluster, labels)
      else this.#namespaces.set(name, new Map([[cluster, labels]]))
    }
    this.#isNew = true
    const names = new Set([before, now].flatMap((namespace) => namespace?.name ?? []))
    return new Set([...names].filter((name) => this.#differs(name)))
  }

  /** A loss for each namespace that was asked about and is not discovered. Undefined if they are those of the last call. */
  takeFaults(): ResourceFault[] | undefined {
    if (!this.#isNew) return undefined
    this.#isNew = false
    const left = [...this.#answers.values()].flatMap((answers) => [...answers.values()].filter(({ isCovered }) => !isCovered))
    return left.map(({ namespace, cluster, isKnown }) => {
      const labels = isKnown ? 'its labels match no' : 'no source has a Namespace of this name, so that it has no labels, which match no'
      const resource = cluster === '' ? namespace : `${namespace} of cluster ${cluster}`
      const reason = `${labels} entry of discoverySelectors (O3 in docs/resources.md)`
      return {
        type: 'namespace',
        resource,
        objects: [],
        reason,
        consequence: 'its services and its configuration other than policies are left out',
        isLoss: true,
      }
    })
  }

  /** Answers again for a namespace. Returns whether an answer differs. */
  #differs(namespace: string): boolean {
    let differs = false
    for (const [cluster, before] of this.#answers.get(namespace) ?? []) {
      const now = this.#answer(namespace, cluster)
      this.#answers.get(namespace)?.set(cluster, now)
      differs ||= now.isCovered !== before.isCovered
    }
    return differs
  }

  #answer(namespace: string, cluster: string): Answer {
    const { discoverySelectors = [] } = this.#settings
    const labels = this.#labelsOf(namespace, cluster)
    const all = { ...labels, [nameLabel]: namespace }
    return {
      namespace,
      cluster,
      isCovered: discoverySelectors.some((selector) => selectsLabels(selector, all, this.#names)),
      isKnown: labels !== undefined,
    }
  }

  /** The labels of the namespace in its cluster, else of a source without a cluster, else in the first cluster that has it. */
  #labelsOf(namespace: string, cluster: string): Labels | undefined {
    const clusters = this.#namespaces.get(namespace)
    const [first] = [...(clusters ?? [])].sort(([one], [other]) => compare(one, other))
    return clusters?.get(cluster) ?? clusters?.get('') ?? first?.[1]
  }
}
