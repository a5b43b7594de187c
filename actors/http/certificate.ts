/** The certificate of a TLS server: read from files, checked, and put in force. */
import { constants, createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContextOptions, type Server } from 'node:tls'
import type { CertificateFiles, NamedFile, ServingCertificate } from '../../protocols/messages/certificates.ts'
import { certificatesOf } from '../../src/identity/pem.ts'
import { FileError, readBoundedFile } from '../runtime/bounded-file.ts'

/**
 * Common settings of TLS servers: minimum version, handshake timeout in milliseconds, and no session resumption. Every connection makes a
 * full handshake, in which the client certificate is verified with the trust of that time (docs/identity.md, T4). Without tickets and
 * without a session listener, Node resumes sessions of neither TLS version.
 */
export const tlsDefaults = {
  minVersion: 'TLSv1.2',
  handshakeTimeout: 10_000,
  secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
} as const

/** The content of the files of a serving certificate. */
export interface CertificateContent extends ServingCertificate {
  /** CA certificates for client certificates, PEM; undefined where no such file is named. */
  readonly ca: string | undefined
}

/**
 * Reads a serving certificate. Rejects with an Error that names the flag and the file when a file cannot be read, is invalid, or does not
 * match the other one.
 */
export async function readCertificate(files: CertificateFiles): Promise<CertificateContent> {
  const [cert, key, ca] = await Promise.all([read(files.cert), read(files.key), files.ca && read(files.ca)])
  const [leaf] = within(files.cert, () => certificatesOf(cert)) as [X509Certificate]
  const privateKey = within(files.key, () => createPrivateKey(key))
  if (ca !== undefined) within(files.ca as NamedFile, () => certificatesOf(ca))
  if (!leaf.checkPrivateKey(privateKey)) throw new Error(`${named(files.key)}: is not the key of the certificate in ${files.cert.path}`)
  const certificate = { cert, key }
  // Finds remaining reasons for which TLS refuses the pair, such as a key that is too short.
  within(files.cert, () => createSecureContext(contextOf(certificate, '')))
  return { ...certificate, ca }
}

/** Why clients refuse a certificate at the Unix time `now` in milliseconds; undefined when it is valid then. */
export function validityFault({ cert }: ServingCertificate, now: number): string | undefined {
  const { validFromDate, validToDate } = new X509Certificate(cert)
  if (now < validFromDate.getTime()) return `the certificate is not valid before ${validFromDate.toISOString()}`
  return now > validToDate.getTime() ? `the certificate has expired on ${validToDate.toISOString()}` : undefined
}

/** Makes a server use a certificate for new connections, and verify client certificates with `clientRoots` (PEM; empty for none). */
export function serveWith(server: Pick<Server, 'setSecureContext'>, certificate: ServingCertificate, clientRoots = ''): void {
  server.setSecureContext(contextOf(certificate, clientRoots))
}

/** `ca` is an empty list when there are no roots: without it, Node would use its default roots. */
function contextOf({ cert, key }: ServingCertificate, clientRoots: string): SecureContextOptions {
  const { minVersion, secureOptions } = tlsDefaults
  return { cert, key, ca: clientRoots === '' ? [] : clientRoots, minVersion, secureOptions }
}

const named = ({ flag, path }: NamedFile): string => `--${flag} ${path}`

async function read(file: NamedFile): Promise<string> {
  try {
    return await readBoundedFile(file.path)
  } catch (error) {
    throw failure(file, error)
  }
}

function within<T>(file: NamedFile, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw failure(file, error)
  }
}

const failure = ({ flag, path }: NamedFile, error: unknown): Error => new Error(`--${flag} ${FileError.of(path, error).message}`)
