/** A mesh in a cluster, as commands ask it from elsewhere (docs/commands.md, Q20 to Q22): through the API server, with the rights of the user. */
import { once } from 'node:events'
import { connect, type TLSSocket } from 'node:tls'
import type { ClusterOrigin } from '../../../protocols/messages/orchestrator.ts'
import type { ForwardedServer } from '../../../src/cli/admin-client.ts'
import type { UserCluster } from '../../../src/cli/user-cluster.ts'
import { type Features, readFeatures } from '../../../src/config/features.ts'
import { isMapping, mapping } from '../../../src/config/shape.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { compare } from '../../../src/model/order.ts'
import { rootConfigMap } from '../../../src/orchestrator/root-config-maps.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { deadlineAfter } from '../../runtime/timers.ts'
import type { ApiCall, ApiSession } from '../cluster/api-session.ts'
import { exchange } from '../cluster/cluster-api.ts'
import { ClusterConnection } from '../cluster/cluster-connection.ts'
import { type ForwardedPort, forwardPort, type PodPort } from '../cluster/forwarded-port.ts'
import { userCluster, userSession } from '../cluster/user-session.ts'

/** Which mesh of which cluster is meant. */
export interface ClusterTarget extends UserCluster {
  /** The namespace of the control plane. */
  readonly meshNamespace: string
  /** The revision of the control plane; empty: the only one. */
  readonly revision: string
  /** A part of the name of the pod that is asked; empty: the first one that answers. */
  readonly replica: string
}

type Mapping = Readonly<Record<string, unknown>>

/** A pod of discovery. */
interface Replica {
  readonly name: string
  readonly revision: string
  readonly isReady: boolean
}

/** The port of `--secureGRPCAddr` in the chart. */
const securePort = 15_012
/** How long a replica may take until its connection is secured, and for how long a token is asked for and used, in milliseconds. */
const limits = { replicaMs: 5000, tokenMs: 600_000, usedMs: 300_000 }

/** Connects to a replica. Replicas that are not ready or do not answer are named on stderr. Rejects with an Error that says what is wrong. */
export async function reachCluster(target: ClusterTarget, environment: NodeJS.ProcessEnv = process.env): Promise<ForwardedServer> {
  const { features } = readFeatures(environment)
  const origin = userCluster(target, features, environment)
  const connection = new ClusterConnection(origin)
  const { server: address } = await connection.access(false).catch((error: Error) => {
    throw new Error(`${target.kubeconfig === '' ? '--cluster' : '--kubeconfig'}: ${error.message}`)
  })
  const cluster = new OperatorCluster({ origin, connection, address, namespace: target.meshNamespace }, features)
  const replicas = await cluster.replicas(target.revision)
  const suffix = suffixOf(replicas[0]?.revision)
  const [roots, token] = await Promise.all([cluster.roots(), cluster.token(`meshd-operator${suffix}`)])
  const ready = replicas.filter(({ isReady }) => isReady)
  for (const { name, isReady } of replicas) if (!isReady) warn(`replica ${name} is not ready, and is not asked`)
  const asked = target.replica === '' ? ready : [named(target.replica, ready)]
  if (asked.length === 0) throw new Error(`no replica of discovery is ready in the namespace ${target.meshNamespace}`)
  const server = `meshd${suffix}.${target.meshNamespace}.svc`
  const reasons: string[] = []
  for (const replica of asked) {
    try {
      const connection = await cluster.connectTo(replica.name, server, roots)
      return forwarded(replica.name, `https://${server}:${securePort}`, connection, token)
    } catch (error) {
      const reason = `replica ${replica.name} cannot be asked: ${oneLine((error as Error).message)}`
      if (error instanceof Forbidden) throw error
      reasons.push(reason)
      if (asked.length > reasons.length) warn(reason)
    }
  }
  throw new Error(reasons.at(-1))
}

const warn = (text: string): void => void process.stderr.write(`Warning: ${text}\n`)

/** What the names of a revision's objects end in. */
const suffixOf = (revision = ''): string => (revision === '' || revision === 'default' ? '' : `-${revision}`)

