/** An actor that fails in every requested way. Its state is a timer, a server, and the messages that it received. */
import { createServer, type Server } from 'node:net'
import type { ActorContext, ActorDefinition, Behaviour } from '../../../actors/runtime/actor.ts'
import type { Peer } from '../../../actors/runtime/link.ts'
import type { Logger } from '../../../actors/runtime/logger.ts'
import { after, every } from '../../../actors/runtime/timers.ts'

/** What the actors of this thread have done, for tests that run them in their own thread. */
export const seen: string[] = []

interface TroubledConfig {
  readonly startsNever?: boolean
  readonly throwsAtStart?: boolean
  readonly throwsWhenUnlinked?: boolean
}

class Troubled implements Behaviour<string> {
  readonly #server: Server
  readonly #name: string
  readonly #log: Logger
  readonly #seen: string[] = []
  readonly #throwsWhenUnlinked: boolean
  #peer: Peer<string> | undefined

  constructor({ name, config: { throwsWhenUnlinked = false }, log }: ActorContext<TroubledConfig>, server: Server) {
    this.#name = name
    this.#log = log
    this.#throwsWhenUnlinked = throwsWhenUnlinked
    this.#server = server
    every(5, () => seen.push(`${name} ticks`))
  }

  readonly asks = {
    port: () => (this.#server.address() as { port: number }).port,
    events: () => this.#seen,
    send: (message: string) => this.#peer?.tell(message),
    say: (words: string) => this.#log('default').debug(words),
    later: (way: string) => void after(1, () => this.receive(way)),
  }

  linked(peer: Peer): void {
    this.#peer = peer as Peer<string>
    this.#seen.push(`linked ${peer.name}`)
  }

  unlinked(peer: Peer): void {
    if (this.#throwsWhenUnlinked) throw new Error('thrown when unlinked')
    this.#seen.push(`unlinked ${peer.name}`)
  }

  receive(message: string): void {
    switch (message) {
      case 'throw':
        throw new Error('thrown')
      case 'reject':
        void Promise.reject(new Error('rejected'))
        return
      case 'hang':
        for (;;);
      default:
        this.#seen.push(message)
    }
  }

  async drain(): Promise<void> {
    seen.push(`${this.#name} drained`)
    this.#server.close()
  }
}

export const actor: ActorDefinition<TroubledConfig, string> = {
  kind: 'troubled',
  async start(context) {
    const { name, config } = context
    if (config.throwsAtStart) {
      every(5, () => seen.push(`${name} ticks without having started`))
      throw new Error('no start')
    }
    if (config.startsNever) await new Promise(() => {})
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new Troubled(context, server)
  },
}
