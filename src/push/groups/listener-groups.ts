/** Groups of outbound listeners of sidecars: those that all share, and those in which a namespace or a caller differs. */

import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { publicViewLike, type ViewKey } from '../../snapshot/view.ts'
import { hostsForCaller } from '../../snapshot/visibility.ts'
import { type Draft, makeAll, type Outcome } from '../../xds/draft.ts'
import { addedListeners, listenerPatcher, type PatchContext } from '../../xds/envoy-filter/apply.ts'
import { type ListenerChoice, ListenerShares, type OutboundInputs, outboundListeners } from '../../xds/listeners/outbound.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { listenerType } from '../../xds/type-urls.ts'
import { type GroupSpec, type Making, patched } from './making.ts'

/** Maker of the groups of outbound listeners. */
export class ListenerGroups {
  readonly #making: Making

  constructor(making: Making) {
    this.#making = making
  }

  /** The groups of a class. */
  specs(proxy: ProxyClass): GroupSpec[] {
    const { traits, viewKey } = proxy
    const caller = JSON.stringify(proxy.sourceLabels)
    const spec = { given: traits.filtersOf.listeners.filters, typeUrl: listenerType } as const
    const { difference } = this.#making.view(viewKey)
    if (!difference) {
      const build = () => ({ outcomes: this.#listeners(this.#inputs(viewKey, proxy), proxy) })
      return [{ ...spec, id: `listeners-out|${viewKey.id}|${traits.listenerKey}|${caller}`, build }]
    }
    const shared = publicViewLike(viewKey)
    const id = `listeners-out|${shared.id}|${traits.listenerKey}`
    const all: GroupSpec = { ...spec, id, build: () => ({ outcomes: this.#listeners(this.#strangers(shared, proxy), proxy) }) }
    if (difference.services.length + difference.routed.length === 0 && caller === '{}') return [all]
    const own = `listeners-out|of ${proxy.namespace}|${viewKey.id}|${traits.listenerKey}|${caller}`
    return [
      { ...spec, id: own, build: () => this.#differing(id, shared, proxy) },
      { ...all, hiddenBy: own },
    ]
  }

  #inputs(key: ViewKey, { traits, sourceLabels, namespace }: Pick<ProxyClass, 'traits' | 'sourceLabels' | 'namespace'>): OutboundInputs {
    return { view: this.#making.view(key), snapshot: this.#making.snapshot, traits, sourceLabels, namespace }
  }

  #strangers(key: ViewKey, { traits }: ProxyClass): OutboundInputs {
    return this.#inputs(key, { traits, sourceLabels: {}, namespace: '' })
  }

  /** The listeners in which a namespace or a caller differs from what all share. */
  #differing(shared: string, sharedKey: ViewKey, proxy: ProxyClass) {
    const inputs = this.#inputs(proxy.viewKey, proxy)
    const { snapshot } = inputs
    const { services = [], routed = [] } = inputs.view.difference ?? {}
    const hosts = [...new Set([...services, ...routed, ...hostsForCaller(snapshot, proxy.sourceLabels)])]
    const { chosen, hide } = this.#sharesOf(shared, sharedKey, proxy).differing(hosts, inputs)
    return { outcomes: this.#listeners(inputs, proxy, chosen), hide }
  }

  /** What services bring to the listeners that all share. */
  #sharesOf(group: string, key: ViewKey, proxy: ProxyClass): ListenerShares {
    return this.#making.derived(`shares of ${group}`, () => new ListenerShares(this.#strangers(key, proxy)))
  }

  /** All listeners and those that patches add, or the chosen ones. */
  #listeners(inputs: OutboundInputs, { traits }: ProxyClass, chosen?: ListenerChoice): Outcome[] {
    return patched(traits, 'SIDECAR_OUTBOUND', (context) => {
      const { listeners, conflicts, problems } = outboundListeners(inputs, chosen)
      return [
        ...makeListeners(listeners, context, chosen ? [] : addedListeners(context)),
        ...conflicts.map((conflict) => ({ conflict })),
        ...problems.map((problem) => ({ problem })),
      ]
    })
  }
}

/** Listeners, changed as patches say; then those that patches add, changed by what is said of filters. */
export function makeListeners(drafts: readonly Draft<Listener>[], context: PatchContext, added = addedListeners(context)): Outcome[] {
  return [
    ...makeAll(ListenerSchema, 'lds', drafts, listenerPatcher(context)),
    ...makeAll(ListenerSchema, 'lds', added, listenerPatcher(context, false)),
  ]
}
