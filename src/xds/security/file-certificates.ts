/** Certificates in files of a proxy's, in TLS contexts (docs/resources.md, G7). */
import { fetchMs } from './credentials.ts'
import { agentSecret, type Certificates } from './mutual-tls.ts'

/** What is asked of the other side's certificate besides who signed it. */
interface PeerChecks {
  readonly matchTypedSubjectAltNames: { sanType: number; matcher: { matchPattern: { case: 'exact'; value: string } } }[]
  readonly verifyCertificateHash?: string[]
  readonly verifyCertificateSpki?: string[]
}

/** Files that a TLS context names. */
interface NamedFiles {
  readonly pairs: readonly { readonly chain: string; readonly key: string }[]
  /** Authorities of the other side; undefined where its certificate is not checked. */
  readonly authorities: string | undefined
  readonly checks: PeerChecks
}

/**
 * Own certificates and authorities. An agent reads the files and serves them: then one that is missing costs what needs it, and a new one counts at once. Envoy itself refuses
 * the whole listener or cluster for a missing file.
 */
export function fileCertificates({ pairs, authorities, checks }: NamedFiles, { agent }: Certificates) {
  const files = [...pairs.flatMap(({ chain, key }) => [chain, key]), ...(authorities === undefined ? [] : [authorities])]
  if (agent && files.every(isServed)) {
    return {
      tlsCertificateSdsSecretConfigs: pairs.map(({ chain, key }) => agentSecret(`file-cert:${chain}~${key}`, fetchMs)),
      ...(authorities === undefined
        ? {}
        : {
            validationContextType: {
              case: 'combinedValidationContext' as const,
              value: { defaultValidationContext: checks, validationContextSdsSecretConfig: agentSecret(`file-root:${authorities}`, fetchMs) },
            },
          }),
    }
  }
  const file = (filename: string) => ({ specifier: { case: 'filename' as const, value: filename } })
  return {
    tlsCertificates: pairs.map(({ chain, key }) => ({ certificateChain: file(chain), privateKey: file(key) })),
    ...(authorities === undefined
      ? {}
      : { validationContextType: { case: 'validationContext' as const, value: { trustedCa: file(authorities), ...checks } } }),
  }
}

/** Whether agents serve a file by its path (docs/certificates.md, S7). */
const isServed = (path: string): boolean => path.startsWith('/') && !path.includes('~') && !path.includes('\0')
