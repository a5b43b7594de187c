/**
 * Keeps the ConfigMap with the root certificates in every namespace, while this process leads (docs/certificates.md, B1 to B4): takes from the
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

const namespaces: ObjectRule<Message> = {
  objectOf: (message) => (message.type === 'NamespaceRootsChanged' ? { key: message.namespace, there: message.state !== undefined } : undefined),
  withdrawal: (namespace) => ({ type: 'NamespaceRootsChanged', namespace, state: undefined }),
}

class RootCertificates implements Behaviour<Message, never> {
  readonly objects = namespaces
  readonly #context: ActorContext<RootCertificatesConfig>
  readonly #maps = new RootConfigMaps()
  readonly #term: FollowedTerm
  readonly #writes: Counter<'outcome'>
  #roots = ''
  #underWay = 0
  #timer: Timer | undefined
  /** The last reason why nothing could be written. */
  #trouble = ''

  constructor(context: ActorContext<RootCertificatesConfig>) {
    this.#context = context
    const registers = [context.metrics]
    this.#writes = new Counter({
      name: 'pilot_root_configmap_writes_total',
      help: 'attempts to write the ConfigMap with the root certificates of a namespace',
      labelNames: ['outcome'] as const,
      registers,
    })
    gaugesOf(context.metrics)(
      'pilot_root_configmaps_outdated',
      'namespaces whose ConfigMap does not hold the root certificates in force',
      () => this.#maps.counts.outdated,
    )
    this.#term = new FollowedTerm({
      ...{ ask: context.askFor, duty: 'namespaces', log: context.log('orch') },
      changed: () => {
        this.#maps.again()
        this.#work()
      },
    })
  }

  receive(message: Message): void {
    if (message.type === 'NamespaceRootsChanged') this.#maps.set(message.namespace, message.state, monotonicMs())
    else {
      // Other sources of trust have no roots that proxies are to trust.
      if (!message.announced) return
      this.#roots = message.announced
      this.#maps.want(rootsDigest(this.#roots, true))
    }
    this.#work()
  }

  async drain(): Promise<void> {
    this.#term.close()
    this.#timer?.cancel()
  }

  /** Writes what is due. */
  #work(): void {
    this.#timer?.cancel()
    if (this.#term.now === 0) return
    while (this.#underWay < mostAtOnce) {
      const write = this.#maps.next(monotonicMs())
      if (!write) break
      this.#underWay++
      void this.#write(write)
    }
    const waitMs = this.#maps.waitMs(monotonicMs())
    if (this.#underWay < mostAtOnce && waitMs !== undefined) this.#timer = after(waitMs, () => this.#work()).unref()
  }

  async #write(write: DueWrite): Promise<void> {
    const { namespace } = write
    const roots = this.#roots
    const { outcome, ...rest } = await this.#context
      .askFor(patient, 'writeRootConfigMap', { term: this.#term.now, namespace, roots })
      .catch((error: Error): RootsWriteOutcome => ({ outcome: 'failed', reason: error.message, isCommon: true }))
    this.#underWay--
    this.#writes.inc({ outcome })
    if (outcome === 'written') this.#maps.written(write, rootsDigest(roots, true), monotonicMs())
    else if (outcome === 'gone') this.#maps.gone(write)
    else if (outcome === 'lost') this.#maps.untried(write)
    else {
      const { reason, isCommon } = rest as Extract<RootsWriteOutcome, { outcome: 'failed' }>
      this.#maps.failed(write, isCommon, monotonicMs(), chance())
      this.#failed(namespace, reason, isCommon)
    }
    if (outcome === 'written') this.#succeeded()
    this.#work()
  }

  #failed(namespace: string, reason: string, isCommon: boolean): void {
    const line = `ConfigMap ${rootConfigMap.name}${isCommon ? '' : ` of the namespace ${namespace}`} cannot be written: ${reason}`
    if (line === this.#trouble) return
    this.#trouble = line
    this.#context.log('orch').error(line)
    this.#context.note(attentionNote, [line])
  }

  #succeeded(): void {
    if (this.#trouble === '') return
    this.#trouble = ''
    this.#context.note(attentionNote, [])
  }
}

/** The actor definition of the keeper of root certificates. */
export const actor: ActorDefinition<RootCertificatesConfig, Message, never> = {
  kind: 'root-certificates',
  start: (context) => new RootCertificates(context),
}
