/** Ports of the loopback interface for what is started beside a bench or a test. */
import { createServer } from 'node:net'

/** Ports that were given out: the system may offer one again before it is used. */
const given = new Set<number>()

/** A free TCP port of the loopback interface, none twice. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.on('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }
      const isNew = !given.has(port)
      given.add(port)
      probe.close(() => resolve(isNew ? port : freePort()))
    })
  })
}
