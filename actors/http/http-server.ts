/** What servers of HTTP/1.1 have in common. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Statuses of requests that Node does not read to their end, by its error codes; 400 of others. */
const unreadable: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
}

/** Has a server answer and close what is not HTTP. A client that is gone meanwhile is no error of this process. */
export function answerUnreadable(server: Server): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else socket.end(`HTTP/1.1 ${unreadable[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`)
  })
}

/** Has a server listen; on all interfaces of both families when there is no host. Rejects when the address cannot be listened on. */
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
 * Holds a server to so many connections. For one more, that one gives way which has been without a request for longest, so that whoever opens
 * connections and says nothing keeps nobody out; where all are being answered, the new one is closed. `refused` hears of each that is closed.
 */
export function limitConnectionsTo(most: number, server: Server, refused: () => void = () => undefined): void {
  /** Connections without a request, that one first which has been so for longest. */
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
