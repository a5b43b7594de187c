/** TLS connections from chosen addresses of the loopback network. */
import { connect } from 'node:net'
import { type TLSSocket, connect as tlsConnect } from 'node:tls'

/** A client certificate and its key in PEM. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
}

/** Opens a connection for HTTP/2 from `address` to a port of 127.0.0.1. The server is not verified. */
export function connectFrom(address: string, port: number, certificate: Partial<ClientCertificate> = {}): TLSSocket {
  const socket = connect({ host: '127.0.0.1', port, localAddress: address })
  const secured = tlsConnect({ socket, rejectUnauthorized: false, ALPNProtocols: ['h2'], ...certificate })
  socket.on('error', (error) => secured.destroy(error))
  socket.on('close', () => secured.destroy())
  return secured
}
