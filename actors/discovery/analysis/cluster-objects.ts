/** Reads the cluster of `pilot-discovery analyze --cluster` into a mesh (docs/analysis.md, Y6). */
import { join } from 'node:path'
import { type ClusterKind, foreignKinds, kindsOfGroup, meshGroups, meshKindsIn, unreadMessage } from '../../../src/analysis/cluster-kinds.ts'
import type { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import type { Located } from '../../../src/analysis/report.ts'
import type { ClusterOrder } from '../../../src/cli/analyze-order.ts'
import type { Features } from '../../../src/config/features.ts'
import { isMapping } from '../../../src/config/shape.ts'
import { injectorNames } from '../../../src/orchestrator/injector-object.ts'
import { inNamespaces, namedResource, type Resource, shownResource } from '../../../src/orchestrator/resources.ts'
import { settingsNames } from '../../../src/orchestrator/settings-object.ts'
import { readBoundedFile } from '../../runtime/bounded-file.ts'
import { contextNamespace } from '../cluster/connection-files.ts'
import { userCluster, userSession } from '../cluster/user-session.ts'
import { ClusterReader, Unread } from './cluster-reader.ts'

type Mapping = Readonly<Record<string, unknown>>

/** What was read of a cluster. */
export interface ReadCluster {
  /** The number of objects. */
  readonly objects: number
  /** The kinds that could not be read, as findings. */
  readonly unread: readonly Located[]
}

/** Adds the objects of a cluster to a mesh that has those of files already. Rejects with an Error where the cluster cannot be reached. */
export async function addCluster(order: ClusterOrder, mesh: OfflineMesh, features: Features, environment: NodeJS.ProcessEnv): Promise<ReadCluster> {
  const session = userSession(userCluster(order, features, environment))
  try {
    return await new ClusterReading(new ClusterReader(session), order, mesh, features).read()
  } finally {
    session.close()
  }
}

/**
 * The namespace of the context that a user has, which objects without one are applied to, or that of the pod; undefined: there is none, or it cannot be
 * read, and then {@link addCluster} tells why.
 */
export async function namespaceOf(order: ClusterOrder, features: Features, environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  try {
    const origin = userCluster(order, features, environment)
    if (origin.from === 'files') return await contextNamespace(origin)
    return origin.from === 'pod' ? (await readBoundedFile(join(origin.directory, 'namespace'))).trim() : undefined
  } catch {
    return undefined
  }
}

class ClusterReading {
  readonly #reader: ClusterReader
  readonly #order: ClusterOrder
  readonly #mesh: OfflineMesh
  readonly #features: Features
  readonly #unread: Located[] = []
  #objects = 0

  constructor(reader: ClusterReader, order: ClusterOrder, mesh: OfflineMesh, features: Features) {
    this.#reader = reader
    this.#order = order
    this.#mesh = mesh
    this.#features = features
  }

  async read(): Promise<ReadCluster> {
    await this.#settings()
    for (const each of foreignKinds) await this.#kind(each)
    for (const group of meshGroups(this.#features.MESH_DOMAIN)) for (const each of await this.#kindsOf(group)) await this.#kind(each)
    for (const what of ['namespaces', 'secrets', 'workloads'] as const) this.#mesh.know(what)
    return { objects: this.#objects, unread: this.#unread }
  }

  #add(value: Mapping): void {
    this.#objects++
    this.#mesh.addOfCluster(value)
  }

  /** The kinds of the mesh that the cluster serves in a group. */
  async #kindsOf(group: string): Promise<readonly ClusterKind[]> {
    try {
      const found = await this.#reader.description(`/apis/${group}`)
      const served = new Map<string, ReadonlySet<unknown>>()
      for (const { version } of listOf(found?.versions)) {
        const { resources } = (await this.#reader.description(`/apis/${group}/${version}`)) ?? {}
        served.set(String(version), new Set(listOf(resources).map(({ name }) => name)))
      }
      return meshKindsIn(group, (version, plural) => served.get(version)?.has(plural) === true)
    } catch (error) {
      this.#refused(error, { name: `the kinds of ${group}` }, kindsOfGroup(group), [])
      return []
    }
  }

  /** Reads all objects of a kind; where that is not permitted, those of the namespace that was asked for and of the control plane. */
  async #kind(each: ClusterKind): Promise<void> {
    const { kind, resource } = each
    try {
      await this.#list(resource, each)
    } catch (error) {
      const readIn: string[] = []
      const wanted = this.#order.namespace === '' ? [] : [this.#order.namespace, this.#features.POD_NAMESPACE]
      if (isRefusal(error) && kind !== 'Namespace')
        for (const part of inNamespaces(resource, [...new Set(wanted)]))
          await this.#list(part, each).then(
            () => readIn.push(part.namespace ?? ''),
            (reason: unknown) => void rethrown(reason),
          )
      this.#refused(error, resource, [kind], readIn)
    }
  }

  #list(resource: Resource, { kind, apiVersion, isSecret }: ClusterKind): Promise<void> {
    // The objects of a list need not name their kind, and metadata has another.
    return this.#reader.list(resource.path, isSecret ? 'metadata' : 'objects', (object) => this.#add({ ...object, kind, apiVersion }))
  }

  /** Reads the settings of the mesh and of injection: of each the first ConfigMap that exists. */
  async #settings(): Promise<void> {
    const { POD_NAMESPACE, REVISION } = this.#features
    const namespaces = [...new Set([POD_NAMESPACE, 'istio-system'])]
    for (const names of [settingsNames(REVISION), injectorNames(REVISION)])
      await this.#firstOf(namespaces.flatMap((namespace) => names.map((name) => ({ namespace, name }))))
  }

  async #firstOf(candidates: readonly { readonly namespace: string; readonly name: string }[]): Promise<void> {
    for (const { namespace, name } of candidates) {
      let isThere = false
      const resource = namedResource('ConfigMap', 'configmaps', namespace, name)
      try {
        await this.#reader.list(resource.path, 'objects', (object) => {
          isThere = true
          this.#add({ ...object, kind: 'ConfigMap', apiVersion: 'v1' })
        })
      } catch (error) {
        return this.#refused(error, resource, [], [])
      }
      if (isThere) return
    }
  }

  /** Remembers what could not be read. A server that cannot be reached ends the command. */
  #refused(error: unknown, resource: Pick<Resource, 'name' | 'namespace'>, unread: readonly string[], readIn: readonly string[]): void {
    const { message } = rethrown(error)
    for (const kind of unread) this.#mesh.setUnread(kind, readIn)
    const finding = { code: 'MESH0005', level: 'warning', path: '', file: '', document: 0 } as const
    this.#unread.push({ ...finding, object: shownResource(resource as Resource), message: unreadMessage(message, readIn) })
  }
}

const isRefusal = (error: unknown): boolean => error instanceof Unread && error.code === 403

/** Returns the refusal of a server; throws what is none. */
function rethrown(error: unknown): Unread {
  if (!(error instanceof Unread)) throw error
  if (error.code === 0 || error.code === 401) throw new Error(`--cluster: ${error.message}`)
  return error
}

const listOf = (value: unknown): readonly Mapping[] => (Array.isArray(value) ? value.filter(isMapping) : [])
