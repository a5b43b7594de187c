/** Says what was reached at an `--address` that gives no answer, and what to do. */

/** What a certificate is refused for that comes from roots which are not known. */
const ofUnknownRoot: ReadonlySet<string> = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** Returns the text for a connection to an address (`http://<host>:<port>` or `https://...`) that failed; `hasRoots`: its certificate had to come from given roots. */
export function connectionFault(address: string, hasRoots: boolean, { code = '', message }: NodeJS.ErrnoException): string {
  if (code === 'ECONNREFUSED') return `${address}: no server listens there (${message})`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `${address}: the name of the host is not known (${message})`
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG' || code === 'EPROTO')
    return `${address}: what listens there does not speak TLS: ask --httpAddr or --monitoringAddr as ${address.replace('https:', 'http:')}, or name the port of --secureGRPCAddr`
  if (ofUnknownRoot.has(code))
    return `${address}: its certificate does not come from the roots ${hasRoots ? 'of --ca-file' : 'of the system: name a file with the root of the mesh in --ca-file'} (${message})`
  if (code.startsWith('HPE_')) return `${address}: ${noControlPlane} (it does not speak HTTP/1.1)`
  if (code === 'ECONNRESET' && address.startsWith('http:'))
    return `${address}: the connection was closed without an answer: the server has ended, or its port is one with TLS (--secureGRPCAddr), which is asked as ${address.replace('http:', 'https:')} with --ca-file`
  return `${address}: ${message}`
}

const noControlPlane =
  'what answers there is no control plane, or not a port that answers commands: --address names that of --httpAddr, --monitoringAddr or --secureGRPCAddr'

/** Returns the text for an answer that is none of an admin service, by what the client says of it; undefined: it is one. */
export function foreignAnswer(address: string, message: string): string | undefined {
  return /^(HTTP \d{3}$|unsupported content type |protocol error: )/.test(message)
    ? `${address}: ${noControlPlane} (${message.slice(0, 100)})`
    : undefined
}
