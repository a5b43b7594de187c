/** TLS termination at gateways and sidecars. */
import { canonicalTlsMode } from '../../names/mesh-names.ts'
import { flag, list, oneOf, record, rejectBeside, type Shape, text, unused } from '../shape.ts'

/** The name of a Secret, `<name>` or `<namespace>/<name>`, with an optional prefix `kubernetes://` (docs/resources.md, K1). */
export const credentialName = text({
  max: 530,
  pattern: /^(kubernetes:\/\/)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/,
  what: 'the name of a Secret',
  examples: ['site', 'shop/site', 'kubernetes://site'],
})

/** One of these TLS modes, by its name or alias name. */
export function tlsMode<const T extends string>(...names: T[]): Shape<T> {
  const modes = oneOf(...names)
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
    minProtocolVersion: oneOf('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'),
    maxProtocolVersion: oneOf('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'),
    cipherSuites: list(text()),
  },
  (value, path, report) => rejectBeside(value, ['credentialName', 'credentialNames', 'tlsCertificates', 'serverCertificate'], path, report),
)