/** Returns the replica that a part of its name names. Throws an Error that names those that there are. */
function named(part: string, ready: readonly Replica[]): Replica {
  const found = ready.filter(({ name }) => name === part)
  const all = found.length > 0 ? found : ready.filter(({ name }) => name.includes(part))
  const [replica, ...others] = all
  if (replica && others.length === 0) return replica
  const names = (replica ? all : ready).map(({ name }) => name).join(', ') || 'none'
  throw new Error(
    `--replica: ${JSON.stringify(part.slice(0, 100))} is ${replica ? 'a part of several names' : 'no ready replica'}: there are ${names}`,
  )
}

interface SecuredConnection {
  readonly socket: TLSSocket
  readonly port: ForwardedPort
}

function forwarded(replica: string, origin: string, { socket, port }: SecuredConnection, token: () => Promise<string>): ForwardedServer {
  let [isTaken, isLost, calls] = [false, false, 0]
  port.hold(false)
  return {
    ...{ replica, origin, token },
    open() {
      isLost = isTaken
      if (isLost) throw new Error('the connection was lost')
      isTaken = true
      return socket
    },
    isLost: () => isLost || socket.destroyed || port.stream.destroyed,
    hold(isAsked) {
      calls += isAsked ? 1 : -1
      port.hold(calls > 0)
    },
    close: () => port.close(),
  }
}

/** The user may not do what is needed. */
class Forbidden extends Error {}

interface ClusterPlace {
  readonly origin: ClusterOrigin
  readonly connection: ClusterConnection
  /** The address of the API server. */
  readonly address: string
  /** The namespace of the control plane. */
  readonly namespace: string
}

/** A cluster, with the rights of the user. */
class OperatorCluster {
  readonly #at: ClusterPlace
  readonly #features: Features

  constructor(at: ClusterPlace, features: Features) {
    this.#at = at
    this.#features = features
  }

  /** Returns the pods of discovery, of one revision, by name. */
  async replicas(revision: string): Promise<Replica[]> {
    const labels = `app=meshd${revision === '' ? '' : `,mesh.io/rev=${revision}`}`
    const { items } = await this.#call('list', 'pods', { method: 'GET', path: `${this.#path('pods')}?labelSelector=${encodeURIComponent(labels)}` })
    const found = (Array.isArray(items) ? items : [])
      .filter(isMapping)
      .map(replicaOf)
      .filter((replica) => replica !== undefined)
    const revisions = [...new Set(found.map((replica) => replica.revision))].sort()
    if (revisions.length > 1)
      throw new Error(`the namespace ${this.#at.namespace} has several revisions of discovery: choose one with --revision: ${revisions.join(', ')}`)
    if (found.length > 0) return found.sort((one, other) => compare(one.name, other.name))
    throw new Error(
      `there are no pods of discovery in the namespace ${this.#at.namespace} (labels ${labels})${revision === '' ? '; --meshNamespace names another one' : ''}`,
    )
  }

  /** Returns the roots of the mesh. */
  async roots(): Promise<string> {
    const { name, key } = rootConfigMap
    const { data } = await this.#call('get', 'configmaps', { method: 'GET', path: this.#path(`configmaps/${name}`) }, name)
    const roots = mapping(data)[key]
    if (typeof roots === 'string' && roots !== '') return roots
    throw new Error(`the ConfigMap ${this.#at.namespace}/${name} has no ${key}`)
  }

