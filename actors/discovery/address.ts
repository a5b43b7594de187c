/** Addresses as flags give them. */
import { createServer } from 'node:net'

/** Host and port of `host:port`; an empty host means every address. */
export function splitAddress(address: string): [host: string, port: number] {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  return [host === '*' ? '' : host, Number(address.slice(colon + 1))]
}

/**
 * Rejects when somebody listens on an address already. Threads that share a port would not notice: the kernel would spread
 * connections over them and whoever else shares it.
 */
export function ensureFree(flag: string, address: string): Promise<void> {
  const [host, port] = splitAddress(address)
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.on('error', (error) => reject(new Error(`--${flag} ${address}: ${error.message}`)))
    probe.listen({ host: host || undefined, port, exclusive: true }, () => probe.close(() => resolve()))
  })
}
