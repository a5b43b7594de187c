/** Where the certificate comes from that the secured port serves with. */
import type { CertificateFiles, ServingCertificate } from '../../protocols/messages/certificates.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { Features } from '../../src/config/features.ts'
import { controlPlaneHosts, isHost } from '../../src/names/control-plane-hosts.ts'
import { validityFault } from '../http/certificate.ts'
import { wallClockMs } from '../runtime/clock.ts'
import type { Notice } from './exposure.ts'
import type { GivenAuthority } from './given-authority.ts'
import { certificateFiles } from './given-certificates.ts'

/** The files of flags; or the hosts for which the certificate authority of this process signs; or why there is no certificate. */
export type GivenServing =
  | { readonly from: 'files'; readonly files: CertificateFiles }
  /** DNS names and addresses, beside the host of the mesh configuration's discovery address. */
  | { readonly from: 'authority'; readonly hosts: readonly string[] }
  | { readonly from: 'nowhere'; readonly why: string }

/** Names of this host, by which those of the same machine reach it. */
const loopback = ['localhost', '127.0.0.1', '::1']

/**
 * Looks where the certificate comes from (docs/identity.md, T11). Throws an Error that names the flag or variable that is wrong.
 */
export function givenServing(options: DiscoveryOptions, features: Features, { signs }: GivenAuthority): GivenServing {
  const files = certificateFiles(options)
  if (files) return { from: 'files', files }
  const { PILOT_CERT_PROVIDER: provider, MESHD_CUSTOM_HOST, POD_NAMESPACE } = features
  const wanted = MESHD_CUSTOM_HOST.split(',')
    .map((host) => host.trim())
    .filter((host) => host !== '')
  const odd = wanted.find((host) => !isHost(host))
  if (odd !== undefined)
    throw new Error(`environment variable MESHD_CUSTOM_HOST: ${JSON.stringify(odd.slice(0, 100))} is no host name and no address`)
  if (provider === 'orchestrator')
    return { from: 'nowhere', why: 'PILOT_CERT_PROVIDER=orchestrator needs an orchestrator, and there is no orchestrator client yet' }
  if (provider !== 'meshd')
    return { from: 'nowhere', why: `with PILOT_CERT_PROVIDER=${JSON.stringify(provider.slice(0, 100))} it needs --tlsCertFile and --tlsKeyFile` }
  if (!signs) return { from: 'nowhere', why: 'it needs the certificate authority of this process, or --tlsCertFile and --tlsKeyFile' }
  return { from: 'authority', hosts: [...wanted, ...controlPlaneHosts(options.namespace || POD_NAMESPACE), ...loopback] }
}

/** What the log says at start of the certificate: that there is none and why, or that clients will refuse the one of the files, as it was read. */
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
