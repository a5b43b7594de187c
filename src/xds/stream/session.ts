/**
 * The state of one XDS stream, state of the world (SotW) or delta: its subscriptions, what was sent on it and what the proxy acknowledged
 * (docs/xds-protocol.md; docs/resources.md, Q3, Q4). Has no sockets and no clock: the caller passes in requests and times, and asks for the
 * next response.
 */
import { hostOf } from '../names.ts'
import { WireError } from '../slab/wire.ts'
import {
  clusterType,
  endpointType,
  isWholeType,
  isWildcardType,
  listenerType,
  pushOrder,
  routeType,
  secretType,
  trustBundleType,
  virtualHostType,
} from '../type-urls.ts'
import { AskedNames } from './asked-names.ts'
import type { ConnectionBudget } from './budget.ts'
import type { Catalog } from './catalog.ts'
import { ClusterGate } from './cluster-gate.ts'
import { onlyIn } from './name-set.ts'
import type { Plan, Plans } from './plans.ts'
import type { ReadableSecrets } from './readable-secrets.ts'
import { ReportedVersions } from './reported-versions.ts'
import type { DeltaRequest, SotwRequest } from './request.ts'
import { everything, keptList, nothing, type Subscription, type Subscriptions, sameNames } from './subscription.ts'
import { type TypeState, versionOf } from './type-state.ts'
import { openWatch, type Watch } from './watch.ts'

/** The dependencies of a session, shared by all sessions of a writer. */
export interface SessionParts {
  readonly catalog: Catalog
  readonly plans: Plans
  readonly subscriptions: Subscriptions
  /** The roots that agents subscribe to; undefined where none are announced. */
  readonly announced?: { readonly state: TypeState }
  /** How long flow control waits for an outstanding ACK before the next push, in milliseconds. Undefined: flow control is off. */
  readonly flowControlTimeoutMs: number | undefined
  /** Returns a nonce that was never used before. */
  nonce(): string
  /** Called when flow control holds back a push of `typeUrl`, and again with `timedOut` when the push is sent without the ACK. */
  held(typeUrl: string, timedOut: boolean): void
}

/** The classification of a request. */
export type Outcome = 'ack' | 'nack' | 'stale' | 'subscribed' | 'unsubscribed'

/** A response to send. */
export interface Response {
  readonly typeUrl: string
  readonly version: string
  readonly nonce: string
  readonly plan: Plan
}

/**
 * A refused response (NACK): the resources that the proxy named, with the versions that it was sent; its error message; and whether the
 * policies of its class differ from those in force when the proxy last acknowledged a response of the type.
 */
export interface Refused {
  readonly typeUrl: string
  readonly resources: readonly { readonly name: string; readonly version: string }[]
  readonly detail: string
  readonly policiesChanged: boolean
}

/**
 * The maximum number of unanswered responses of a type that are remembered on a delta stream, where an ACK counts although later responses
 * were sent.
 */
const maxUnanswered = 8

/** The maximum number of refused resources of a type that are remembered. */
const maxBlamed = 16

/** The maximum number of listeners that are removed and sent again on one stream because the proxy cannot change them in place. */
const maxReplaced = 1024

const noNames: ReadonlySet<string> = new Set()

/** The maximum number of types that one stream may subscribe to. Proxies subscribe to fewer than ten. */
const maxTypes = 64

/** One XDS stream. */
export class XdsSession {
  readonly delta: boolean
  readonly watches = new Map<string, Watch>()
  classId = ''
  /** Watches in push order; types that have no place in the order come last. */
  #inOrder: readonly Watch[] = []
  /** By type the names of the resources that the proxy refused. */
  readonly #blamed = new Map<string, Set<string>>()
  readonly #parts: SessionParts
  readonly #budget: ConnectionBudget
  readonly #names: AskedNames
  readonly #gate = new ClusterGate()
  /** The clusters that were sent to a reconnected proxy before it subscribed to endpoints. */
  #warming = noNames
  /** The secrets that the proxy may read; undefined if it may read none. */
  #secrets: ReadableSecrets | undefined

  /** `budget` is shared by all streams of the connection. {@link close} releases what this stream has taken from it. */
  constructor(delta: boolean, parts: SessionParts, budget: ConnectionBudget) {
    this.delta = delta
    this.#parts = parts
    this.#budget = budget
    this.#names = new AskedNames(this.watches, parts.subscriptions, parts.plans)
  }

