/** Groups of extension configurations that EnvoyFilters add: one for each set of filters. */
import { TypedExtensionConfigSchema } from '../../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import { makeAll } from '../../xds/draft.ts'
import { extensionConfigs } from '../../xds/envoy-filter/extensions.ts'
import type { ProxyClass, Traits } from '../../xds/traits.ts'
import { extensionConfigType } from '../../xds/type-urls.ts'
import { type Built, GroupMaker, patched } from './making.ts'

/** The extensions of a set of filters. */
class FilterExtensions extends GroupMaker {
  readonly #traits: Traits

  constructor(traits: Traits) {
    super({ id: `extensions|${traits.filterKey}`, typeUrl: extensionConfigType, given: traits.filters })
    this.#traits = traits
  }

  make(): Built {
    return { outcomes: patched(this.#traits, 'extensions', (context) => makeAll(TypedExtensionConfigSchema, 'ecds', extensionConfigs(context))) }
  }
}

/** The maker for a class; none without filters. */
export function filterExtensions({ traits }: ProxyClass): GroupMaker[] {
  return traits.filters.length === 0 ? [] : [new FilterExtensions(traits)]
}
