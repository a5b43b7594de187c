/** The certificate files of the secured gRPC server. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { SecureServer } from '../../protocols/messages/config.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'

/** Certificate, key and the authorities of clients, as PEM. */
export type Certificates = Omit<SecureServer, 'host' | 'port'>

/**
 * Reads what the secured server needs; undefined when no certificate is given. Throws an Error that names the flag and the
 * file when one cannot be read, is not what it should be, or does not go with the other.
 */
export function readSecureServer(options: DiscoveryOptions): Certificates | undefined {
  const { tlsCertFile, tlsKeyFile, caCertFile } = options
  if (tlsCertFile === '' && tlsKeyFile === '') {
    if (caCertFile !== '') throw new Error('--caCertFile: needs --tlsCertFile and --tlsKeyFile')
    return undefined
  }
  if (tlsCertFile === '' || tlsKeyFile === '')
    throw new Error(`--${tlsCertFile === '' ? 'tlsCertFile' : 'tlsKeyFile'}: needed with the other of the two`)
  const cert = read('tlsCertFile', tlsCertFile)
  const key = read('tlsKeyFile', tlsKeyFile)
  const ca = caCertFile === '' ? undefined : read('caCertFile', caCertFile)
  const certificate = check('tlsCertFile', tlsCertFile, () => new X509Certificate(cert))
  const privateKey = check('tlsKeyFile', tlsKeyFile, () => createPrivateKey(key))
  if (ca !== undefined) check('caCertFile', caCertFile, () => new X509Certificate(ca))
  if (!certificate.checkPrivateKey(privateKey)) throw new Error(`--tlsKeyFile ${tlsKeyFile}: is not the key of the certificate in ${tlsCertFile}`)
  return { cert, key, ca }
}

const read = (flag: string, path: string): string => check(flag, path, () => readFileSync(path, 'utf8'))

function check<T>(flag: string, path: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new Error(`--${flag} ${path}: ${(error as Error).message}`)
  }
}
