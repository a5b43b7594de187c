/** What an actor is made of: its definition, what it is given, and how it behaves. */

import type { Peer } from './link.ts'
import type { Logger } from './logger.ts'
import type { Registry } from './metrics.ts'

/** What an actor is given when it starts. */
export interface ActorContext<Config> {
  /** Name among its siblings, `xds-writer/1`. */
  readonly name: string
  readonly config: Config
  readonly log: Logger
  /** The actor's own metrics; the supervisor merges those of all actors on scrape. */
  readonly metrics: Registry
  /** Asks the supervisor a question it has offered to answer. Rejects when it does not answer in time. */
  ask<Answer>(question: string, ...details: unknown[]): Promise<Answer>
}

/** A started actor. State lives in it and nowhere else; an exception that leaves it ends it, and its supervisor starts another. */
export interface Behaviour<Message> {
  /** Takes one message. */
  receive(message: Message, from: Peer): void
  /** A peer can be told things from now on. Sources send their whole state here: the peer may have just restarted. */
  linked?(peer: Peer): void
  /** A peer is gone; its successor comes as a new link. */
  unlinked?(peer: Peer): void
  /** Questions the supervisor may ask, answered over comlink. Never on the push path. */
  readonly asks?: Readonly<Record<string, (...details: never[]) => unknown>>
  /** Finishes what is under way before an orderly stop. */
  drain?(): Promise<void>
}

/** An actor module exports one of these under the name `actor`. */
export interface ActorDefinition<Config, Message> {
  /** What its names start with. */
  readonly kind: string
  start(context: ActorContext<Config>): Behaviour<Message> | Promise<Behaviour<Message>>
}
