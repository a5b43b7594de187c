/** Refuses protocol upgrades in responses. */
import type { ClientRequest } from 'node:http'

/**
 * Fails a request that is answered with 101 (protocol upgrade). Without this, Node closes the connection and emits neither a response nor
 * an error.
 */
export function refuseUpgrade(request: ClientRequest, failed: (error: Error) => void): void {
  request.on('upgrade', (_answer, socket) => {
    socket.destroy()
    failed(new Error('HTTP status 101'))
  })
}
