/** Groups of outbound listeners of sidecars: shared ones, and those that differ for a namespace or a caller. */

import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { publicViewLike, type ViewKey } from '../../snapshot/view.ts'
import { hostsForCaller } from '../../snapshot/visibility.ts'
import { type Draft, makeAll, type Outcome } from '../../xds/draft.ts'
import { addedListeners, listenerPatcher } from '../../xds/envoy-filter/listeners.ts'
import type { PatchContext } from '../../xds/envoy-filter/patches.ts'
import { type ListenerChoice, ListenerShares, type OutboundInputs, outboundListeners } from '../../xds/listeners/outbound.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { listenerType } from '../../xds/type-urls.ts'
import { type GroupSpec, type Making, patched, withAdded } from './making.ts'
import { sameListeners, type Unpatched, unpatchedListeners } from './unpatched-listeners.ts'

/** Makes the groups of outbound listeners. */
export class ListenerGroups {
  readonly #making: Making

  constructor(making: Making) {
    this.#making = making
  }

  /** The groups of a class. */
  specs(proxy: ProxyClass): GroupSpec[] {
    const { traits, viewKey } = proxy
    const caller = JSON.stringify([proxy.sourceLabels, proxy.headless])
    const spec = { given: traits.filtersOf.listeners.filters, typeUrl: listenerType } as const
    const { difference } = this.#making.view(viewKey)
    if (!difference) {
      const build = () => ({ outcomes: this.#listeners(proxy, () => outboundListeners(this.#inputs(viewKey, proxy))) })
      return [{ ...spec, id: `listeners-out|${viewKey.id}|${traits.listenerKey}|${caller}`, build }]
    }
    const shared = publicViewLike(viewKey)
    const id = `listeners-out|${shared.id}|${traits.listenerKey}`
    const all: GroupSpec = { ...spec, id, build: () => ({ outcomes: this.#listeners(proxy, () => this.#unpatched(shared, proxy)) }) }
    const isAsAll = Object.keys(proxy.sourceLabels).length + proxy.headless.hosts.length === 0
    if (difference.services.length + difference.routed.length + this.#ruled(viewKey, shared).length === 0 && isAsAll) return [all]
    const own = `listeners-out|of ${proxy.namespace}|${viewKey.id}|${shared.id}|${traits.listenerKey}|${caller}`
    return [
      { ...spec, id: own, build: () => this.#differing(shared, proxy) },
      { ...all, hiddenBy: own },
    ]
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
  #differing(shared: ViewKey, proxy: ProxyClass) {
    const inputs = this.#inputs(proxy.viewKey, proxy)
    const { snapshot } = inputs
    const { services = [], routed = [] } = inputs.view.difference ?? {}
    const ruled = this.#ruled(proxy.viewKey, shared)
    const hosts = [...new Set([...services, ...routed, ...ruled, ...hostsForCaller(snapshot, proxy.sourceLabels), ...proxy.headless.hosts])]
    const { chosen, hide } = this.#sharesOf(shared, proxy).differing(hosts, inputs)
    return { outcomes: this.#listeners(proxy, () => outboundListeners(inputs, chosen), chosen), hide }
  }

  /** The contributions of the services to the shared listeners. */
  #sharesOf(key: ViewKey, proxy: ProxyClass): ListenerShares {
    return this.#making.derived(`shares of ${unpatchedId(key, proxy)}`, () => new ListenerShares(this.#sharedInputs(key, proxy)))
  }

  /** The shared listeners before patches. When patches apply, the unpatched listeners are made once for all patch sets. */
  #unpatched(key: ViewKey, proxy: ProxyClass): Made {
    if (proxy.traits.filtersOf.listeners.filters.length === 0) return outboundListeners(this.#sharedInputs(key, proxy))
    const id = `listeners of ${unpatchedId(key, proxy)}`
    return this.#making.derived<Unpatched>(id, () => unpatchedListeners(this.#sharedInputs(key, proxy)), sameListeners)
  }

  /** Makes listeners with patches applied, and those that patches add. With `chosen`, none are added. */
  #listeners({ traits }: ProxyClass, make: () => Made, chosen?: ListenerChoice): Outcome[] {
    return patched(traits, 'SIDECAR_OUTBOUND', (context) => {
      const { listeners, conflicts, problems } = make()
      return [
        ...makeListeners(listeners, context, chosen ? [] : addedListeners(context)),
        ...conflicts.map((conflict) => ({ conflict })),
        ...problems.map((problem) => ({ problem })),
      ]
    })
  }
}

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