  /** Releases what the stream holds, at its end. */
  close(): void {
    for (const watch of this.watches.values()) this.#dropVersions(watch)
    this.#secrets?.use(this, nothing)
  }

  /** Sets the secrets that the proxy may read from now on; undefined: none. */
  readSecrets(secrets: ReadableSecrets | undefined): void {
    if (secrets === this.#secrets) return
    this.#secrets?.use(this, nothing)
    this.#secrets = secrets
    const watch = this.watches.get(secretType)
    if (!watch) return
    secrets?.use(this, watch.subscription)
    watch.dueInFull = true
  }

  /** Called when secrets with these names, or the fact that they do not exist, became known. Makes the subscribed ones among them due. */
  secretsKnown(names: readonly string[]): void {
    const watch = this.watches.get(secretType)
    for (const name of names) if (watch?.subscription.names.has(name)) watch.dueNames.add(name)
  }

  /** The secrets that the proxy subscribes to and that do not exist for it. Those of which nothing is known yet are left out. */
  missingSecrets(): string[] {
    const subscription = this.watches.get(secretType)?.subscription
    if (!subscription) return []
    const { names } = this.#secrets?.answerable(subscription) ?? subscription
    return [...names].filter((name) => this.#secrets?.state.find(name) === undefined)
  }

  /** Returns the current version of a type for the class of the proxy. */
  versionOf(watch: Watch): string {
    return this.#state(watch).version
  }

  /** Processes a state-of-the-world request (rules S1 to S8 of docs/xds-protocol.md). */
  takeSotw(request: SotwRequest, now: number): Outcome {
    const { typeUrl, nonce, error } = request
    const watch = this.watches.get(typeUrl)
    const refused = error && this.#reject(watch, typeUrl, nonce, error, now)
    if (refused && watch && nonce !== watch.nonce) return refused
    if (request.rawNames.length === 0 && !isWildcardType(typeUrl)) {
      this.watches.delete(typeUrl)
      if (typeUrl === secretType) this.#secrets?.use(this, nothing)
      this.#sort()
      return refused ?? 'unsubscribed'
    }
    if (watch && nonce !== '' && nonce !== watch.nonce) {
      if (!isWholeType(typeUrl)) this.#recordLeftOut(watch, request.rawNames)
      return refused ?? 'stale'
    }
    const asked = this.#parts.subscriptions.asked(request.rawNames, watch?.asked?.deref())
    // An empty list means everything if no name was ever given for the type (S1), and nothing after a name was given (S3).
    const legacy = asked.isEmpty && (watch?.legacy ?? true)
    const subscription = asked.isEmpty ? (legacy ? everything : nothing) : asked.subscription
    if (!watch || (nonce === '' && !error)) {
      const opened = this.#open(typeUrl, subscription, legacy, request.hasVersion)
      opened.dueInFull = subscription !== nothing
      opened.asked = keptList(asked)
      return refused ?? 'subscribed'
    }
    if (!error) this.#acknowledge(watch)
    const before = watch.subscription
    watch.legacy = legacy
    watch.subscription = subscription
    if (watch.asked?.deref() !== asked) watch.asked = keptList(asked)
    for (const name of watch.leftOut) if (subscription.names.has(name)) watch.dueNames.add(name)
    watch.leftOut.clear()
    if (sameNames(subscription, before)) return refused ?? 'ack'
    this.#checkBudget(watch, before)
    this.#addDue(watch, before)
    return refused ?? 'subscribed'
  }

  /** Records the subscribed names that a stale list leaves out (S7). */
  #recordLeftOut(watch: Watch, rawNames: SotwRequest['rawNames']): void {
    const { subscription } = this.#parts.subscriptions.asked(rawNames, watch.asked?.deref())
    for (const name of onlyIn(watch.subscription.names, subscription.names)) watch.leftOut.add(name)
  }

  /** Makes the resources due that a changed list of names adds. */
  #addDue(watch: Watch, before: Subscription): void {
    const { subscription, typeUrl } = watch
    if (!subscription.wildcard && subscription.names.size === 0) {
      watch.dueInFull = false
      watch.dueNames.clear()
    } else if (isWholeType(typeUrl) || (subscription.wildcard && !before.wildcard)) watch.dueInFull = true
    else for (const name of onlyIn(subscription.names, before.names)) watch.dueNames.add(name)
  }