  /** Returns what has a token of an account at any time. */
  async token(account: string): Promise<() => Promise<string>> {
    const [audience = ''] = this.#features.TOKEN_AUDIENCES.split(',')
    const spec = { audiences: [audience.trim()], expirationSeconds: limits.tokenMs / 1000 }
    const request = {
      method: 'POST' as const,
      path: this.#path(`serviceaccounts/${account}/token`),
      body: { text: JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec }), type: 'application/json' },
    }
    let since = monotonicMs()
    const fresh = async () => {
      const { status } = await this.#call('create', 'serviceaccounts/token', request, account)
      const { token } = mapping(status)
      if (typeof token === 'string') return token
      throw new Error(`the cluster gave no token of the service account ${this.#at.namespace}/${account}`)
    }
    let token = await fresh()
    return async () => {
      if (monotonicMs() - since > limits.usedMs) {
        token = await fresh()
        since = monotonicMs()
      }
      return token
    }
  }

  /** Connects to a replica whose certificate must be of the mesh, and of discovery. */
  async connectTo(pod: string, server: string, roots: string): Promise<SecuredConnection> {
    const late = Promise.withResolvers<never>()
    late.promise.catch(() => undefined)
    let port: ForwardedPort | undefined
    let isLate = false
    const timer = deadlineAfter(limits.replicaMs, () => {
      isLate = true
      port?.close()
      late.reject(new Error(`no answer within ${limits.replicaMs / 1000} s`))
    })
    const connecting = async () => {
      port = await this.#forward({ namespace: this.#at.namespace, pod, port: securePort })
      if (isLate) port.close()
      const socket = connect({ socket: port.stream, ca: roots, servername: server, ALPNProtocols: ['h2'] })
      socket.on('error', () => undefined)
      await once(socket, 'secureConnect')
      return { socket, port }
    }
    try {
      return await Promise.race([connecting(), late.promise])
    } catch (error) {
      port?.close()
      throw error
    } finally {
      timer.cancel()
    }
  }

  async #forward(port: PodPort): Promise<ForwardedPort> {
    try {
      return await forwardPort(await this.#at.connection.access(false), port)
    } catch (error) {
      // The answer to a refused upgrade is not shown by the client: the same is asked for without one. A server that checks both verbs may do so for GET too.
      const path = this.#path(`pods/${port.pod}/portforward?ports=${port.port}`)
      for (const [verb, method] of [
        ['create', 'POST'],
        ['get', 'GET'],
      ] as const)
        await this.#call(verb, 'pods/portforward', { method, path }, port.pod).catch((refused: Error) => {
          if (refused instanceof Forbidden) throw refused
        })
      throw error
    }
  }

  #path(rest: string): string {
    return `/api/v1/namespaces/${encodeURIComponent(this.#at.namespace)}/${rest}`
  }

  /** Sends a request and returns the object of the answer. */
  async #call(verb: string, resource: string, request: Omit<ApiCall, 'accept'>, name = ''): Promise<Mapping> {
    const session = userSession(this.#at.origin, this.#at.connection)
    try {
      let answer = await this.#ask(session, request)
      if (answer.status === 401) {
        session.refused()
        answer = await this.#ask(session, request)
      }
      const { status, object } = answer
      if (status < 300) return object
      const reason = typeof object.message === 'string' ? object.message.slice(0, 500) : `status ${status}`
      const where = `${resource}${name === '' ? '' : ` ${name}`} in the namespace ${this.#at.namespace}`
      if (status === 401) throw new Error(`the cluster does not accept the credential of the user: ${reason}`)
      if (status === 403) throw new Forbidden(`forbidden: "${verb}" of ${where}: ${reason}`)
      throw new Error(`"${verb}" of ${where} failed: ${reason}`)
    } finally {
      session.close()
    }
  }

  async #ask(session: ApiSession, request: Omit<ApiCall, 'accept'>): Promise<{ status: number; object: Mapping }> {
    const { status, body } = await exchange(session, { accept: 'application/json', ...request }).catch((error: Error) => {
      throw new Error(`the cluster ${this.#at.address} cannot be reached: ${error.message}`)
    })
    try {
      return { status, object: mapping(JSON.parse(body.toString('utf8'))) }
    } catch {
      return { status, object: {} }
    }
  }
}

function replicaOf({ metadata, status }: Mapping): Replica | undefined {
  const { name, labels, deletionTimestamp } = mapping(metadata)
  const { conditions } = mapping(status)
  if (typeof name !== 'string' || deletionTimestamp !== undefined) return undefined
  const isReady =
    Array.isArray(conditions) && conditions.some((condition) => isMapping(condition) && condition.type === 'Ready' && condition.status === 'True')
  return { name, isReady, revision: String(mapping(labels)['mesh.io/rev'] ?? '') }
}
