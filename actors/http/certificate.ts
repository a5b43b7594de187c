/** The certificate of a TLS server: read from files, checked before a server gets it, and put in force. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { createSecureContext, type SecureContextOptions, type Server } from 'node:tls'
import type { CertificateFiles, NamedFile, ServingCertificate } from '../../protocols/messages/certificates.ts'

/** Largest certificate file that is read, in bytes. */
const fileBytes = 1_048_576

/** What TLS servers have in common: oldest version, and how long a handshake may take in milliseconds. */
export const tlsDefaults = { minVersion: 'TLSv1.2', handshakeTimeout: 10_000 } as const

/**
 * Reads a serving certificate. Rejects with an Error that names the flag and the file when one cannot be read, is not what it
 * should be, or does not go with the other.
 */
export async function readCertificate(files: CertificateFiles): Promise<ServingCertificate> {
  const [cert, key, ca] = await Promise.all([read(files.cert), read(files.key), files.ca && read(files.ca)])
  const [leaf] = within(files.cert, () => certificatesOf(cert)) as [X509Certificate]
  const privateKey = within(files.key, () => createPrivateKey(key))
  if (ca !== undefined) within(files.ca as NamedFile, () => certificatesOf(ca))
  if (!leaf.checkPrivateKey(privateKey)) throw new Error(`${named(files.key)}: is not the key of the certificate in ${files.cert.path}`)
  const certificate = { cert, key, ca }
  // What TLS refuses all the same, a key that is too short, say.
  within(files.cert, () => createSecureContext(contextOf(certificate)))
  return certificate
}

/** Why clients refuse a certificate at the Unix time `now` in milliseconds; undefined when it is valid then. */
export function validityFault({ cert }: ServingCertificate, now: number): string | undefined {
  const { validFromDate, validToDate } = new X509Certificate(cert)
  if (now < validFromDate.getTime()) return `the certificate is not valid before ${validFromDate.toISOString()}`
  return now > validToDate.getTime() ? `the certificate has expired on ${validToDate.toISOString()}` : undefined
}

/** Has a server use a certificate for the connections that come from now on. Tickets of sessions from before are not taken any more. */
export function serveWith(server: Pick<Server, 'setSecureContext'>, certificate: ServingCertificate): void {
  server.setSecureContext(contextOf(certificate))
}

function contextOf({ cert, key, ca }: ServingCertificate): SecureContextOptions {
  return { cert, key, ...(ca === undefined ? {} : { ca }), minVersion: tlsDefaults.minVersion }
}

const named = ({ flag, path }: NamedFile): string => `--${flag} ${path}`

async function read(file: NamedFile): Promise<string> {
  try {
    const found = await stat(file.path)
    if (!found.isFile()) throw new Error('is not a file')
    if (found.size > fileBytes) throw new Error(`has more than ${fileBytes} bytes`)
    return await readFile(file.path, 'utf8')
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

const failure = (file: NamedFile, error: unknown): Error => new Error(`${named(file)}: ${(error as Error).message}`)

/** All certificates of a PEM text, of which there is at least one. Throws when one of them is cut off or garbled. */
function certificatesOf(text: string): X509Certificate[] {
  const begun = text.match(/^-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/gm)?.length ?? 0
  const blocks = text.match(/^-----BEGIN [A-Z0-9 ]*CERTIFICATE-----[^-]*-----END [A-Z0-9 ]*CERTIFICATE-----/gm) ?? []
  if (begun === 0) throw new Error('holds no certificate in PEM')
  if (blocks.length < begun) throw new Error('ends within a certificate')
  return blocks.map((block) => new X509Certificate(block))
}
