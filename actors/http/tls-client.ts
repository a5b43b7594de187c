/** TLS connections to servers that may be hostile. */
import { constants } from 'node:crypto'
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { HandshakeStream } from './handshake-stream.ts'

/** Runs work that may block the thread, and returns its result. */
export type Blocking = <Result>(work: () => Result) => Result

/** The address of a server. `lookup` resolves its name, if not the system. */
export interface TlsAddress {
  readonly host: string
  readonly port: number
  readonly lookup?: LookupFunction
}

/** Returns the address of the server of a URL with `https:`. */
export const addressOf = ({ hostname, port }: URL): TlsAddress => ({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 443) })

/** Bounds of a handshake. Default: those of {@link HandshakeStream}, on the calling thread. */
export interface HandshakeBounds {
  /** Maximum number of bytes that the server may send before the handshake is done. */
  readonly bytes?: number
  /** Each step of the handshake runs in it. */
  readonly blocking?: Blocking
  /** The connection on which it is done. Default: one to the address. */
  readonly connection?: Socket
}

/**
 * Maximum number of bytes before the end of a handshake for servers that are not of the mesh: a chain with a hundred names has some 8 KB.
 * The costliest one of this size takes 0.2 s.
 */
export const publicHandshakeBytes = 32_768

/** Connects to a TLS server. The name `host` is verified and sent as SNI unless the options have another one. */
export function connectBounded({ host, port, lookup }: TlsAddress, options: ConnectionOptions, bounds: HandshakeBounds = {}): TLSSocket {
  const { bytes, blocking = (work) => work(), connection = connectTcp({ host, port, ...(lookup ? { lookup } : {}) }) } = bounds
  const stream: HandshakeStream = new HandshakeStream(connection, {
    ...(bytes === undefined ? {} : { bytes }),
    arrived: () => blocking(() => stream.deliver()),
  })
  // An IP address is compared with the addresses in the certificate and is not sent as SNI (RFC 6066, section 3).
  const name = isIP(host) ? {} : { servername: host }
  // A server could ask for another handshake, which nothing bounds. `disableRenegotiation` has no effect on a client.
  const socket = connectTls({ ...name, host, ...options, secureOptions: constants.SSL_OP_NO_RENEGOTIATION, socket: stream })
  socket.once('secureConnect', () => stream.settle())
  return socket
}

/**
 * Returns the client for HTTPS requests to a server that is not of the mesh, one connection each. It is loaded with the first request,
 * because it is larger than the rest of a small server.
 */
export async function httpsClient(address: TlsAddress, options: ConnectionOptions = {}) {
  // biome-ignore lint/style/noRestrictedImports: given to the one client
  const { request } = await import('node:https')
  const createConnection = () => connectBounded(address, { ALPNProtocols: ['http/1.1'], ...options }, { bytes: publicHandshakeBytes })
  return { request, createConnection }
}
