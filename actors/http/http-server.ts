/** What servers of HTTP/1.1 have in common. */
import type { Server } from 'node:http'

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
