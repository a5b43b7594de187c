/** Groups of outbound listeners of sidecars: shared ones, and those that differ for a namespace or a caller. */

import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { publicViewLike, type ViewKey } from '../../snapshot/view.ts'
import { hostsForCaller } from '../../snapshot/visibility.ts'
import { type Draft, makeAll, type Outcome } from '../../xds/draft.ts'
import { addedListeners, listenerPatcher } from '../../xds/envoy-filter/listeners.ts'
import type { PatchContext } from '../../xds/envoy-filter/patches.ts'
import { listenersOfNoService, type OutboundInputs, outboundListeners } from '../../xds/listeners/outbound.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { listenerType } from '../../xds/type-urls.ts'
import { KeyedResources, nameOf } from './keyed-resources.ts'
import { type Built, GroupMaker, type Making, patched, withAdded } from './making.ts'
import { sameListeners, type Unpatched, unpatchedListeners } from './unpatched-listeners.ts'
import { ViewShares } from './view-shares.ts'

/** A group of outbound listeners. */
abstract class OutboundListeners extends GroupMaker {
  protected readonly groups: ListenerGroups
  protected readonly proxy: ProxyClass

  constructor(groups: ListenerGroups, proxy: ProxyClass, id: string, hiddenBy?: string) {
    super({ id: `listeners-out|${id}`, typeUrl: listenerType, given: proxy.traits.filtersOf.listeners.filters, hiddenBy })
    this.groups = groups
    this.proxy = proxy
  }
}

class ViewListeners extends OutboundListeners {
  constructor(groups: ListenerGroups, proxy: ProxyClass) {
    super(groups, proxy, `${proxy.viewKey.id}|${proxy.traits.listenerKey}|${callerOf(proxy)}`)
  }

  make(): Built {
    return { outcomes: this.groups.ofView(this.proxy) }
  }
}

class SharedListeners extends OutboundListeners {
  readonly #shared: ViewKey

  constructor(groups: ListenerGroups, proxy: ProxyClass, shared: ViewKey, hiddenBy?: string) {
    super(groups, proxy, `${shared.id}|${proxy.traits.listenerKey}`, hiddenBy)
    this.#shared = shared
  }

  make(): Built {
    return this.groups.shared(this, this.proxy, this.#shared)
  }
}

class OwnListeners extends OutboundListeners {
  readonly #shared: ViewKey

  constructor(groups: ListenerGroups, proxy: ProxyClass, shared: ViewKey) {
    super(groups, proxy, `of ${proxy.namespace}|${proxy.viewKey.id}|${shared.id}|${proxy.traits.listenerKey}|${callerOf(proxy)}`)
    this.#shared = shared
  }

  make(): Built {
    return this.groups.differing(this.proxy, this.#shared)
  }
}

const callerOf = ({ sourceLabels, headless }: ProxyClass): string => JSON.stringify([sourceLabels, headless])

/** Makes the groups of outbound listeners. */
export class ListenerGroups {
  readonly #making: Making
  /** The shared listeners, by name. */
  readonly #resources: KeyedResources

  constructor(making: Making) {
    this.#making = making
    this.#resources = new KeyedResources(making.record)
  }

  /** The makers for a class. */
  makersFor(proxy: ProxyClass): GroupMaker[] {
    const { viewKey } = proxy
    const { difference } = this.#making.view(viewKey)
    if (!difference) return [new ViewListeners(this, proxy)]
    const shared = publicViewLike(viewKey)
    const isAsAll = Object.keys(proxy.sourceLabels).length + proxy.headless.hosts.length === 0
    if (difference.services.length + difference.routed.length + this.#ruled(viewKey, shared).length === 0 && isAsAll)
      return [new SharedListeners(this, proxy, shared)]
    const own = new OwnListeners(this, proxy, shared)
    return [own, new SharedListeners(this, proxy, shared, own.id)]
  }

  /** The listeners of a view that a Sidecar restricts. */
  ofView(proxy: ProxyClass): Outcome[] {
    return this.#listeners(proxy, () => outboundListeners(this.#inputs(proxy.viewKey, proxy)))
  }

  /** The listeners that all views share: those that a change concerns, and those that belong to no service. */
  shared(group: GroupMaker, proxy: ProxyClass, key: ViewKey): Built {
    const inputs = this.#sharedInputs(key, proxy)
    const shares = this.#sharesOf(key, proxy)
    const { problems } = shares
    const ofName = (name: string) => this.#listeners(proxy, () => this.#unpatched(name, shares, key, proxy), true)
    return this.#resources.make(group, shares.names, ofName, (of) =>
      patched(proxy.traits, outbound, (context) => {
        const added = addedListeners(context)
        const taken = added.flatMap(({ name }) => of(name).flatMap((outcome) => ('conflict' in outcome ? [] : nameOf(outcome))))
        const made = makeListeners(
          listenersOfNoService(inputs, () => []),
          context,
          added,
          taken,
        )
        return [...made, ...problems.map((problem) => ({ problem }))]
      }),
    )
  }

