/** The actor of the Mock registry: emits generated services to the push queue, and replaces endpoints at the configured rate. */
import type { MockRegistryConfig } from '../../../../protocols/messages/config.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { Features } from '../../../../src/config/features.ts'
import { count } from '../../../../src/model/counts.ts'
import { type MockService, type MockSettings, mockChurn, mockRegistry, mockServices } from '../../../../src/registry/mock.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../../runtime/actor.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { Peer } from '../../../runtime/link.ts'
import { every, type Timer } from '../../../runtime/timers.ts'
import { sendEvent } from '../../source-events.ts'

const shortestTickMs = 10
/** Maximum backlog of changes after the thread was blocked, in seconds of the rate. */
const maxDue = 1

class MockRegistry implements Behaviour<never, SourceEvent> {
  readonly #settings: MockSettings
  readonly #services: MockService[]
  #queue: Peer<SourceEvent> | undefined
  #step = 0
  /** Number of changes that are due, with fractions, at the last tick. */
  #due = 0
  #lastChurn = monotonicMs()
  readonly #timer: Timer | undefined

  constructor(context: ActorContext<MockRegistryConfig>) {
    const features = context.config.features as Features
    this.#settings = {
      services: features.PILOT_MOCK_SERVICES,
      endpoints: features.PILOT_MOCK_ENDPOINTS,
      namespaces: features.PILOT_MOCK_NAMESPACES,
      proxiesPerService: Math.min(features.PILOT_MOCK_PROXIES_PER_SERVICE, features.PILOT_MOCK_ENDPOINTS),
      churnPerSecond: features.PILOT_MOCK_CHURN_PER_SECOND,
      seed: features.PILOT_MOCK_SEED,
      domain: context.config.domain,
      cluster: features.CLUSTER_ID,
    }
    this.#services = mockServices(this.#settings)
    context
      .log('source')
      .info(
        `Mock registry: ${count(this.#services.length, 'service')} with ${count(this.#settings.endpoints, 'endpoint')} each, ${count(this.#settings.churnPerSecond, 'change')} a second`,
      )
    if (this.#settings.churnPerSecond > 0) {
      const tick = Math.max(shortestTickMs, 1000 / this.#settings.churnPerSecond)
      this.#timer = every(tick, () => this.#churn())
    }
  }

  linked(peer: Peer<SourceEvent>): void {
    this.#queue = peer
    const replay = peer.replay()
    for (const { service, endpoints } of this.#services) {
      const key = `${service.namespace}/${service.hostname}`
      sendEvent(this.#queue, { type: 'ServiceChanged', registry: mockRegistry(this.#settings), key, service, endpoints, at: monotonicMs() })
    }
    replay.finish()
  }

  receive(): void {}

  async drain(): Promise<void> {
    this.#timer?.cancel()
  }

  #churn(): void {
    const now = monotonicMs()
    this.#due = Math.min(this.#due + ((now - this.#lastChurn) / 1000) * this.#settings.churnPerSecond, maxDue * this.#settings.churnPerSecond)
    this.#lastChurn = now
    for (; this.#due >= 1; this.#due--) {
      const change = mockChurn(this.#settings, this.#services, this.#step++)
      if (!change) return
      this.#services[change.index] = change.replaced
      const { service, endpoints } = change.replaced
      const key = `${service.namespace}/${service.hostname}`
      if (this.#queue) sendEvent(this.#queue, { type: 'EndpointsChanged', registry: mockRegistry(this.#settings), key, endpoints, at: monotonicMs() })
    }
  }
}

/** The actor definition of the Mock registry. */
export const actor: ActorDefinition<MockRegistryConfig, never, SourceEvent> = {
  kind: 'source',
  start: (context) => new MockRegistry(context),
}
