/** Termination of TLS, as gateways and sidecars do it. */
import { flag, list, oneOf, record, text } from '../shape.ts'

/** How a server terminates TLS. */
export const serverTls = record({
  mode: oneOf('PASSTHROUGH', 'SIMPLE', 'MUTUAL', 'AUTO_PASSTHROUGH', 'ISTIO_MUTUAL', 'OPTIONAL_MUTUAL'),
  httpsRedirect: flag,
  serverCertificate: text(),
  privateKey: text(),
  caCertificates: text(),
  credentialName: text(),
  subjectAltNames: list(text()),
  verifyCertificateSpki: list(text()),
  verifyCertificateHash: list(text()),
  minProtocolVersion: oneOf('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'),
  maxProtocolVersion: oneOf('TLS_AUTO', 'TLSV1_0', 'TLSV1_1', 'TLSV1_2', 'TLSV1_3'),
  cipherSuites: list(text()),
})
