/**
 * Looks whether connections are redirected (docs/agent.md, R9). A program of this process asks for a connection to an address where nobody listens;
 * that it arrives at a port of the proxy, at another address, proves that a rule led it there.
 */
import { connect, createServer, type Server, type Socket } from 'node:net'
import { ExitError } from '../../../src/cli/exit-status.ts'
import { after, every, type Timer } from '../../runtime/timers.ts'

/** Status that says that connections are not redirected. What repairs a node looks for exactly this one. */
const notRedirected = 126

/** What is looked at. */
export interface ValidationSettings {
  /** Address of the host, which is printed. */
  readonly address: string
  readonly isIpv6: boolean
  /** Ports to which connections are redirected. */
  readonly ports: readonly number[]
  /** Port to which a connection is asked for. */
  readonly probePort: number
  readonly timeoutMs: number
}

const addresses = {
  4: { loopback: '127.0.0.1', probed: '127.0.0.6' },
  6: { loopback: '::1', probed: '::6' },
} as const

/** How often a connection is asked for, in milliseconds. */
const period = 1000

/** Resolves when a connection was redirected. Rejects with an ExitError after the time limit, or when no port can be listened on. */
export async function validate(settings: ValidationSettings, say: (line: string) => void): Promise<void> {
  const { loopback, probed } = addresses[settings.isIpv6 ? 6 : 4]
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

/** Connections that were asked for and those that arrived; they are the same when one came from the port of the other. */
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
    // That nobody listens at the probed address is what is expected without redirection.
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
