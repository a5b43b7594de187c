/** The image of the sidecar that the values of injection give (docs/injection.md, N5). */
import { isMapping } from '../config/shape.ts'

const at = (values: unknown, ...path: string[]): unknown => path.reduce<unknown>((value, key) => (isMapping(value) ? value[key] : undefined), values)

/** Returns `asked`, else `global.proxy.image`; a name alone is one of `global.hub` with `global.tag`. */
export function proxyImageOf(values: unknown, asked = ''): string {
  const global = at(values, 'global')
  const configured = at(global, 'proxy', 'image')
  const image = asked || (typeof configured === 'string' && configured !== '' ? configured : 'mesh/pilot-agent')
  const [hub, tag] = [at(global, 'hub'), at(global, 'tag')]
  if (image.includes('/') || typeof hub !== 'string' || hub === '') return image
  return tag === undefined || tag === '' || tag === null ? `${hub}/${image}` : `${hub}/${image}:${String(tag)}`
}
