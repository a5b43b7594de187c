/**
 * Reads Secrets for gateways from documents in the orchestrator's form (`v1`, kind `Secret`; docs/resources.md, K3 to K5). Faults name the
 * field and the reason, and never contain any part of a value.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { GatewaySecret, SecretMaterial, Validity } from '../../protocols/messages/secrets.ts'
import { count } from '../model/counts.ts'
import { isObjectName } from '../names/object-names.ts'
import { isMapping, type Report } from './shape.ts'

/** The maximum size of all values of a Secret in bytes, as in the orchestrator. */
const secretBytes = 1_048_576
/** The maximum size of a private key in PEM in bytes. The longest kind takes 7,000. */
const keyBytes = 65_536
/** The maximum number of certificates in one value. */
const maxCertificates = 1000
/** The lengths of RSA keys in bits that Envoy accepts for its own certificates. */
const rsaBits = { least: 2048, most: 8192 }
/** The curves of ECDSA keys that Envoy accepts. */
const curves: ReadonlySet<string | undefined> = new Set(['prime256v1', 'secp384r1', 'secp521r1'])

const pairKeys = [
  ['cert', 'key'],
  ['tls.crt', 'tls.key'],
] as const
const authorityKeys = ['cacert', 'ca.crt'] as const
const usedKeys = [...pairKeys.flat(), ...authorityKeys]
const tlsType = 'kubernetes.io/tls'
const types: ReadonlySet<string> = new Set([tlsType, 'Opaque'])

type Mapping = Readonly<Record<string, unknown>>
interface Metadata {
  readonly namespace: string
  readonly name: string
  readonly place: string
}
/** The parts of the work: whoever runs it may do something else between them. */
type Steps<Result> = Generator<void, Result, void>

/**
 * Reads the Secret of a document whose metadata has been read. Undefined when there are faults, which are added to the report, and for a
 * Secret that gateways do not use: one of another type, or without any of their keys.
 */
