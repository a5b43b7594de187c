/** The certificates that clients of a TLS server present. */
import type { X509Certificate } from 'node:crypto'
import { TLSSocket } from 'node:tls'
import type { PresentedChain } from '../../src/identity/client-trust.ts'

/** Protocols that a client offers in ALPN (RFC 7301). */
interface Offer {
  readonly protocols: readonly string[]
}

/**
 * Reads presented chains early. When a handshake is done, Node itself looks whether a server's client has a certificate, and drops the first
 * issuer of the chain with that (nodejs/node#65579, 24.21 and others): who asks afterwards misses it. The callback for ALPN is called
 * on the socket while the handshake is under way; what it has read there is read before Node looks. Where Node calls it otherwise, only
 * certificates that a root itself has signed can be told to be of its trust domain, and the others are refused.
 */
export class PresentedChains {
  readonly #leaves = new WeakMap<object, X509Certificate>()
  /** For the option `ALPNCallback` of a server: takes clients that speak HTTP/2. */
  readonly alpn: (offer: Offer) => string | undefined

  constructor() {
    const read = (socket: TLSSocket) => this.#read(socket)
    this.alpn = function (this: unknown, { protocols }: Offer) {
      if (this instanceof TLSSocket) this.prependOnceListener('secure', () => read(this as TLSSocket))
      return protocols.includes('h2') ? 'h2' : undefined
    }
  }

  /** What the client of a socket has presented; undefined when that is nothing. */
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
