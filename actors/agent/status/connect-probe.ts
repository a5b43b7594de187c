/** Health probe by a TCP connection. */
import { connect } from 'node:net'
import { loopbackLookup } from '../../http/loopback.ts'

/**
 * Connects and closes the connection. Rejects with the reason when the connection is not accepted or the signal is aborted. `host` defaults
 * to this machine.
 */
export function canConnect(
  { host = 'localhost', port, isIpv6Only }: { readonly host?: string; readonly port: number; readonly isIpv6Only: boolean },
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const here = host === 'localhost' ? { lookup: loopbackLookup(isIpv6Only) } : {}
    const socket = connect({ host, port, ...here }, () => {
      socket.destroy()
      resolve()
    })
    const leave = () => void socket.destroy(new Error('given up'))
    socket.on('error', reject)
    socket.on('close', () => signal.removeEventListener('abort', leave))
    signal.addEventListener('abort', leave)
    if (signal.aborted) leave()
  })
}
