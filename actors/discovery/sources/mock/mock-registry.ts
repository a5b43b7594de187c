/** The actor of the Mock registry: emits generated services to the push queue, and replaces endpoints at the configured rates. */
import type { Service } from '../../../../protocols/data.ts'
import type { MockRegistryConfig } from '../../../../protocols/messages/config.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { Features } from '../../../../src/config/features.ts'
import { count } from '../../../../src/model/counts.ts'
import {
  type MockChange,
  type MockService,
  type MockSettings,
  mockChurn,
  mockRegistry,
  mockRollout,
  mockServices,
  rolloutSteps,
} from '../../../../src/registry/mock.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../../runtime/actor.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { Peer } from '../../../runtime/link.ts'
import { every, type Timer } from '../../../runtime/timers.ts'
import { sendEvent } from '../../events/source-events.ts'

const shortestTickMs = 10
/** Maximum backlog of changes after the thread was blocked, in seconds of the rate. */
const maxDue = 1

/** Takes numbered steps at a rate until `step` returns false. */
class Steps {
  readonly #perSecond: number
  readonly #step: (number: number) => boolean
  readonly #timer: Timer
  #next = 0
  /** Number of steps that are due, with fractions, at the last tick. */
  #due = 0
  #last = monotonicMs()

  constructor(perSecond: number, step: (number: number) => boolean) {
    this.#perSecond = perSecond
    this.#step = step
    this.#timer = every(Math.max(shortestTickMs, 1000 / perSecond), () => this.#tick())
  }

  close(): void {
    this.#timer.cancel()
  }

  #tick(): void {
    const now = monotonicMs()
    this.#due = Math.min(this.#due + ((now - this.#last) / 1000) * this.#perSecond, Math.max(1, maxDue * this.#perSecond))
    this.#last = now
    for (; this.#due >= 1; this.#due--) if (!this.#step(this.#next++)) return this.close()
  }
}

class MockRegistry implements Behaviour<never, SourceEvent> {
  readonly #settings: MockSettings
  readonly #services: MockService[]
  readonly #steps: readonly Steps[]
  #queue: Peer<SourceEvent> | undefined

  constructor(context: ActorContext<MockRegistryConfig>) {
    const features = context.config.features as Features
    this.#settings = {
      services: features.PILOT_MOCK_SERVICES,
      endpoints: features.PILOT_MOCK_ENDPOINTS,
      namespaces: features.PILOT_MOCK_NAMESPACES,
      proxiesPerService: Math.min(features.PILOT_MOCK_PROXIES_PER_SERVICE, features.PILOT_MOCK_ENDPOINTS),
      churnPerSecond: features.PILOT_MOCK_CHURN_PER_SECOND,
      largeServices: features.PILOT_MOCK_LARGE_SERVICES,
      largeEndpoints: features.PILOT_MOCK_LARGE_ENDPOINTS,
      seed: features.PILOT_MOCK_SEED,
      domain: context.config.domain,
      cluster: features.CLUSTER_ID,
    }
    this.#services = mockServices(this.#settings)
    const { services, endpoints, churnPerSecond, largeServices, largeEndpoints } = this.#settings
    const rolloutPerSecond = largeServices === 0 ? 0 : features.PILOT_MOCK_ROLLOUT_PER_SECOND
    const rollouts = features.PILOT_MOCK_ROLLOUTS || Number.POSITIVE_INFINITY
    const log = context.log('source')
    log.info(`Mock registry: ${count(services, 'service')} with ${count(endpoints, 'endpoint')} each, ${count(churnPerSecond, 'change')} a second`)
    if (largeServices > 0)
      log.info(
        `Mock registry: ${count(largeServices, 'large service')} with ${count(largeEndpoints, 'endpoint')} each, ${count(rolloutPerSecond, 'workload')} replaced a second`,
      )
    const churn = (step: number) => {
      const change = mockChurn(this.#settings, this.#services, step)
      if (change) this.#change(change)
      return change !== undefined
    }
    const roll = (step: number) => {
      for (const change of mockRollout(this.#settings, this.#services, step)) this.#change(change)
      return step + 1 < rollouts * rolloutSteps(this.#settings)
    }
    this.#steps = [
      ...(churnPerSecond > 0 ? [new Steps(churnPerSecond, churn)] : []),
      ...(rolloutPerSecond > 0 ? [new Steps(rolloutPerSecond, roll)] : []),
    ]
  }

  linked(peer: Peer<SourceEvent>): void {
    this.#queue = peer
    const replay = peer.replay()
    const registry = mockRegistry(this.#settings)
    for (const { service, slices } of this.#services)
      sendEvent(peer, { type: 'ServiceChanged', registry, key: keyOf(service), service, slices, at: monotonicMs() })
    replay.finish()
  }

  receive(): void {}

  async drain(): Promise<void> {
    for (const steps of this.#steps) steps.close()
  }

  #change({ index, slice }: MockChange): void {
    const { service, slices } = this.#services[index] as MockService
    this.#services[index] = { service, slices: slices.map((known) => (known.key === slice.key ? slice : known)) }
    const registry = mockRegistry(this.#settings)
    if (this.#queue) sendEvent(this.#queue, { type: 'EndpointsChanged', registry, key: keyOf(service), part: slice.key, slice, at: monotonicMs() })
  }
}

const keyOf = ({ namespace, hostname }: Service): string => `${namespace}/${hostname}`

/** The actor definition of the Mock registry. */
export const actor: ActorDefinition<MockRegistryConfig, never, SourceEvent> = {
  kind: 'source',
  start: (context) => new MockRegistry(context),
}
