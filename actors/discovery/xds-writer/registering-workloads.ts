/**
 * Tells the registrar of the workloads among a writer's proxies that want to be registered (`AUTO_REGISTER_GROUP`), and of the health that their
 * agents report (docs/registration.md).
 */
import type { ProxyNode } from '../../../protocols/data.ts'
import type { RegisteringWorkload, RegistrationRefused, ReportedHealth, WorkloadEvent } from '../../../protocols/messages/registration.ts'
import { canonicalAddress } from '../../../src/config/addresses.ts'
import { readProxyConfig } from '../../../src/config/mesh-config.ts'
import { entitledWorkloads } from '../../../src/identity/access.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import type { Connection } from './connection.ts'
import type { SecuredPort } from './secured-port.ts'

/** The least time between two reports of one workload that are passed on, in milliseconds. */
const reportMs = 500
/** The longest reason that is passed on, and that is logged, in characters. */
const longestReason = { told: 1000, logged: 200 }

interface Registering {
  readonly workload: RegisteringWorkload
  health: ReportedHealth | undefined
  toldAt: number
  timer: Timer | undefined
}

/** What the workloads of a writer are made of. */
export interface RegisteringParts {
  /** Whether callers of the secured port are authenticated (`XDS_AUTH`). */
  readonly authenticates: boolean
  /** The names of the mesh, once they are known. */
  readonly names: () => SecuredPort['names']
  /** The identified connections of the writer. */
  readonly connections: ReadonlyMap<string, Connection>
  /** Logs a line about a client. The number of lines of one kind is limited. */
  readonly warn: (kind: string, line: string) => void
}

/** The workloads of one writer. */
export class RegisteringWorkloads {
  readonly #parts: RegisteringParts
  readonly #workloads = new Map<string, Registering>()
  #registrar: Peer<WorkloadEvent> | undefined

  constructor(parts: RegisteringParts) {
    this.#parts = parts
  }

  linked(peer: Peer): void {
    if (peer.kind !== 'registrar') return
    this.#registrar = peer as Peer<WorkloadEvent>
    const replay = this.#registrar.replay()
    for (const [connection, { workload, health }] of this.#workloads)
      this.#registrar.tell({ type: 'WorkloadConnected', connection, workload, health }, `workload|${connection}`)
    replay.finish()
  }

  unlinked(peer: Peer): void {
    if (peer.kind === 'registrar') this.#registrar = undefined
  }

  /** A proxy is connected. */
  connected({ id, node, caller }: Connection): void {
    const workload = node && registeringWorkload(node, this.#parts.authenticates ? this.#callers(caller) : undefined)
    if (!workload) return
    this.#workloads.set(id, { workload, health: undefined, toldAt: Number.NEGATIVE_INFINITY, timer: undefined })
    this.#registrar?.tell({ type: 'WorkloadConnected', connection: id, workload, health: undefined }, `workload|${id}`)
  }

  /**
   * The agent of a proxy reports the health of its workload. Of many reports in short time the last one is passed on. Returns what is logged of it.
   */
  reported({ id }: Connection, error: { readonly message: string } | undefined): string {
    const registering = this.#workloads.get(id)
    if (registering) {
      registering.health = { isHealthy: error === undefined, message: error?.message.slice(0, longestReason.told).toWellFormed() ?? '' }
      const waitMs = registering.toldAt + reportMs - monotonicMs()
      if (waitMs <= 0) this.#tell(id, registering)
      else registering.timer ??= after(waitMs, () => this.#tell(id, registering)).unref()
    }
    return `the workload of ${id} is ${error ? `unhealthy: ${error.message.slice(0, longestReason.logged)}` : 'healthy'}`
  }

  /** A proxy is gone. */
  gone({ id }: Connection): void {
    const registering = this.#workloads.get(id)
    if (!registering) return
    registering.timer?.cancel()
    this.#workloads.delete(id)
    this.#registrar?.tell({ type: 'WorkloadDisconnected', connection: id }, `workload|${id}`)
  }

  /** Ends the stream of a workload that cannot be registered, if it is open still. */
  refused({ connection: id, code, reason }: RegistrationRefused): void {
    const stream = this.#parts.connections.get(id)?.stream
    if (!stream) return
    this.#parts.warn(`unregistered|${stream.peer}`, `stream of ${id} from ${stream.peer} ended: ${reason}`)
    stream.end(code, reason)
  }

  /** The workloads of the mesh that a caller was authenticated as. */
  #callers(caller: Connection['caller']): RegisteringWorkload['callers'] {
    const names = this.#parts.names()
    if (!caller || !names) return []
    return entitledWorkloads(caller, names).map(({ namespace, account }) => ({ namespace, account }))
  }

  #tell(connection: string, registering: Registering): void {
    registering.timer = undefined
    registering.toldAt = monotonicMs()
    if (registering.health) this.#registrar?.tell({ type: 'WorkloadHealthReported', connection, health: registering.health }, `health|${connection}`)
  }
}

/** Returns the workload of a proxy that wants to be registered. `callers`: undefined where nobody is authenticated. */
function registeringWorkload(node: ProxyNode, callers: RegisteringWorkload['callers']): RegisteringWorkload | undefined {
  const { AUTO_REGISTER_GROUP: workloadGroup, PROXY_CONFIG } = node.metadata
  const [address] = node.addresses
  if (typeof workloadGroup !== 'string' || workloadGroup === '' || address === undefined) return undefined
  const { namespace, network, locality, labels } = node
  const isProbed = readProxyConfig(PROXY_CONFIG).readinessProbe !== undefined
  return {
    workloadGroup: workloadGroup.slice(0, 253),
    namespace,
    node: node.id.slice(0, 253),
    address: canonicalAddress(address),
    network,
    locality,
    labels: labels ?? {},
    isProbed,
    callers,
  }
}
