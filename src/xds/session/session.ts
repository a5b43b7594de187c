/**
 * The state of one XDS stream, state of the world or delta: what the proxy subscribed to, what it was sent, what it took
 * (discovery behaviour 1.3, 1.5, 1.10). Holds no sockets and no clock; it is told what came and asked what to send next.
 */
import { WireError } from '../slab/wire.ts'
import { clusterType, endpointType, isWildcardType, listenerType, pushOrder, routeType, virtualHostType } from '../type-urls.ts'
import type { Catalog, TypeState } from './catalog.ts'
import { type Plan, type Plans, type SentState, sentState } from './plans.ts'
import { type DeltaRequest, namesIn, type SotwRequest } from './request.ts'
import { everything, type Subscription, type Subscriptions } from './subscription.ts'

/** What a session needs besides its own state; shared by all sessions of a writer. */
export interface SessionParts {
  readonly catalog: Catalog
  readonly plans: Plans
  readonly subscriptions: Subscriptions
  /** Milliseconds of flow control's patience; undefined = pushes do not wait for the last answer. */
  readonly flowControl: number | undefined
  /** A nonce that was never used before. */
  nonce(): string
  /** A push of a type is held back by flow control, or goes out unanswered after all. */
  held(typeUrl: string, timedOut: boolean): void
}

/** A refused response. */
export interface Rejection {
  readonly typeUrl: string
  readonly nonce: string
  readonly version: string
  readonly code: number
  readonly message: string
  readonly at: number
}

/** One type on one stream. */
export interface Watch {
  readonly typeUrl: string
  subscription: Subscription
  sent: SentState | undefined
  /** A state that was found to be what was sent. */
  upToDate: TypeState | undefined
  version: string
  nonce: string
  nonceAcked: string
  versionAcked: string
  sentAt: number
  /** Everything is to be sent, because the proxy asked. */
  dueInFull: boolean
  /** These are to be sent, because the proxy asked or because its clusters warm again. */
  readonly dueNames: Set<string>
  initialVersions: ReadonlyMap<string, string> | undefined
  lastError: Rejection | undefined
  /** Whether a push has been held back since the last answer. */
  delayed: boolean
}

/** What a request turned out to be. */
export type Outcome = 'ack' | 'nack' | 'stale' | 'subscribed' | 'unsubscribed'

/** A response to send. */
export interface Response {
  readonly typeUrl: string
  readonly version: string
  readonly nonce: string
  readonly plan: Plan
}

/** Types without which a proxy does not finish its start, even when there is nothing to send. */
const answersEmpty = new Set([clusterType, listenerType])

/** Types that refer to clusters. */
const referring = new Set([listenerType, routeType, virtualHostType])

/** How long listeners and routes wait for new clusters to be taken, in milliseconds. */
const gateMs = 5000

/** Types that one stream may ask for; proxies ask for fewer than ten. */
const mostTypes = 64

/** One stream. */
export class XdsSession {
  readonly delta: boolean
  readonly watches = new Map<string, Watch>()
  classId = ''
  /** Watches in push order; types that have no place in it come last. */
  #inOrder: readonly Watch[] = []
  readonly #parts: SessionParts
  /** Until when listeners and routes wait for the answer to clusters they may refer to. */
  #gateUntil = 0

  constructor(delta: boolean, parts: SessionParts) {
    this.delta = delta
    this.#parts = parts
  }

  /** Name fields of the last request of a type: an equal list need not be read again. */
  knownNames(typeUrl: string): Buffer {
    return this.watches.get(typeUrl)?.subscription.raw ?? Buffer.alloc(0)
  }

  /** Takes a state-of-the-world request. */
  takeSotw(request: SotwRequest, now: number): Outcome {
    const { typeUrl, nonce } = request
    const watch = this.watches.get(typeUrl)
    if (request.error) return this.#reject(watch, typeUrl, nonce, request.error, now)
    if (request.rawNames.length === 0 && !isWildcardType(typeUrl)) {
      this.watches.delete(typeUrl)
      this.#sort()
      return 'unsubscribed'
    }
    const same = watch?.subscription.raw.equals(request.rawNames) ? watch.subscription : undefined
    const read = () =>
      request.rawNames.length === 0 ? everything : this.#parts.subscriptions.of(request.rawNames, () => namesIn(request.rawNames), false)
    const subscription = same ?? read()
    if (nonce === '' || !watch) {
      this.#open(typeUrl, subscription).dueInFull = true
      return 'subscribed'
    }
    if (nonce !== watch.nonce) return 'stale'
    this.#acknowledge(watch, now)
    if (subscription === watch.subscription) return 'ack'
    const before = watch.subscription
    watch.subscription = subscription
    if (subscription.wildcard || before.wildcard) watch.dueInFull = true
    else for (const name of subscription.names) if (!before.names.has(name)) watch.dueNames.add(name)
    return 'subscribed'
  }

