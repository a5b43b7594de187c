/** Answers that nobody asked for. */
import type { ClientRequest } from 'node:http'

/** Fails a request whose answer is 101, a change of protocol. Without this Node closes the connection and tells nobody: there is neither an answer nor an error. */
export function refuseUpgrade(request: ClientRequest, failed: (error: Error) => void): void {
  request.on('upgrade', (_answer, socket) => {
    socket.destroy()
    failed(new Error('HTTP status 101'))
  })
}