  /** Processes a delta request (rules D1 to D9 of docs/xds-protocol.md). */
  takeDelta(request: DeltaRequest, now: number): Outcome {
    const { typeUrl, nonce, error } = request
    const known = this.watches.get(typeUrl)
    const refused = error && this.#reject(known, typeUrl, nonce, error, now)
    if (error && known?.unanswered.has(nonce) && !isWholeType(typeUrl)) known.isInDoubt = true
    const asked = this.#parts.subscriptions.added(request.rawSubscribe)
    if (!known) {
      if (typeUrl === routeType) this.#makeHostsDue(asked.subscription.names)
      const legacy = asked.isEmpty && request.unsubscribe.length === 0 && isWildcardType(typeUrl)
      const watch = this.#open(typeUrl, legacy ? everything : asked.subscription, legacy, request.initialVersions.size > 0)
      watch.dueInFull = legacy || !asked.isEmpty
      if (watch.dueInFull && request.initialVersions.size > 0) {
        this.#budget.versions.take(request.initialVersions.memory)
        watch.initialVersions = request.initialVersions
        if (typeUrl === endpointType) {
          for (const name of this.#warming) watch.initialVersions.forget(name)
          this.#warming = noNames
        }
      }
      return refused ?? 'subscribed'
    }
    const changes = !asked.isEmpty || request.unsubscribe.length > 0
    if (changes) this.#updateSubscription(known, asked.subscription, request.unsubscribe)
    if (!error) acknowledged(known, nonce)
    if (!error && nonce !== '' && nonce === known.nonce) this.#acknowledge(known)
    else if (!error && nonce !== '' && !changes) return 'stale'
    return refused ?? (changes ? 'subscribed' : 'ack')
  }

  /** Adds and removes names. A name that is added is sent again even if the proxy has the resource (D3). */
  #updateSubscription(watch: Watch, asked: Subscription, unsubscribe: readonly string[]): void {
    const before = watch.subscription
    const wildcard = asked.wildcard || (before.wildcard && !unsubscribe.includes('*'))
    watch.subscription = this.#parts.subscriptions.derive(before, asked.names, unsubscribe, wildcard)
    this.#checkBudget(watch, before)
    for (const name of unsubscribe) {
      // A proxy with a wildcard does not know whether the wildcard covers a name that it unsubscribed from: the resource is sent, or its
      // removal (D5).
      if (wildcard && before.names.has(name)) watch.dueNames.add(name)
      else watch.dueNames.delete(name)
      if (watch.typeUrl === routeType) this.watches.get(virtualHostType)?.dueNames.delete(name)
    }
    for (const name of asked.names) watch.dueNames.add(name)
    // The proxy may have dropped resources that it unsubscribed from or subscribed to again.
    for (const names of [unsubscribe, asked.names]) for (const name of names) watch.initialVersions?.forget(name)
    if (asked.wildcard && watch.initialVersions) {
      this.#dropVersions(watch)
      watch.initialVersions = ReportedVersions.of([])
    }
    if (watch.typeUrl === routeType) this.#makeHostsDue(asked.names)
    if (asked.wildcard) watch.dueInFull = true
  }

