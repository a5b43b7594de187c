/** The Mock registry as an actor: emits made-up services to the push queue, and replaces endpoints at the rate asked for. */
import type { MockRegistryConfig } from '../../protocols/messages/config.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import type { Features } from '../../src/config/features.ts'
import { type MockService, type MockSettings, mockChurn, mockServices } from '../../src/registry/mock.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../runtime/actor.ts'
import type { Peer } from '../runtime/link.ts'

const source = 'registry:Mock'
const shortestTickMs = 10

class MockRegistry implements Behaviour<never> {
  readonly #settings: MockSettings
  readonly #services: MockService[]
  #queue: Peer<SourceEvent> | undefined
  #step = 0
  #due = 0
  readonly #timer: NodeJS.Timeout | undefined

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
    }
    this.#services = mockServices(this.#settings)
    context
      .log('source')
      .info(
        `Mock registry: ${this.#services.length} services with ${this.#settings.endpoints} endpoints each, ${this.#settings.churnPerSecond} changes a second`,
      )
    if (this.#settings.churnPerSecond > 0) {
      const tick = Math.max(shortestTickMs, 1000 / this.#settings.churnPerSecond)
      this.#timer = setInterval(() => this.#churn(tick), tick)
    }
  }

  linked(peer: Peer): void {
    const queue = peer as Peer<SourceEvent>
    this.#queue = queue
    queue.tell({ type: 'ReplayStarted', source })
    for (const { service, endpoints } of this.#services) {
      const key = `${service.namespace}/${service.hostname}`
      queue.tell({ type: 'ServiceChanged', source, key, service, endpoints, at: Date.now() }, `service|${key}`)
    }
    queue.tell({ type: 'SourceSynced', source })
  }

  unlinked(): void {
    this.#queue = undefined
  }

  receive(): void {}

  async drain(): Promise<void> {
    clearInterval(this.#timer)
  }

  #churn(tick: number): void {
    this.#due += (tick / 1000) * this.#settings.churnPerSecond
    for (; this.#due >= 1; this.#due--) {
      const change = mockChurn(this.#settings, this.#services, this.#step++)
      if (!change) return
      this.#services[change.index] = change.replaced
      const { service, endpoints } = change.replaced
      const key = `${service.namespace}/${service.hostname}`
      this.#queue?.tell({ type: 'EndpointsChanged', source, key, endpoints, at: Date.now() }, `endpoints|${key}`)
    }
  }
}

/** The Mock registry as an actor. */
export const actor: ActorDefinition<MockRegistryConfig, never> = { kind: 'registry-watcher', start: (context) => new MockRegistry(context) }
