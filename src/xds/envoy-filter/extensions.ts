/** EXTENSION_CONFIG patches as resources (`envoy.config.core.v3.TypedExtensionConfig`), delivered by name. */
import { type TypedExtensionConfig, TypedExtensionConfigSchema } from '../../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import type { Draft } from '../draft.ts'
import { added, type PatchContext, patchesOf } from './patches.ts'

/** Returns the extension configurations of a proxy, whatever the context of their patches. */
export function extensionConfigs(context: PatchContext): Draft<TypedExtensionConfig>[] {
  return added(TypedExtensionConfigSchema, patchesOf(context, 'EXTENSION_CONFIG'), context)
}