  /** Makes the virtual hosts of route configurations due that a proxy subscribes to: it has none of them, also if it had some before. */
  #makeHostsDue(routes: Iterable<string>): void {
    for (const name of routes) this.watches.get(virtualHostType)?.dueNames.add(name)
  }

  #checkBudget(watch: Watch, before: Subscription): void {
    if (watch.typeUrl === secretType) {
      this.#names.checkSecrets(watch)
      this.#secrets?.use(this, watch.subscription)
      return
    }
    if (this.classId === '') this.#names.defer(watch)
    else this.#names.check(watch, before, this.#state(watch))
  }

  #dropVersions(watch: Watch): void {
    this.#budget.versions.free(watch.initialVersions?.memory ?? 0)
    watch.initialVersions = undefined
  }

  /**
   * Returns the refusal (NACK) of the response with a nonce; undefined if that response was answered before, is no longer remembered, or has
   * only listeners that are removed and sent again.
   */
  refused(typeUrl: string, nonce: string, detail: string): Refused | undefined {
    const watch = this.watches.get(typeUrl)
    const refused = watch?.unanswered.get(nonce)
    if (!watch || !refused) return undefined
    answered(watch, nonce)
    const { groups } = refused.sent
    const named = namesBlamed(detail).flatMap((name) => {
      const version = versionOf(groups, name, hostOf(typeUrl, name))
      return version === undefined ? [] : { name, version }
    })
    const fixed = typeUrl === listenerType ? fixedListeners(detail) : noNames
    const resources = named.filter(({ name, version }) => !fixed.has(name) || !mustReplace(watch, name, version))
    if (named.length > 0 && resources.length === 0) return undefined
    const blamed = this.#blamed.get(typeUrl) ?? new Set()
    this.#blamed.set(typeUrl, blamed)
    for (const { name } of resources) if (blamed.size < maxBlamed) blamed.add(name)
    return { typeUrl, resources, detail, policiesChanged: watch.acknowledgedPolicies !== refused.policies }
  }

  /**
   * Returns the resources of a type that the proxy refused once, with the versions that it acknowledged last; none while it owes an answer or
   * refuses the last response.
   */
  acceptedAgain(typeUrl: string): Refused['resources'] {
    const watch = this.watches.get(typeUrl)
    const groups = watch?.sent?.groups
    if (!groups || watch.nonceAcked !== watch.nonce) return []
    return [...(this.#blamed.get(typeUrl) ?? noNames)].flatMap((name) => {
      const version = versionOf(groups, name, hostOf(typeUrl, name))
      return version === undefined ? [] : { name, version }
    })
  }

  /** Returns the types of which the last response was refused with a message that names no resource, and for which nothing else is due. */
  stillRefused(): Refused[] {
    return [...this.watches.values()].flatMap((watch) => {
      const { typeUrl, lastError, nonce } = watch
      if (lastError?.nonce !== nonce || this.#isDue(watch) || namesBlamed(lastError.message).length > 0) return []
      const policiesChanged = watch.acknowledgedPolicies !== this.#parts.catalog.policiesOf(this.classId)
      return { typeUrl, resources: [], detail: lastError.message, policiesChanged }
    })
  }

  /** Makes every type due in full, changed or not. */
  sendAgain(): void {
    for (const watch of this.watches.values()) watch.dueInFull = true
  }

  /** Whether any type is outdated or has resources due. */
  isDue(): boolean {
    for (const watch of this.#inOrder) if (this.#isDue(watch)) return true
    return false
  }

  /** Returns the time at which types held back by the cluster gate may be sent at the latest; undefined if none is held back at `now`. */
  heldUntil(now: number): number | undefined {
    return this.#gate.heldUntil(now)
  }

  /** Returns the next response in push order; undefined if nothing is to be sent now. Throws {@link BudgetExceeded}. */
  next(now: number): Response | undefined {
    for (const watch of this.#inOrder) if (watch.unchecked) this.#checkBudget(watch, nothing)
    for (const watch of this.#inOrder) {
      if (!this.#isDue(watch)) continue
      const { typeUrl } = watch
      if (watch.sent && !watch.dueInFull && watch.dueNames.size === 0 && this.#gate.holds(typeUrl, now)) continue
      if (typeUrl === virtualHostType && this.#routesAreDue()) continue
      if (this.#heldByFlowControl(watch, now)) continue
      const response = this.#respond(watch, now)
      if (response) return response
    }
    return undefined
  }

  #isDue(watch: Watch): boolean {
    return watch.dueInFull || watch.dueNames.size > 0 || mustRemove(watch) || this.#isOutdated(watch, this.#state(watch))
  }

  /** Proxies ignore virtual hosts of route configurations that they do not have yet. */
  #routesAreDue(): boolean {
    const routes = this.watches.get(routeType)
    return routes !== undefined && this.#isDue(routes)
  }

  #isOutdated(watch: Watch, state: TypeState): boolean {
    if (!watch.sent || watch.sent === state.holding) return false
    if (watch.sent.version !== state.version) return true
    watch.sent = state.holding
    return false
  }

  /**
   * Returns the effective subscription of a type. Proxies subscribe to virtual hosts with a wildcard, which stands for those of their route
   * configurations: none before the first request for routes, which follows later where a proxy without routes reconnects. Secrets of which
   * nothing is known yet are left out.
   */
  #subscriptionOf({ typeUrl, subscription }: Watch): Subscription {
    if (typeUrl === secretType) return this.#secrets?.answerable(subscription) ?? subscription
    if (typeUrl !== virtualHostType || !subscription.wildcard) return subscription
    return this.watches.get(routeType)?.subscription ?? nothing
  }

  #state(watch: Watch): TypeState {
    if (watch.typeUrl === secretType && this.#secrets) return this.#secrets.state
    if (watch.typeUrl === trustBundleType && this.#parts.announced) return this.#parts.announced.state
    return this.#parts.catalog.typeState(this.classId, watch.typeUrl)
  }

  #heldByFlowControl(watch: Watch, now: number): boolean {
    const timeoutMs = this.#parts.flowControlTimeoutMs
    if (timeoutMs === undefined || watch.dueInFull || watch.dueNames.size > 0) return false
    if (watch.nonce === '' || watch.nonceAcked === watch.nonce || watch.lastError?.nonce === watch.nonce) return false
    const timedOut = now - watch.sentAt > timeoutMs
    if (timedOut || !watch.delayed) this.#parts.held(watch.typeUrl, timedOut)
    watch.delayed = !timedOut
    return !timedOut
  }

  #respond(watch: Watch, now: number): Response | undefined {
    const state = this.#state(watch)
    const { typeUrl } = watch
    const subscription = this.#subscriptionOf(watch)
    const { plan, due } = this.#plan(watch, state, subscription, now)
    if (!due) return watch.dueNames.size > 0 ? this.#respond(watch, now) : undefined
    watch.nonce = this.#parts.nonce()
    if (!this.delta) watch.unanswered.clear()
    watch.unanswered.set(watch.nonce, { sent: state.holding, policies: this.#parts.catalog.policiesOf(this.classId) })
    if (watch.unanswered.size > maxUnanswered) watch.unanswered.delete(watch.unanswered.keys().next().value as string)
    watch.sentAt = now
    watch.delayed = false
    return { typeUrl, version: state.version, nonce: watch.nonce, plan }
  }

  /**
   * Returns the plan for an outdated or due type, and whether it is to be sent. An empty plan is sent only in answer to a
   * request for a whole type (S5; in delta only with a wildcard, D8).
   */
  #plan(watch: Watch, state: TypeState, subscription: Subscription, now: number): { plan: Plan; due: boolean } {
    const { typeUrl, sent } = watch
    const plans = (typeUrl === secretType && this.#secrets?.plans) || this.#parts.plans
    const { delta } = this
    const hasContent = (plan: Plan) => plan.count > 0 || (delta && plan.removed.length > 0)
    if (mustRemove(watch)) return { plan: this.#removal(watch, state, subscription), due: true }
    if (watch.dueInFull) {
      const plan = watch.initialVersions
        ? plans.reconnected(typeUrl, state, watch.initialVersions, subscription)
        : delta
          ? plans.fullSince(typeUrl, state, sent, subscription)
          : plans.full(typeUrl, state, subscription, false)
      if (typeUrl === clusterType && plan.changed) this.#clustersReconnected(plan.changed)
      watch.dueInFull = false
      this.#dropVersions(watch)
      watch.dueNames.clear()
      this.#markSent(watch, state)
      return { plan, due: hasContent(plan) || (isWholeType(typeUrl) && (subscription.wildcard || !delta)) }
    }
    if (sent && this.#isOutdated(watch, state)) {
      if (watch.isInDoubt) {
        watch.isInDoubt = false
        watch.dueInFull = true
        return this.#plan(watch, state, subscription, now)
      }
      const difference = plans.difference(typeUrl, state, sent, subscription, delta)
      this.#markSent(watch, state)
      if (typeUrl === secretType) for (const name of difference.changed ?? []) watch.dueNames.delete(name)
      if (typeUrl === clusterType) this.#clustersSent(difference, now)
      if (delta || !isWholeType(typeUrl)) return { plan: difference, due: hasContent(difference) }
      const touched = difference.count > 0 || difference.removed.length > 0
      return { plan: touched ? plans.full(typeUrl, state, subscription, false) : difference, due: touched }
    }
    const plan = plans.ofNames(typeUrl, state, subscription, watch.dueNames, delta)
    watch.dueNames.clear()
    if (!sent) this.#markSent(watch, state)
    return { plan, due: hasContent(plan) }
  }

  /** Returns the plan by which a proxy removes listeners that it cannot change in place, and makes them due behind it (S11, D10). */
  #removal(watch: Watch, state: TypeState, subscription: Subscription): Plan {
    const { plans } = this.#parts
    const removed = [...(watch.replaced?.due ?? [])]
    watch.replaced?.due.clear()
    if (this.delta) {
      for (const name of removed) watch.dueNames.add(name)
      return { ...plans.ofNames(watch.typeUrl, state, subscription, noNames, true), removed }
    }
    watch.dueInFull = true
    const kept = new Set([...state.entries()].map(({ name }) => name))
    for (const name of removed) kept.delete(name)
    return plans.ofNames(watch.typeUrl, state, subscription, kept, false)
  }

  #markSent(watch: Watch, state: TypeState): void {
    watch.sent = state.holding
    watch.version = state.version
  }

  /**
   * A changed cluster warms again and needs its endpoints again. A new cluster must be acknowledged before a resource that refers to it is
   * sent.
   */
  #clustersSent(difference: Plan, now: number): void {
    const added = difference.added ?? noNames
    if (added.size > 0) this.#gate.clustersAdded(now)
    const endpoints = this.watches.get(endpointType)
    if (!endpoints) return
    for (const name of difference.changed ?? []) if (!added.has(name) && endpoints.subscription.names.has(name)) endpoints.dueNames.add(name)
  }

  /** Makes the endpoints due of clusters that are sent to a reconnecting proxy: they warm, whatever endpoints the proxy reported. */
  #clustersReconnected(names: ReadonlySet<string>): void {
    const endpoints = this.watches.get(endpointType)
    if (!endpoints) this.#warming = names
    else {
      for (const name of names) endpoints.initialVersions?.forget(name)
      if (!endpoints.dueInFull) for (const name of names) if (endpoints.subscription.names.has(name)) endpoints.dueNames.add(name)
    }
  }

  #open(typeUrl: string, subscription: Subscription, legacy: boolean, resumed: boolean): Watch {
    const before = this.watches.get(typeUrl)
    if (this.watches.size >= maxTypes && !before) throw new WireError(`more than ${maxTypes} types on one stream`)
    const watch = openWatch(typeUrl, subscription, legacy, resumed, before)
    this.watches.set(typeUrl, watch)
    this.#sort()
    this.#checkBudget(watch, before?.subscription ?? nothing)
    return watch
  }

  #sort(): void {
    const place = ({ typeUrl }: Watch) => (pushOrder.includes(typeUrl) ? pushOrder.indexOf(typeUrl) : pushOrder.length)
    this.#inOrder = [...this.watches.values()].sort((one, other) => place(one) - place(other))
  }

  #acknowledge(watch: Watch): void {
    watch.nonceAcked = watch.nonce
    acknowledged(watch, watch.nonce)
    watch.lastError = undefined
    if (watch.typeUrl === clusterType) this.#gate.clustersAnswered()
  }

  #reject(watch: Watch | undefined, typeUrl: string, nonce: string, error: { code: number; message: string }, at: number): Outcome {
    // A NACK with another nonce is about a response before the last one, or about none.
    if (!watch || nonce === '' || nonce !== watch.nonce) return 'nack'
    watch.lastError = { typeUrl, nonce: watch.nonce, version: watch.version, code: error.code, message: error.message, at }
    if (typeUrl === clusterType) this.#gate.clustersAnswered()
    return 'nack'
  }
}

