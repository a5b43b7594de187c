/** Sends requests over TLS. */
import { request as httpsRequest } from 'node:https'
import type { SecureVersion, TLSSocket } from 'node:tls'
import type { Pair } from './gateway-secrets.ts'

/** A request over TLS: the requested host, the trusted authority, the client's certificate. */
interface SecureCall {
  /** The SNI, and the host of the request unless `requested` is given. */
  readonly host: string
  readonly requested?: string
  readonly path?: string
  readonly root: Pair
  readonly client?: Pair
  /** Whether a server certificate with any name is accepted. */
  readonly anyName?: boolean
  readonly version?: SecureVersion
}

/** The outcome. `status` is 0 without a response; `serial` is the serial number of the server's certificate. */
export interface Outcome {
  readonly status: number
  readonly serial: string
}

/** Sends one request on a connection of its own. */
export function secureCall(
  address: string,
  port: number,
  { host, requested = host, path = '/', root, client, anyName, version }: SecureCall,
): Promise<Outcome> {
  return new Promise((resolve) => {
    let serial = ''
    const own = {
      ...(client ? { cert: client.chain, key: client.key } : {}),
      ...(anyName ? { checkServerIdentity: () => undefined } : {}),
      ...(version ? { minVersion: version, maxVersion: version } : {}),
    }
    const headers = { host: requested }
    const options = { host: address, port, path, servername: host, headers, ca: root.chain, agent: false as const, timeout: 30_000, ...own }
    const request = httpsRequest(options, (response) => {
      response.resume()
      response.on('end', () => resolve({ status: response.statusCode ?? 0, serial }))
      response.on('error', () => resolve({ status: 0, serial }))
    })
    request.on('socket', (socket) => socket.on('secureConnect', () => (serial = (socket as TLSSocket).getPeerCertificate().serialNumber ?? '')))
    request.on('timeout', () => request.destroy(new Error('no answer')))
    request.on('error', () => resolve({ status: 0, serial }))
    request.end()
  })
}
