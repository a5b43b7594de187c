/** TLS termination at gateways and sidecars. */
import { suggestion } from '../../model/edit-distance.ts'
import { canonicalTlsMode, tlsModeNames } from '../../names/mesh-names.ts'
import { choice, flag, list, oneOf, type Report, record, rejectBeside, type Shape, text, unused } from '../shape.ts'

/** The name of a Secret, `<name>` or `<namespace>/<name>`, with an optional prefix `kubernetes://` (docs/resources.md, K1). */
export const credentialName = text({
  max: 530,
  pattern: /^(kubernetes:\/\/)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/,
  what: 'the name of a Secret',
  examples: ['site', 'shop/site', 'kubernetes://site'],
})

/** One of these TLS modes, by its name or alias name. */
export function tlsMode<const T extends string>(...names: T[]): Shape<T> {
  const modes = choice(
    names,
    names.flatMap((name) => tlsModeNames(name).slice(1)),
  )
  return { form: modes.form, read: (value, path, report) => modes.read(typeof value === 'string' ? canonicalTlsMode(value) : value, path, report) }
}

const hash = text({
  pattern: /^([0-9A-Fa-f]{64}|[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31})$/,
  what: 'a SHA-256 in hexadecimal',
  examples: ['ab'.repeat(32)],
})
const spki = text({ pattern: /^[A-Za-z0-9+/]{43}=$/, what: 'a SHA-256 in base64', examples: [`${'A'.repeat(43)}=`] })

/** Why `caCrl` has no effect where the certificate of the peer is not verified, or is verified with a Secret. */
export const needsAuthorities = 'has no effect: the certificate of the peer is not verified with a file caCertificates'

/** The cipher suites that a server can be told to accept: those of TLS 1.2 and older that Envoy knows. */
export const cipherSuites: ReadonlySet<string> = new Set(
  'ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-RSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-RSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-RSA-CHACHA20-POLY1305 ECDHE-ECDSA-AES128-SHA ECDHE-RSA-AES128-SHA ECDHE-ECDSA-AES256-SHA ECDHE-RSA-AES256-SHA AES128-GCM-SHA256 AES256-GCM-SHA384 AES128-SHA AES256-SHA'.split(
    ' ',
  ),
)

/** The versions of TLS, the oldest first. */
const tlsVersions = ['TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'] as const
type TlsVersion = 'TLS_AUTO' | (typeof tlsVersions)[number]

/** The number of cipher suites without effect that are told one by one. */
const mostSuites = 10

/** Warns of cipher suites and versions of TLS that no connection to a server can have (docs/resources.md, G6). */
export function tellParameters(
  { minProtocolVersion: min, maxProtocolVersion: max, cipherSuites: suites = [] }: TlsParameters,
  path: string,
  { warnings }: Report,
): void {
  const [oldest, newest] = [placeOf(min, 'TLSV1_2'), placeOf(max, 'TLSV1_3')]
  if (oldest > newest) {
    const [field, reason] =
      min && min !== 'TLS_AUTO'
        ? ['minProtocolVersion', `${min} is newer than maxProtocolVersion`]
        : ['maxProtocolVersion', `${max} is older than TLSV1_2, the oldest version that is accepted without minProtocolVersion`]
    warnings.push({ path: `${path}.${field}`, reason: `no client can connect: ${reason}` })
  }
  if (suites.length === 0) return
  const at = `${path}.cipherSuites`
  if (min === 'TLSV1_3') return void warnings.push({ path: at, reason: 'has no effect: the cipher suites of TLS 1.3 cannot be chosen' })
  const seen = new Set<string>()
  let told = 0
  for (const [index, suite] of suites.entries()) {
    if (told === mostSuites) break
    const reason = idleSuite(suite, seen.has(suite))
    seen.add(suite)
    if (reason === undefined) continue
    warnings.push({ path: `${at}[${index}]`, reason })
    told++
  }
  if (!suites.some((suite) => cipherSuites.has(suite)))
    warnings.push({ path: at, reason: 'none of these cipher suites is used, so all that Envoy has by default are accepted' })
}

interface TlsParameters {
  readonly minProtocolVersion?: TlsVersion
  readonly maxProtocolVersion?: TlsVersion
  readonly cipherSuites?: readonly string[]
}

const placeOf = (version: TlsVersion = 'TLS_AUTO', auto: TlsVersion): number =>
  tlsVersions.findIndex((each) => each === (version === 'TLS_AUTO' ? auto : version))

/** Returns why a cipher suite of a list has no effect; undefined if it has one. */
function idleSuite(suite: string, isRepeated: boolean): string | undefined {
  const written = JSON.stringify(suite.slice(0, 100))
  if (isRepeated) return `${written} is listed twice`
  if (cipherSuites.has(suite)) return undefined
  return /^TLS_(AES|CHACHA20)_/.test(suite)
    ? `${written} has no effect: the cipher suites of TLS 1.3 cannot be chosen`
    : `${written} is not a cipher suite that Envoy knows: left out${suite.length <= 64 ? suggestion(suite, cipherSuites) : ''}`
}

/** The settings by which a server terminates TLS. */
export const serverTls = record(
  {
    mode: tlsMode('PASSTHROUGH', 'SIMPLE', 'MUTUAL', 'AUTO_PASSTHROUGH', 'MESH_MUTUAL', 'OPTIONAL_MUTUAL'),
    httpsRedirect: flag,
    serverCertificate: text(),
    privateKey: text(),
    caCertificates: text(),
    credentialName,
    credentialNames: list(credentialName, { max: 2 }),
    caCertCredentialName: credentialName,
    tlsCertificates: list(record({ serverCertificate: text(), privateKey: text(), caCertificates: text() }), { max: 2 }),
    caCrl: text(),
    insecureSkipVerify: unused(flag, 'client certificates are always verified'),
    subjectAltNames: list(text()),
    verifyCertificateSpki: list(spki),
    verifyCertificateHash: list(hash),
    minProtocolVersion: oneOf('TLS_AUTO', ...tlsVersions),
    maxProtocolVersion: oneOf('TLS_AUTO', ...tlsVersions),
    cipherSuites: list(text()),
  },
  (value, path, report) => rejectBeside(value, ['credentialName', 'credentialNames', 'tlsCertificates', 'serverCertificate'], path, report),
)
