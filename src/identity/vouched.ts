/**
 * The cluster that vouches for the identity in a workload certificate, where it is another than that of the authority (docs/identity.md, I10):
 * an extension that is not critical, whose value is the id of the cluster as a UTF8String.
 */

/** The object identifier of the extension, 2.25.126351604072143503925060775621649256083, in DER. Identifiers below 2.25 are those of UUIDs. */
export const vouchedExtension = Buffer.from('06146981be8eb7c387b4eaa8bf9cb79fa5a8d8f19d13', 'hex')

const tags = { utf8String: 0x0c, octetString: 0x04, extensions: 0xa3 }

/**
 * Returns the id of the cluster that a certificate in DER names; undefined: it names none. Throws an Error when the extension cannot be read,
 * or is there twice: such a certificate is not one of the authority.
 */
export function vouchingCluster(certificate: Buffer): string | undefined {
  const [body = nothing] = valuesIn(valuesIn(certificate)[0]?.content ?? none)
  const [list = nothing] = valuesIn(valuesIn(body.content).find(({ tag }) => tag === tags.extensions)?.content ?? none)
  const found = valuesIn(list.content).flatMap(({ content }) => {
    const [name = nothing, ...others] = valuesIn(content)
    return name.whole.equals(vouchedExtension) ? [others.at(-1) ?? nothing] : []
  })
  if (found.length === 0) return undefined
  const [text = nothing] = valuesIn(found[0]?.content ?? none)
  if (found.length > 1 || found[0]?.tag !== tags.octetString || text.tag !== tags.utf8String || text.content.length === 0)
    throw new Error('the certificate does not say well which cluster vouches for it')
  return text.content.toString('utf8')
}

/** An encoded value: views into the bytes that were read. */
interface Value {
  readonly tag: number
  readonly content: Buffer
  readonly whole: Buffer
}

const none = Buffer.alloc(0)
const nothing: Value = { tag: 0, content: none, whole: none }

/** The values of a structure in their order. Throws an Error for bytes that are none. */
function valuesIn(bytes: Buffer): Value[] {
  const values: Value[] = []
  for (let at = 0; at < bytes.length; ) {
    const short = bytes[at + 1] ?? 0x80
    const digits = short < 0x80 ? 0 : short - 0x80
    const start = at + 2 + digits
    if (short === 0x80 || digits > 4 || start > bytes.length) throw new Error('a length in the certificate cannot be read')
    const end = start + (digits === 0 ? short : bytes.readUIntBE(at + 2, digits))
    if (end > bytes.length) throw new Error('a value in the certificate is longer than what it is in')
    values.push({ tag: bytes[at] as number, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) })
    at = end
  }
  return values
}
