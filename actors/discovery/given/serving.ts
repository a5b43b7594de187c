/** Decides where the serving certificate of the secured port comes from. */
import type { CertificateFiles, ServingCertificate } from '../../../protocols/messages/certificates.ts'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import type { Features } from '../../../src/config/features.ts'
import { controlPlaneHosts, isHost } from '../../../src/names/control-plane-hosts.ts'
import { validityFault } from '../../http/certificate.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { GivenAuthority } from './authority.ts'
import { certificateFiles } from './certificates.ts'
import type { Notice } from './exposure.ts'

/** The source of the serving certificate: files from flags, the process's own certificate authority, or none. */
export type GivenServing =
  | { readonly from: 'files'; readonly files: CertificateFiles }
  /** DNS names and addresses, in addition to the host of the mesh configuration's discovery address. */
  | { readonly from: 'authority'; readonly hosts: readonly string[] }
  | { readonly from: 'nowhere'; readonly why: string }

/** Names by which local clients reach this host. */
const loopback = ['localhost', '127.0.0.1', '::1']

/**
 * Decides where the certificate comes from (docs/identity.md, T11). Throws an Error that names the invalid flag or variable. `hasCluster`:
 * whether there is an orchestrator, whose signer can sign it.
 */
export function givenServing(options: DiscoveryOptions, features: Features, authority: GivenAuthority, hasCluster: boolean): GivenServing {
  const files = certificateFiles(options)
  if (files) return { from: 'files', files }
  const { PILOT_CERT_PROVIDER: provider, MESHD_CUSTOM_HOST, POD_NAMESPACE } = features
  const wanted = MESHD_CUSTOM_HOST.split(',')
    .map((host) => host.trim())
    .filter((host) => host !== '')
  const odd = wanted.find((host) => !isHost(host))
  if (odd !== undefined)
    throw new Error(`environment variable MESHD_CUSTOM_HOST: ${JSON.stringify(odd.slice(0, 100))} is no host name and no address`)
  if (provider === 'orchestrator' && !hasCluster)
    return { from: 'nowhere', why: 'PILOT_CERT_PROVIDER=orchestrator needs a cluster: --orchconfig <file>, or a pod' }
  if (provider !== 'meshd' && provider !== 'orchestrator')
    return { from: 'nowhere', why: `with PILOT_CERT_PROVIDER=${JSON.stringify(provider.slice(0, 100))} it needs --tlsCertFile and --tlsKeyFile` }
  if (!authority.signs) return { from: 'nowhere', why: 'it needs the certificate authority of this process, or --tlsCertFile and --tlsKeyFile' }
  // Signers of others do not sign names that everybody has.
  const own = authority.by === 'own' && provider === 'meshd' ? loopback : []
  return { from: 'authority', hosts: [...wanted, ...controlPlaneHosts(options.namespace || POD_NAMESPACE), ...own] }
}

/** Log lines at start about the certificate: why there is none, or why clients will refuse the one that was read from the files. */
export function servingNotices(
  { secureGRPCAddr, tlsCertFile }: DiscoveryOptions,
  serving: GivenServing,
  read: ServingCertificate | undefined,
): Notice[] {
  if (secureGRPCAddr === '') return []
  if (serving.from === 'nowhere') return [{ level: 'warn', message: `--secureGRPCAddr ${secureGRPCAddr} is not listened on: ${serving.why}` }]
  const fault = read && validityFault(read, wallClockMs())
  return fault === undefined ? [] : [{ level: 'warn', message: `--tlsCertFile ${tlsCertFile}: ${fault}; clients will refuse it` }]
}
