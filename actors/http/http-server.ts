/** Common functions of HTTP/1.1 servers. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Status for requests that Node fails to read, by error code; 400 for all other codes. */
const unreadable: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** Makes a server answer unreadable requests with an error status and the reason, and close the connection. Errors of clients that are gone are ignored. */
export function answerUnreadable(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException & { readonly reason?: string }, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    const status = unreadable[error.code ?? ''] ?? '400 Bad Request'
    const body = `the request cannot be read: ${error.reason ?? error.message}`
    const headers = `Connection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}`
    socket.end(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n${body}`)
  })
}

/** Makes a server listen; on all addresses of both families without a host. Rejects when the address cannot be listened on. */
export function listenOn(server: Server, host: string | undefined, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/**
 * Limits the number of connections of a server. When a connection exceeds it, the one that has been idle for longest is closed, so that
 * idle connections cannot exhaust the limit; if none is idle, the new one is closed. `refused` is called for each closed connection.
 */
export function limitConnectionsTo(most: number, server: Server, refused: () => void = () => undefined): void {
  /** Idle connections, the longest idle one first. */
  const idle = new Set<Socket>()
  let open = 0
  server.on('connection', (socket: Socket) => {
    open++
    const [oldest = socket] = idle
    idle.add(socket)
    socket.once('close', () => {
      open--
      idle.delete(socket)
    })
    if (open <= most) return
    oldest.destroy()
    refused()
  })
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    idle.delete(socket)
    response.once('close', () => {
      if (!socket.destroyed) idle.add(socket)
    })
  })
}
