/** The certificate chains that clients of a TLS server present. */
import type { X509Certificate } from 'node:crypto'
import { TLSSocket } from 'node:tls'
import type { PresentedChain } from '../../src/identity/client-trust.ts'

/** The protocols that a client offers in ALPN (RFC 7301). */
interface Offer {
  readonly protocols: readonly string[]
}

/**
 * Reads presented chains before Node does. At the end of a handshake, Node itself reads the client certificate, after which the first
 * issuer of the chain is no longer available (nodejs/node#65579, 24.21 and others). Node calls the ALPN callback on the socket during the
 * handshake; a listener added there reads the chain first. If a version of Node calls it differently, only certificates signed directly
 * by a root can be assigned to the root's trust domain, and others are refused.
 */
export class PresentedChains {
  readonly #leaves = new WeakMap<object, X509Certificate>()
  /** The option `ALPNCallback` of a server: accepts clients that speak HTTP/2. */
  readonly alpn: (offer: Offer) => string | undefined

  constructor() {
    const read = (socket: TLSSocket) => this.#read(socket)
    this.alpn = function (this: unknown, { protocols }: Offer) {
      if (this instanceof TLSSocket) this.prependOnceListener('secure', () => read(this as TLSSocket))
      return protocols.includes('h2') ? 'h2' : undefined
    }
  }

  /** Returns the chain that the client of a socket presented; undefined when it presented none. */
  of(socket: TLSSocket): PresentedChain | undefined {
    const leaf = this.#leaves.get(socket) ?? socket.getPeerX509Certificate()
    return leaf && { leaf, intermediates: () => issuersOf(leaf) }
  }

  #read(socket: TLSSocket): void {
    const leaf = socket.getPeerX509Certificate()
    if (leaf) this.#leaves.set(socket, leaf)
  }
}

function issuersOf(leaf: X509Certificate): X509Certificate[] {
  const issuers: X509Certificate[] = []
  for (let next = leaf.issuerCertificate; next && !issuers.includes(next); next = next.issuerCertificate) issuers.push(next)
  return issuers
}
