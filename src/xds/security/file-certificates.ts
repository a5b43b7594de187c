/** Certificates from files on the proxy's machine, in TLS contexts (docs/resources.md, G7). */
import { fetchMs } from './credentials.ts'
import { agentSecret, type Certificates } from './mutual-tls.ts'

/** Requirements for the peer's certificate besides its issuer. */
interface PeerChecks {
  readonly matchTypedSubjectAltNames: { sanType: number; matcher: { matchPattern: { case: 'exact'; value: string } } }[]
  readonly verifyCertificateHash?: string[]
  readonly verifyCertificateSpki?: string[]
}

/** The files of a TLS context. */
interface NamedFiles {
  readonly pairs: readonly { readonly chain: string; readonly key: string }[]
  /** The file with the certificate authorities of the peer; undefined if its certificate is not verified. */
  readonly authorities: string | undefined
  /** The file with the revocation lists of the authorities; undefined if none are used. */
  readonly revocations: string | undefined
  readonly checks: PeerChecks
}

/**
 * Returns the certificates of a TLS context. If the proxy has an agent, the agent reads the files and serves them: a missing file then
 * affects only its users, and a changed file is used at once. Envoy itself refuses the whole listener or cluster if a file is missing.
 */
export function fileCertificates({ pairs, authorities, revocations, checks }: NamedFiles, { agent }: Certificates) {
  const peers = authorities === undefined ? [] : [authorities, ...(revocations === undefined ? [] : [revocations])]
  const files = [...pairs.flatMap(({ chain, key }) => [chain, key]), ...peers]
  if (agent && files.every(isServed)) {
    return {
      tlsCertificateSdsSecretConfigs: pairs.map(({ chain, key }) => agentSecret(`file-cert:${chain}~${key}`, fetchMs)),
      ...(authorities === undefined
        ? {}
        : {
            validationContextType: {
              case: 'combinedValidationContext' as const,
              value: { defaultValidationContext: checks, validationContextSdsSecretConfig: agentSecret(`file-root:${peers.join('~')}`, fetchMs) },
            },
          }),
    }
  }
  const file = (filename: string) => ({ specifier: { case: 'filename' as const, value: filename } })
  return {
    tlsCertificates: pairs.map(({ chain, key }) => ({ certificateChain: file(chain), privateKey: file(key) })),
    ...(authorities === undefined
      ? {}
      : {
          validationContextType: {
            case: 'validationContext' as const,
            value: { trustedCa: file(authorities), ...(revocations === undefined ? {} : { crl: file(revocations) }), ...checks },
          },
        }),
  }
}

/** Whether agents serve a file by its path (docs/certificates.md, S7). */
const isServed = (path: string): boolean => path.startsWith('/') && !path.includes('~') && !path.includes('\0')