  /** Removes a group. */
  forget(group: string): void {
    this.#resources.forget(group)
  }

  /** The hosts whose DestinationRule in this view has other settings for TCP connections than the rule in the shared view. */
  #ruled(key: ViewKey, shared: ViewKey): string[] {
    if (this.#making.snapshot.destinationRules.withTcpSettings.size === 0) return []
    const [view, all] = [this.#making.view(key), this.#making.view(shared)]
    return (view.difference?.hosts ?? []).filter((host) => {
      const service = view.service(host)?.service
      return service && view.tcpRuleFor(service) !== all.tcpRuleFor(service)
    })
  }

  #inputs(key: ViewKey, { traits, sourceLabels, namespace, headless }: ProxyClass): OutboundInputs {
    return { view: this.#making.view(key), snapshot: this.#making.snapshot, traits, sourceLabels, namespace, ownAddresses: headless.addresses }
  }

  #sharedInputs(key: ViewKey, proxy: ProxyClass): OutboundInputs {
    return { ...this.#inputs(key, proxy), sourceLabels: {}, namespace: '', ownAddresses: [] }
  }

  /** The listeners that differ from the shared ones for a namespace or a caller. */
  differing(proxy: ProxyClass, shared: ViewKey): Built {
    const inputs = this.#inputs(proxy.viewKey, proxy)
    const { snapshot } = inputs
    const { services = [], routed = [] } = inputs.view.difference ?? {}
    const ruled = this.#ruled(proxy.viewKey, shared)
    const hosts = [...new Set([...services, ...routed, ...ruled, ...hostsForCaller(snapshot, proxy.sourceLabels), ...proxy.headless.hosts])]
    const { chosen, hide, problems } = this.#sharesOf(shared, proxy).differing(hosts, inputs, this.#sharedInputs(shared, proxy))
    const outcomes = this.#listeners(proxy, () => outboundListeners(inputs, chosen), true)
    return { outcomes: [...outcomes, ...problems.map((problem) => ({ problem }))], hide }
  }

  /** The contributions of the services to the shared listeners. Whoever calls this is made again only for what it reads of them. */
  #sharesOf(key: ViewKey, proxy: ProxyClass): ViewShares {
    let kept: ViewShares | undefined
    return this.#making.derived(`shares of ${unpatchedId(key, proxy)}`, () => {
      kept ??= new ViewShares(this.#making.record)
      kept.update(this.#sharedInputs(key, proxy))
      return kept
    })
  }

  /** A shared listener before patches. When patches apply, it is made once for all patch sets. */
  #unpatched(name: string, shares: ViewShares, key: ViewKey, proxy: ProxyClass): Made {
    const make = () => {
      const inputs = this.#sharedInputs(key, proxy)
      return outboundListeners(inputs, shares.choice(name, inputs))
    }
    if (proxy.traits.filtersOf.listeners.filters.length === 0) return make()
    return this.#making.derived<Unpatched>(`listener ${name} of ${unpatchedId(key, proxy)}`, () => unpatchedListeners(make()), sameListeners)
  }

  /** Makes listeners with patches applied, and those that patches add, unless these are some of the listeners. */
  #listeners({ traits }: ProxyClass, make: () => Made, areSome = false): Outcome[] {
    return patched(traits, outbound, (context) => {
      const { listeners, conflicts, problems } = make()
      return [
        ...makeListeners(listeners, context, areSome ? [] : addedListeners(context)),
        ...conflicts.map((conflict) => ({ conflict })),
        ...problems.map((problem) => ({ problem })),
      ]
    })
  }
}

const outbound = 'SIDECAR_OUTBOUND'

type Made = Pick<Unpatched, 'listeners' | 'conflicts' | 'problems'>

const unpatchedId = ({ id }: ViewKey, { traits }: ProxyClass): string => `${id}|${traits.listenerShape}`

/** Makes listeners with patches applied, and the listeners that patches add unless their names are taken. */
export function makeListeners(
  drafts: readonly Draft<Listener>[],
  context: PatchContext,
  added = addedListeners(context),
  taken: Iterable<string> = [],
): Outcome[] {
  return withAdded(makeAll(ListenerSchema, 'lds', drafts, listenerPatcher(context)), ListenerSchema, 'lds', added, taken)
}
