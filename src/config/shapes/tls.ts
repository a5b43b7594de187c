/** Termination of TLS, as gateways and sidecars do it. */
import { flag, list, oneOf, record, text } from '../shape.ts'

/** Name of a Secret, `<name>` or `<namespace>/<name>`, with or without `kubernetes://` before it (docs/resources.md, K1). */
export const credentialName = text({
  max: 530,
  pattern: /^(kubernetes:\/\/)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/,
  what: 'the name of a Secret',
  examples: ['site', 'shop/site', 'kubernetes://site'],
})

/** How a server terminates TLS. */
export const serverTls = record({
  mode: oneOf('PASSTHROUGH', 'SIMPLE', 'MUTUAL', 'AUTO_PASSTHROUGH', 'ISTIO_MUTUAL', 'OPTIONAL_MUTUAL'),
  httpsRedirect: flag,
  serverCertificate: text(),
  privateKey: text(),
  caCertificates: text(),
  credentialName,
  subjectAltNames: list(text()),
  verifyCertificateSpki: list(text()),
  verifyCertificateHash: list(text()),
  minProtocolVersion: oneOf('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'),
  maxProtocolVersion: oneOf('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'),
  cipherSuites: list(text()),
})
