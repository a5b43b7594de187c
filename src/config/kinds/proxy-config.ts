/** ProxyConfig: settings of the proxies in a namespace. */
import { anything, map, type Read } from '../shape.ts'
import type { Kind } from './kind.ts'

const spec = map(anything)

/** The kind ProxyConfig. */
export const proxyConfig = {
  name: 'ProxyConfig',
  plural: 'proxyconfigs',
  group: 'networking',
  versions: ['v1beta1'],
  spec,
  scope: 'namespace or mesh',
  selects: undefined,
  without: 'proxies are configured by the mesh configuration, and by annotations and variables of their agent',
} satisfies Kind<'ProxyConfig', Read<typeof spec>>