export function readSecret(document: Mapping, metadata: Metadata, report: Report): GatewaySecret | undefined {
  const steps = secretSteps(document, metadata, report)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** The length of the values of a Secret that gateways use, as they are written. */
export function secretLength({ data, stringData }: Mapping): number {
  let length = 0
  for (const given of [data, stringData])
    for (const key of isMapping(given) ? usedKeys : []) {
      const value = (given as Mapping)[key]
      if (typeof value === 'string') length += value.length
    }
  return length
}

/** The keys with a value that gateways read in a Secret, without looking at values; none of a Secret of a type that they do not read (docs/resources.md, K3). */
export function keysOfSecret(document: Mapping): readonly string[] {
  if (!types.has(typeOf(document) as string)) return []
  const hasValue = (given: unknown, key: string) => isMapping(given) && typeof given[key] === 'string' && given[key] !== ''
  return usedKeys.filter((key) => hasValue(document.data, key) || hasValue(document.stringData, key))
}

/** Whether a Secret with these keys has a certificate with its key, and whether it has authorities. */
export const hasPair = (keys: readonly string[]): boolean => pairKeys.some((pair) => pair.every((key) => keys.includes(key)))
export const hasAuthorities = (keys: readonly string[]): boolean => authorityKeys.some((key) => keys.includes(key))

/** The type of a Secret; one without is `Opaque`. */
const typeOf = ({ type }: Mapping): unknown => (type === undefined || type === null || type === '' ? 'Opaque' : type)

/** Does what {@link readSecret} does, in steps of which each takes a certificate, or a value. */
export function* secretSteps(document: Mapping, metadata: Metadata, report: Report): Steps<GatewaySecret | undefined> {
  const type = typeOf(document)
  if (typeof type !== 'string' || !types.has(type)) return undefined
  const before = report.faults.length
  const values = yield* readValues(document, report)
  const authorities = authorityKeys.map((key) => values.get(key)).find((value) => value !== undefined && value.bytes.length > 0)
  const given = pairKeys.find((keys) => keys.some((key) => values.has(key)))
  if (report.faults.length > before) return undefined
  if (type === tlsType && !given) refuse(report, 'data', `${tlsType} needs tls.crt and tls.key`)
  const pair = given && (yield* readPair(values, given, report))
  const checked = authorities && (yield* readCertificates(authorities, report))
  if (report.faults.length > before || (!pair && !checked)) return undefined
  const serviceAccounts = readAccounts(document, pair !== undefined, report)
  const material: SecretMaterial = { pair: pair && { chain: pair.chain, key: pair.key }, authorities: checked?.bytes }
  return { kind: 'Secret', ...metadata, type, serviceAccounts, material, validity: { pair: pair?.validity, authorities: checked?.validity } }
}

/** The name of the annotation that names the service accounts whose gateways get a Secret (docs/resources.md, K7). */
export const accountsAnnotation = (domain: string): string => `security.${domain}/service-accounts`

/**
 * Reads the annotation that names service accounts: their names, separated by commas. A value that cannot be read names nobody and is a
 * warning, since with a fault the Secret would keep its last good state, and with it its readers. So is a private key without an annotation.
 */
function readAccounts({ metadata }: Readonly<Record<string, unknown>>, hasKey: boolean, report: Report): readonly string[] | undefined {
  const annotation = accountsAnnotation(report.names?.domain ?? '')
  const path = `metadata.annotations[${annotation}]`
  const given = isMapping(metadata) ? metadata.annotations : undefined
  const annotations: Readonly<Record<string, unknown>> = isMapping(given) ? given : {}
  const name = Object.keys(annotations).find((key) => key === annotation) ?? aliasOf(annotation, annotations, report)
  const value = name === undefined ? undefined : annotations[name]
  if (value === undefined) {
    const isForAll = !hasKey || report.optOuts?.has('secret-accounts')
    if (!isForAll)
      report.warnings.push({ path, reason: 'required, but missing: it names the service accounts whose gateways get the Secret, and nobody gets it' })
    return undefined
  }
  const accounts = typeof value === 'string' ? value.split(',').map((account) => account.trim()) : []
  const wrong = accounts.find((account) => !isObjectName(account))
  if (accounts.length > 0 && wrong === undefined) return accounts
  const reason = wrong === undefined ? 'expected text' : `${JSON.stringify(wrong.slice(0, 100))} is not the name of a service account`
  report.warnings.push({ path, reason: `${reason}; expected names separated by commas, and nobody gets the Secret` })
  return []
}

const aliasOf = (annotation: string, annotations: Readonly<Record<string, unknown>>, { names }: Report): string | undefined =>
  Object.keys(annotations).find((key) => names?.canonicalKey(key) === annotation)

interface Value {
  /** The path in the document. */
  readonly path: string
  readonly bytes: Buffer
}

/** Reads the values that gateways use. A value in `stringData` has precedence over one in `data`. */
function* readValues(document: Mapping, report: Report): Steps<Map<string, Value>> {
  const values = new Map<string, Value>()
  for (const field of ['data', 'stringData'] as const) {
    const given = document[field]
    if (given === undefined || given === null) continue
    if (!isMapping(given)) {
      refuse(report, field, 'expected a mapping')
      continue
    }
    for (const key of usedKeys) {
      const value = given[key]
      if (value === undefined || value === null) continue
      const path = `${field}.${key}`
      const bytes = typeof value === 'string' ? decode(value, field === 'data') : undefined
      if (bytes) values.set(key, { path, bytes })
      else refuse(report, path, typeof value === 'string' ? 'not base64' : 'expected text')
      yield
    }
  }
  let bytes = 0
  for (const value of values.values()) bytes += value.bytes.length
  if (bytes <= secretBytes) return values
  refuse(report, 'data', `more than ${secretBytes} bytes`)
  return new Map()
}

const decode = (value: string, isBase64: boolean): Buffer | undefined => {
  if (!isBase64) return Buffer.from(value)
  // White space is removed first, because a pattern that allows it in two places takes quadratic time.
  const packed = /\s/.test(value) ? value.replace(/\s/g, '') : value
  return /^[A-Za-z0-9+/]*={0,2}$/.test(packed) ? Buffer.from(packed, 'base64') : undefined
}

interface ReadPair {
  readonly chain: Uint8Array
  readonly key: Uint8Array
  readonly validity: Validity
}

function* readPair(values: ReadonlyMap<string, Value>, [certName, keyName]: readonly [string, string], report: Report): Steps<ReadPair | undefined> {
  const [cert, key] = [values.get(certName), values.get(keyName)]
  if (!cert) return refuse(report, `data.${certName}`, `required beside ${keyName}, but missing`)
  if (!key) return refuse(report, `data.${keyName}`, `required beside ${certName}, but missing`)
  const chain = yield* readCertificates(cert, report)
  const block = readKey(key, report)
  if (!chain || !block) return undefined
  if (!chain.first.checkPrivateKey(block.key)) return refuse(report, key.path, `not the key of the first certificate of ${certName}`)
  return { chain: chain.bytes, key: block.bytes, validity: chain.validity }
}

interface ReadCertificates {
  readonly first: X509Certificate
  readonly bytes: Uint8Array
  readonly validity: Validity
}

function* readCertificates({ path, bytes }: Value, report: Report): Steps<ReadCertificates | undefined> {
  const blocks = pemBlocks(bytes.toString('latin1'))
  if (blocks === undefined) return refuse(report, path, 'ends within a block of PEM')
  const found = blocks.filter(({ label }) => label === 'CERTIFICATE')
  if (found.length > maxCertificates) return refuse(report, path, `more than ${maxCertificates} certificates`)
  let first: X509Certificate | undefined
  let [notBefore, notAfter] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (const [index, { text }] of found.entries()) {
    yield
    const certificate = attempt(() => new X509Certificate(text))
    if (!certificate) return refuse(report, path, `certificate ${index + 1} cannot be read`)
    first ??= certificate
    notBefore = Math.max(notBefore, certificate.validFromDate.getTime())
    notAfter = Math.min(notAfter, certificate.validToDate.getTime())
  }
  if (!first) return refuse(report, path, bytes.length === 0 ? 'is empty' : 'holds no certificate in PEM')
  // Only the certificates are kept. Other text in the value is for human readers.
  return { first, bytes: ownBytes(`${found.map(({ text }) => text).join('\n')}\n`), validity: { notBefore, notAfter } }
}

function readKey({ path, bytes }: Value, report: Report): { key: KeyObject; bytes: Uint8Array } | undefined {
  if (bytes.length > keyBytes) return refuse(report, path, `more than ${keyBytes} bytes`)
  const blocks = pemBlocks(bytes.toString('latin1'))
  if (blocks === undefined) return refuse(report, path, 'ends within a block of PEM')
  const found = blocks.filter(({ label }) => label.endsWith('PRIVATE KEY'))
  if (found.length !== 1)
    return refuse(report, path, bytes.length === 0 ? 'is empty' : `holds ${found.length === 0 ? 'no private key' : 'several private keys'} in PEM`)
  const text = found[0]?.text ?? ''
  if (found[0]?.label === 'ENCRYPTED PRIVATE KEY' || text.includes('\nProc-Type:'))
    return refuse(report, path, 'the key is encrypted: there is no password for it')
  const key = attempt(() => createPrivateKey(text))
  if (!key) return refuse(report, path, 'the key cannot be read')
  const reason = keyFault(key)
  return reason === undefined ? { key, bytes: ownBytes(`${text}\n`) } : refuse(report, path, reason)
}

/** Returns why Envoy does not accept a key. Undefined when it does. */
function keyFault({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): string | undefined {
  if (asymmetricKeyType === 'rsa') {
    const bits = asymmetricKeyDetails.modulusLength ?? 0
    return bits >= rsaBits.least && bits <= rsaBits.most
      ? undefined
      : `an RSA key of ${count(bits, 'bit')}: it must have ${rsaBits.least} to ${rsaBits.most}`
  }
  if (asymmetricKeyType !== 'ec') return 'the key is neither RSA nor ECDSA'
  return curves.has(asymmetricKeyDetails.namedCurve) ? undefined : 'the curve of the ECDSA key is none of P-256, P-384 and P-521'
}

/** Returns the blocks of a PEM text (RFC 7468) in order. Undefined when a block has no end. */
function pemBlocks(text: string): { readonly label: string; readonly text: string }[] | undefined {
  const blocks: { label: string; text: string }[] = []
  const begin = '-----BEGIN '
  for (let at = text.indexOf(begin); at >= 0; ) {
    const labelEnd = text.indexOf('-----', at + begin.length)
    if (labelEnd < 0) return undefined
    const label = text.slice(at + begin.length, labelEnd)
    const mark = `-----END ${label}-----`
    const end = text.indexOf(mark, labelEnd)
    if (end < 0) return undefined
    blocks.push({ label, text: text.slice(at, end + mark.length) })
    at = text.indexOf(begin, end + mark.length)
  }
  return blocks
}

/** Converts text to bytes in a buffer of their own, because a message to another thread copies the whole underlying buffer. */
function ownBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  Buffer.from(bytes.buffer).write(text, 'latin1')
  return bytes
}

function refuse(report: Report, path: string, reason: string): undefined {
  report.faults.push({ path, reason })
}

const attempt = <T>(make: () => T): T | undefined => {
  try {
    return make()
  } catch {
    return undefined
  }
}