/**
 * Returns the names of resources in an error message of Envoy: `Error adding/updating listener(s) <name>: <reason>`, several one after the
 * other.
 */
const namesBlamed = (message: string): string[] => [...new Set([...message.matchAll(/(\S+): /g)].map(([, name]) => name as string))]

/** Returns the listeners in an error message of Envoy that it would add as they are, but does not change to that. */
const fixedListeners = (message: string): ReadonlySet<string> =>
  new Set([...message.matchAll(/Listener (\S+): reuse port cannot be changed during an update/g)].map(([, name]) => name as string))

/** Whether a refused version of a listener is to be removed and sent again: only once, so that a proxy that goes on refusing it is reported. */
function mustReplace(watch: Watch, name: string, version: string): boolean {
  watch.replaced ??= { due: new Set(), versions: new Map() }
  const { due, versions } = watch.replaced
  if (versions.get(name) === version || versions.size >= maxReplaced) return false
  versions.set(name, version)
  due.add(name)
  return true
}

/** Whether listeners are to be removed before they are sent again. */
const mustRemove = ({ replaced }: Watch): boolean => replaced !== undefined && replaced.due.size > 0

/** Records that the proxy acknowledged a response, the last one or an earlier one. */
function acknowledged(watch: Watch, nonce: string): void {
  const response = watch.unanswered.get(nonce)
  if (!response) return
  watch.acknowledgedPolicies = response.policies
  answered(watch, nonce)
}

/** Marks a response and all responses before it as answered: proxies answer in order. */
function answered({ unanswered }: Watch, nonce: string): void {
  for (const each of [...unanswered.keys()]) {
    unanswered.delete(each)
    if (each === nonce) return
  }
}
