/**
 * Validates that connections are redirected (docs/agent.md, R9). This process connects to an address where nothing listens. When the
 * connection arrives at one of the proxy's ports on another address, a redirect rule applied.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { ExitError } from '../../../src/cli/exit-status.ts'
import type { Family } from '../../../src/iptables/ranges.ts'
import { after, every, type Timer } from '../../runtime/timers.ts'

/** Exit status when connections are not redirected. Tools that repair nodes check for exactly this status. */
const notRedirected = 126

/** The settings of the validation. */
export interface ValidationSettings {
  /** The host's address, which is only printed. */
  readonly address: string
  readonly family: Family
  /** The ports that connections are redirected to. */
  readonly ports: readonly number[]
  /** The destination port of the test connections. */
  readonly probePort: number
  readonly timeoutMs: number
}

const addresses = {
  4: { loopback: '127.0.0.1', probed: '127.0.0.6' },
  6: { loopback: '::1', probed: '::6' },
} as const

/** The interval between test connections, in milliseconds. */
const period = 1000

/**
 * Resolves when a test connection was redirected. Rejects with an ExitError after the timeout, or when it cannot listen on any of the
 * ports.
 */
export async function validate(settings: ValidationSettings, say: (line: string) => void): Promise<void> {
  const { loopback, probed } = addresses[settings.family]
  say(`Validating redirection: host address ${settings.address}, probe ${probed} port ${settings.probePort}`)
  const matches = new Matches(String(settings.probePort))
  const listened = await Promise.allSettled(settings.ports.map((port) => listen(port, loopback, (socket) => matches.arrived(socket))))
  for (const [index, result] of listened.entries())
    say(result.status === 'fulfilled' ? `Listening on ${loopback} port ${settings.ports[index]}` : `Not listening: ${String(result.reason?.message)}`)
  const servers = listened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
  const timers: Timer[] = []
  try {
    if (servers.length === 0)
      throw new ExitError('validation of redirection failed: none of the ports of the proxy can be listened on', notRedirected)
    const dial = () => matches.dialled(connect({ host: probed, port: settings.probePort, localAddress: loopback }))
    const late = new ExitError(
      `validation of redirection failed: no connection to ${probed} port ${settings.probePort} arrived at ${settings.ports.join(' or ')} within ${settings.timeoutMs} ms`,
      notRedirected,
    )
    await new Promise<void>((resolve, reject) => {
      matches.found = resolve
      timers.push(
        every(period, dial),
        after(settings.timeoutMs, () => reject(late)),
      )
      dial()
    })
    say('Validation passed: connections are redirected to the proxy')
  } finally {
    for (const timer of timers) timer.cancel()
    matches.close()
    for (const server of servers) server.close()
  }
}

/** Matches opened connections with accepted ones: the remote port of an accepted connection is the local port of an opened one. */
class Matches {
  found: () => void = () => {}
  readonly #answer: string
  readonly #open = new Set<Socket>()
  readonly #dialled = new Set<number>()
  readonly #arrived = new Map<number, Socket>()

  constructor(answer: string) {
    this.#answer = answer
  }

  dialled(socket: Socket): void {
    this.#keep(socket)
    socket.on('connect', () => {
      this.#dialled.add(socket.localPort ?? 0)
      this.#compare()
    })
  }

  arrived(socket: Socket): void {
    this.#keep(socket)
    this.#arrived.set(socket.remotePort ?? 0, socket)
    this.#compare()
  }

  close(): void {
    for (const socket of this.#open) socket.destroy()
  }

  #keep(socket: Socket): void {
    this.#open.add(socket)
    // Without redirection the connection is refused, which is an expected outcome.
    socket.on('error', () => {})
  }

  #compare(): void {
    for (const [port, socket] of this.#arrived)
      if (this.#dialled.has(port)) {
        socket.end(this.#answer)
        this.found()
      }
  }
}

function listen(port: number, host: string, arrived: (socket: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(arrived)
    server.on('error', reject)
    server.listen({ port, host, reusePort: true }, () => resolve(server))
  })
}
