/** The flags for the certificate of the secured port. */
import type { CertificateFiles } from '../../../protocols/messages/certificates.ts'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'

/** Returns the files that the flags name; undefined when there are none. Throws an Error that names the missing flag. */
export function certificateFiles(options: Pick<DiscoveryOptions, 'tlsCertFile' | 'tlsKeyFile' | 'caCertFile'>): CertificateFiles | undefined {
  const { tlsCertFile, tlsKeyFile, caCertFile } = options
  if (tlsCertFile === '' && tlsKeyFile === '') {
    if (caCertFile !== '') throw new Error('--caCertFile: needs --tlsCertFile and --tlsKeyFile')
    return undefined
  }
  if (tlsCertFile === '' || tlsKeyFile === '')
    throw new Error(`--${tlsCertFile === '' ? 'tlsCertFile' : 'tlsKeyFile'}: needed with the other of the two`)
  return {
    cert: { flag: 'tlsCertFile', path: tlsCertFile },
    key: { flag: 'tlsKeyFile', path: tlsKeyFile },
    ca: caCertFile === '' ? undefined : { flag: 'caCertFile', path: caCertFile },
  }
}
