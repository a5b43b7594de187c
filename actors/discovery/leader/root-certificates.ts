/**
 * Keeps the ConfigMap with the root certificates in every namespace, with `EXTERNAL_MESHD` those of other clusters too, while this process leads (docs/certificates.md, B1 to B4): takes from the
 * watcher of the cluster what namespaces have (`NamespaceRootsChanged`), from the certificate authority the roots (`TrustChanged`), and asks the
 * main thread to write.
 */
import { attentionNote } from '../../../protocols/messages/notes.ts'
import type { NamespaceRootsEvent, RootCertificatesConfig, RootsWriteOutcome } from '../../../protocols/messages/root-certificates.ts'
import type { TrustEvent } from '../../../protocols/messages/trust.ts'
import { type DueWrite, RootConfigMaps, rootConfigMap, rootsDigest } from '../../../src/orchestrator/root-config-maps.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { chance } from '../../runtime/chance.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { Counter, gaugesOf } from '../../runtime/metrics.ts'
import type { ObjectRule } from '../../runtime/register.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { FollowedTerm } from './followed-term.ts'

/** The number of ConfigMaps that are written at a time: other calls to the API server wait for no more. */
const mostAtOnce = 8

type Message = NamespaceRootsEvent | TrustEvent

/** Namespaces by cluster; neither has a slash in its name. */
const keyOf = (cluster: string | undefined, namespace: string): string => `${cluster ?? ''}/${namespace}`

const namespaces: ObjectRule<Message> = {
  objectOf: (message) =>
    message.type === 'NamespaceRootsChanged' ? { key: keyOf(message.cluster, message.namespace), there: message.state !== undefined } : undefined,
  withdrawal: (key) => {
    const [cluster, namespace = ''] = key.split('/')
    return { type: 'NamespaceRootsChanged', cluster: cluster || undefined, namespace, state: undefined }
  },
}

/** What the keepers of all clusters share. */
interface KeeperParts {
  readonly context: ActorContext<RootCertificatesConfig>
  readonly writes: Counter<'outcome'>
  /** The term in which this process leads; 0: it does not. */
  term(): number
  roots(): string
  /** What cannot be written has changed. */
  troubled(): void
}

/** Keeps the ConfigMaps of one cluster: one whose server is slow, or refuses, delays those of no other. */
class ClusterRoots {
  readonly maps = new RootConfigMaps()
  /** The last reason why nothing could be written. */
  trouble = ''
  readonly #parts: KeeperParts
  readonly #cluster: string | undefined
  #underWay = 0
  #timer: Timer | undefined

  constructor(parts: KeeperParts, cluster: string | undefined) {
    this.#parts = parts
    this.#cluster = cluster
  }

  close(): void {
    this.#timer?.cancel()
  }

  /** Writes what is due. */
  work(): void {
    this.#timer?.cancel()
    if (this.#parts.term() === 0) return
    while (this.#underWay < mostAtOnce) {
      const write = this.maps.next(monotonicMs())
      if (!write) break
      this.#underWay++
      void this.#write(write)
    }
    const waitMs = this.maps.waitMs(monotonicMs())
    if (this.#underWay < mostAtOnce && waitMs !== undefined) this.#timer = after(waitMs, () => this.work()).unref()
  }

  async #write(write: DueWrite): Promise<void> {
    const { namespace } = write
    const { context, writes } = this.#parts
    const roots = this.#parts.roots()
    const { outcome, ...rest } = await context
      .askFor(patient, 'writeRootConfigMap', { term: this.#parts.term(), cluster: this.#cluster, namespace, roots })
      .catch((error: Error): RootsWriteOutcome => ({ outcome: 'failed', reason: error.message, isCommon: true }))
    this.#underWay--
    writes.inc({ outcome })
    if (outcome === 'written') this.maps.written(write, rootsDigest(roots, true), monotonicMs())
    else if (outcome === 'gone') this.maps.gone(write)
    else if (outcome === 'lost') this.maps.untried(write)
    else {
      const { reason, isCommon } = rest as Extract<RootsWriteOutcome, { outcome: 'failed' }>
      this.maps.failed(write, isCommon, monotonicMs(), chance())
      this.#failed(namespace, reason, isCommon)
    }
    if (outcome === 'written') this.#say('')
    this.work()
  }

  #failed(namespace: string, reason: string, isCommon: boolean): void {
    const where = this.#cluster === undefined ? '' : ` of the cluster ${this.#cluster}`
    this.#say(`ConfigMap ${rootConfigMap.name}${isCommon ? '' : ` of the namespace ${namespace}`}${where} cannot be written: ${reason}`)
  }

  #say(trouble: string): void {
    if (trouble === this.trouble) return
    this.trouble = trouble
    if (trouble !== '') this.#parts.context.log('orch').error(trouble)
    this.#parts.troubled()
  }
}

class RootCertificates implements Behaviour<Message, never> {
  readonly objects = namespaces
  readonly #parts: KeeperParts
  /** By the other cluster; undefined: the own one. */
  readonly #clusters = new Map<string | undefined, ClusterRoots>()
  readonly #term: FollowedTerm
  #roots = ''

  constructor(context: ActorContext<RootCertificatesConfig>) {
    const registers = [context.metrics]
    const writes = new Counter({
      name: 'pilot_root_configmap_writes_total',
      help: 'attempts to write the ConfigMap with the root certificates of a namespace',
      labelNames: ['outcome'] as const,
      registers,
    })
    this.#parts = {
      ...{ context, writes, term: () => this.#term.now, roots: () => this.#roots },
      troubled: () =>
        context.note(
          attentionNote,
          [...this.#clusters.values()].flatMap(({ trouble }) => (trouble === '' ? [] : trouble)),
        ),
    }
    gaugesOf(context.metrics)('pilot_root_configmaps_outdated', 'namespaces whose ConfigMap does not hold the root certificates in force', () =>
      [...this.#clusters.values()].reduce((sum, { maps }) => sum + maps.counts.outdated, 0),
    )
    this.#term = new FollowedTerm({
      ...{ ask: context.askFor, duty: 'namespaces', log: context.log('orch') },
      changed: () => {
        for (const cluster of this.#clusters.values()) {
          cluster.maps.again()
          cluster.work()
        }
      },
    })
  }

  receive(message: Message): void {
    if (message.type === 'NamespaceRootsChanged') {
      const cluster = this.#of(message.cluster)
      cluster.maps.set(message.namespace, message.state, monotonicMs())
      return cluster.work()
    }
    // Other sources of trust have no roots that proxies are to trust.
    if (!message.announced) return
    this.#roots = message.announced
    for (const cluster of this.#clusters.values()) {
      cluster.maps.want(rootsDigest(this.#roots, true))
      cluster.work()
    }
  }

  async drain(): Promise<void> {
    this.#term.close()
    for (const cluster of this.#clusters.values()) cluster.close()
  }

  #of(cluster: string | undefined): ClusterRoots {
    const known = this.#clusters.get(cluster)
    if (known) return known
    const made = new ClusterRoots(this.#parts, cluster)
    if (this.#roots !== '') made.maps.want(rootsDigest(this.#roots, true))
    this.#clusters.set(cluster, made)
    return made
  }
}

/** The actor definition of the keeper of root certificates. */
export const actor: ActorDefinition<RootCertificatesConfig, Message, never> = {
  kind: 'root-certificates',
  start: (context) => new RootCertificates(context),
}
