/**
 * Decodes the fields of `envoy.config.core.v3.Node` that are used. Loading the generated schema would take a writer longer than loading all
 * its other modules.
 */
import type { RawNode } from '../../model/proxy.ts'
import { readStruct, readText } from '../slab/struct.ts'
import { MalformedMessage, scanFields, WireError } from '../slab/wire.ts'

/** The maximum size in bytes of a node without its list of extensions. */
const limits = { bytes: 65_536 }

/** The fields of a node that are decoded. Of the list of extensions, the longest part of what Envoy sends, only {@link hasExtension} reads. */
const nodeFields = new Map([
  [1, 'id'],
  [3, 'metadata'],
  [4, 'locality'],
  [6, 'user_agent_name'],
  [8, 'user_agent_build_version'],
])

/** Decodes a node. Throws {@link WireError}, also for a node that is too large. */
export function readNodeBytes(bytes: Buffer): RawNode {
  const fields = new Map<number, Buffer[]>()
  let length = 0
  for (const { field, bytes: content, start, end } of scanFields(bytes)) {
    const name = nodeFields.get(field)
    if (name === undefined) continue
    length += end - start
    if (length > limits.bytes) throw new WireError(`node: ${name} makes it larger than ${limits.bytes} bytes (extensions are not counted)`)
    if (!content) throw new MalformedMessage(`node: ${name} is no message`)
    // Parts of a message field are merged; of a string field the last one is used.
    const parts = name === 'id' || name === 'user_agent_name' ? undefined : fields.get(field)
    if (parts) parts.push(content)
    else fields.set(field, [content])
  }
  const whole = (parts: Buffer[] | undefined) => (parts?.length === 1 ? parts[0] : parts && Buffer.concat(parts))
  const [id, metadata, locality, agent, version] = [1, 3, 4, 6, 8].map((field) => whole(fields.get(field)))
  const readsMysql = hasExtension(bytes, mysqlFilter)
  return {
    id: id ? text(id) : '',
    metadata: metadata ? readStruct(metadata, 'node: metadata') : {},
    locality: locality ? readLocality(locality) : undefined,
    agent: { name: agent ? text(agent) : '', version: version ? readVersion(version) : [0, 0] },
    ...(readsMysql && { readsMysql }),
  }
}

/** The network filter for MySQL, which only contrib builds of Envoy have. */
const mysqlFilter = Buffer.from('envoy.filters.network.mysql_proxy')

/** The fields of `envoy.config.core.v3.Extension` that are used. */
const extensionFields = { name: 1, disabled: 5 }

/** Whether the list of extensions of a node has one that is not disabled. The list, of hundreds, is decoded only where its bytes have the name. */
function hasExtension(node: Buffer, wanted: Buffer): boolean {
  if (!node.includes(wanted)) return false
  for (const { field, bytes: extension } of scanFields(node)) {
    if (field !== 9 || !extension?.includes(wanted)) continue
    let [isWanted, isDisabled] = [false, false]
    for (const part of scanFields(extension))
      if (part.field === extensionFields.name) isWanted = part.bytes?.equals(wanted) ?? false
      else if (part.field === extensionFields.disabled) isDisabled = !part.bytes && part.value !== 0
    if (isWanted && !isDisabled) return true
  }
  return false
}

const text = (bytes: Buffer): string => readText(bytes, 'node')

function readLocality(bytes: Buffer): { region: string; zone: string; subZone: string } {
  const parts = ['', '', '']
  for (const { field, bytes: part } of scanFields(bytes)) if (field >= 1 && field <= 3 && part) parts[field - 1] = text(part)
  const [region, zone, subZone] = parts as [string, string, string]
  return { region, zone, subZone }
}

/** Decodes major and minor number of `envoy.config.core.v3.BuildVersion`. */
function readVersion(bytes: Buffer): readonly [number, number] {
  const numbers: [number, number] = [0, 0]
  for (const { field, bytes: version } of scanFields(bytes)) {
    if (field !== 1 || !version) continue
    for (const part of scanFields(version)) if ((part.field === 1 || part.field === 2) && !part.bytes) numbers[part.field - 1] = part.value
  }
  return numbers
}
