/** A request that somebody asks about: one type from the question to the policies of the destination. */

/** A request, or a TCP connection, with the attributes that a proxy would see. */
export interface DescribedRequest {
  readonly protocol: 'http' | 'tcp'
  readonly method: string
  /** The `:authority` header. */
  readonly host: string
  /** The path as sent, including the query. */
  readonly path: string
  /** Values by lower-case name; several values of a name in order. */
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** The address of the connection's peer, and that of the client on whose behalf it connects. */
  readonly sourceIp: string
  readonly remoteIp: string
  readonly destinationIp: string
  readonly destinationPort: number
  /** The server name of the TLS connection; empty: in plain text, or without one. */
  readonly sni: string
  /** SPIFFE id of the peer's certificate without the scheme; undefined without mutual TLS. */
  readonly peer: string | undefined
  /** Claims of the accepted token; undefined without a token. */
  readonly claims: Readonly<Record<string, unknown>> | undefined
  /** Dynamic metadata written by Envoy's filters, by filter. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** A request that the workload of a proxy sends, or a client of a gateway. */
export interface SentRequest extends DescribedRequest {
  readonly scheme: 'http' | 'https'
}