  /** Takes a delta request. */
  takeDelta(request: DeltaRequest, now: number): Outcome {
    const { typeUrl, nonce } = request
    const known = this.watches.get(typeUrl)
    if (request.error) return this.#reject(known, typeUrl, nonce, request.error, now)
    const asked = this.#parts.subscriptions.asked(request.rawSubscribe)
    if (!known) {
      const { named, everything: all } = asked
      const wildcard = all || (isWildcardType(typeUrl) && named.length === 0)
      const subscription = wildcard && named.length === 0 ? everything : this.#parts.subscriptions.of(request.rawSubscribe, () => named, wildcard)
      const watch = this.#open(typeUrl, subscription)
      if (request.initialVersions.size > 0) watch.initialVersions = request.initialVersions
      watch.dueInFull = wildcard || named.length > 0
      return 'subscribed'
    }
    const changes = request.rawSubscribe.length > 0 || request.unsubscribe.length > 0
    if (changes) {
      const wildcard = (known.subscription.wildcard || asked.everything) && !request.unsubscribe.includes('*')
      known.subscription = this.#parts.subscriptions.derive(
        known.subscription,
        asked.named,
        request.unsubscribe.filter((name) => name !== '*'),
        wildcard,
      )
      for (const name of asked.named) known.dueNames.add(name)
      for (const name of request.unsubscribe) known.dueNames.delete(name)
      if (typeUrl === routeType) for (const name of asked.named) this.watches.get(virtualHostType)?.dueNames.add(name)
      if (asked.everything) known.dueInFull = true
    }
    if (nonce !== '' && nonce === known.nonce) this.#acknowledge(known, now)
    else if (nonce !== '' && !changes) return 'stale'
    return changes ? 'subscribed' : 'ack'
  }

  /** Makes every type due again, whether or not it changed. */
  again(): void {
    for (const watch of this.watches.values()) watch.dueInFull = true
  }

  /** Whether any type is out of date or asked for. */
  isDue(): boolean {
    for (const watch of this.#inOrder) if (this.#isDue(watch)) return true
    return false
  }

  /** Time at which held-back types may be sent after all, or undefined when nothing is held back at this time. */
  heldUntil(now: number): number | undefined {
    return this.#gateUntil > now ? this.#gateUntil : undefined
  }

  /** The next response in push order, or undefined when nothing is to be sent now. */
  next(now: number): Response | undefined {
    for (const watch of this.#inOrder) {
      if (!this.#isDue(watch)) continue
      const { typeUrl } = watch
      if (referring.has(typeUrl) && watch.sent && now < this.#gateUntil && !watch.dueInFull && watch.dueNames.size === 0) continue
      if (typeUrl === virtualHostType && this.#routesAreDue()) continue
      if (this.#heldByFlowControl(watch, now)) continue
      const response = this.#respond(watch, now)
      if (response) return response
    }
    return undefined
  }

  #isDue(watch: Watch): boolean {
    return watch.dueInFull || watch.dueNames.size > 0 || this.#isOutdated(watch, this.#state(watch))
  }

  /** Proxies ignore hosts of routes that they do not have yet. */
  #routesAreDue(): boolean {
    const routes = this.watches.get(routeType)
    return routes !== undefined && this.#isDue(routes)
  }

  #isOutdated(watch: Watch, state: TypeState): boolean {
    if (!watch.sent || watch.upToDate === state) return false
    if (watch.version !== state.version || watch.sent.size !== state.groups.length) return true
    if (state.groups.some((group) => !watch.sent?.has(group))) return true
    watch.upToDate = state
    return false
  }

  /** What a type's subscription comes to. Proxies do not name virtual hosts, nor say for which routes: they want those of the routes they have. */
  #subscriptionOf({ typeUrl, subscription }: Watch): Subscription {
    return (typeUrl === virtualHostType && subscription.wildcard && this.watches.get(routeType)?.subscription) || subscription
  }

  #state(watch: Watch): TypeState {
    return this.#parts.catalog.typeState(this.classId, watch.typeUrl)
  }

  #heldByFlowControl(watch: Watch, now: number): boolean {
    const patience = this.#parts.flowControl
    if (patience === undefined || watch.dueInFull || watch.dueNames.size > 0) return false
    if (watch.nonce === '' || watch.nonceAcked === watch.nonce || watch.lastError?.nonce === watch.nonce) return false
    const timedOut = now - watch.sentAt > patience
    if (timedOut || !watch.delayed) this.#parts.held(watch.typeUrl, timedOut)
    watch.delayed = !timedOut
    return !timedOut
  }

  #respond(watch: Watch, now: number): Response | undefined {
    const { plans } = this.#parts
    const state = this.#state(watch)
    const { typeUrl } = watch
    const subscription = this.#subscriptionOf(watch)
    let plan: Plan
    let asked = true
    if (watch.initialVersions) {
      plan = plans.reconnected(typeUrl, state, watch.initialVersions, subscription)
      this.#settle(watch, state)
    } else if (watch.dueInFull) {
      plan = plans.full(typeUrl, state, subscription, this.delta)
      this.#settle(watch, state)
    } else if (watch.dueNames.size > 0 && !(watch.sent && this.#isOutdated(watch, state) && (this.delta || !isWildcardType(typeUrl)))) {
      plan = plans.some(typeUrl, state, subscription, watch.dueNames, this.delta)
      watch.dueNames.clear()
      watch.sent ??= sentState(state)
      watch.version ||= state.version
    } else {
      asked = false
      const difference = plans.difference(typeUrl, state, watch.sent as SentState, subscription, this.delta)
      plan = this.delta || !isWildcardType(typeUrl) ? difference : plans.full(typeUrl, state, subscription, false)
      if (typeUrl === clusterType) this.#afterClusters(difference, now)
      watch.sent = sentState(state)
      watch.version = state.version
    }
    const empty = plan.count === 0 && plan.removed.length === 0
    // An empty answer says something only where everything was asked for; then the proxy waits for it.
    if (empty && !(subscription.wildcard && (asked ? answersEmpty.has(typeUrl) : !this.delta)))
      return watch.dueNames.size > 0 ? this.#respond(watch, now) : undefined
    watch.nonce = this.#parts.nonce()
    watch.sentAt = now
    watch.delayed = false
    return { typeUrl, version: state.version, nonce: watch.nonce, plan }
  }

  #settle(watch: Watch, state: TypeState): void {
    watch.dueInFull = false
    watch.initialVersions = undefined
    watch.dueNames.clear()
    watch.sent = sentState(state)
    watch.version = state.version
  }

  /** A changed cluster warms again and needs its endpoints again; a new one must be taken before anything refers to it. */
  #afterClusters(difference: Plan, now: number): void {
    const added = difference.added ?? new Set<string>()
    if (added.size > 0) this.#gateUntil = now + gateMs
    const endpoints = this.watches.get(endpointType)
    if (!endpoints) return
    for (const name of difference.changed ?? []) if (!added.has(name) && endpoints.subscription.names.has(name)) endpoints.dueNames.add(name)
  }

  #open(typeUrl: string, subscription: Subscription): Watch {
    if (this.watches.size >= mostTypes && !this.watches.has(typeUrl)) throw new WireError(`more than ${mostTypes} types on one stream`)
    const watch: Watch = {
      typeUrl,
      subscription,
      sent: undefined,
      upToDate: undefined,
      version: '',
      nonce: '',
      nonceAcked: '',
      versionAcked: '',
      sentAt: 0,
      dueInFull: false,
      dueNames: new Set(),
      initialVersions: undefined,
      lastError: undefined,
      delayed: false,
    }
    this.watches.set(typeUrl, watch)
    this.#sort()
    return watch
  }

  #sort(): void {
    const place = ({ typeUrl }: Watch) => (pushOrder.includes(typeUrl) ? pushOrder.indexOf(typeUrl) : pushOrder.length)
    this.#inOrder = [...this.watches.values()].sort((one, other) => place(one) - place(other))
  }

  #acknowledge(watch: Watch, _now: number): void {
    watch.nonceAcked = watch.nonce
    watch.versionAcked = watch.version
    watch.lastError = undefined
    if (watch.typeUrl === clusterType) this.#gateUntil = 0
  }

  #reject(watch: Watch | undefined, typeUrl: string, nonce: string, error: { code: number; message: string }, at: number): Outcome {
    if (watch) watch.lastError = { typeUrl, nonce, version: watch.version, code: error.code, message: error.message, at }
    if (typeUrl === clusterType) this.#gateUntil = 0
    return 'nack'
  }
}
