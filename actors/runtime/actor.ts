/** What an actor is made of: its definition, what it is given, and how it behaves. */
import type { Peer } from './link.ts'
import type { Logger } from './logger.ts'
import type { Registry } from './metrics.ts'
import type { ObjectRule } from './register.ts'

/** What an actor is given when it starts. */
export interface ActorContext<Config> {
  /** Name among its siblings, `xds-writer/1`. */
  readonly name: string
  readonly config: Config
  readonly log: Logger
  /** The actor's own metrics; the supervisor merges those of all actors on scrape. */
  readonly metrics: Registry
  /** Tells the supervisor something of the actor's condition. The last value of each name holds until the actor ends. */
  note(name: string, value: unknown): void
  /** Asks the supervisor a question it has offered to answer. Rejects when it does not answer in time. */
  ask<Answer>(question: string, ...details: unknown[]): Promise<Answer>
}

/**
 * A started actor: takes messages of the type `Message`, and tells its peers those of the type `Told`. State lives in it and nowhere
 * else; an exception that leaves it ends it, and its supervisor starts another.
 */
export interface Behaviour<Message, Told = unknown> {
  /** Takes one message. */
  receive(message: Message, from: Peer): void
  /**
   * A peer can be told things from now on. Sources replay their whole state here ({@link Peer.replay}): the peer may have just
   * restarted. Of one peer at most one link is there at a time: its predecessor was unlinked before.
   */
  linked?(peer: Peer<Told>): void
  /** A peer is gone, and its undelivered mail with it; its successor comes as a new link. */
  unlinked?(peer: Peer<Told>): void
  /** Which objects the messages of sources are about: makes the runtime withdraw those that a finished replay did not mention. */
  readonly objects?: ObjectRule<Message>
  /** A source has said everything it knows, and what it did not mention has been withdrawn by messages to {@link receive}. */
  synced?(source: Peer): void
  /** Questions the supervisor may ask, answered over comlink. Never on the push path. */
  readonly asks?: Readonly<Record<string, (...details: never[]) => unknown>>
  /** Finishes what is under way before an orderly stop. */
  drain?(): Promise<void>
}

/** An actor module exports one of these under the name `actor`. */
export interface ActorDefinition<Config, Message, Told = unknown> {
  /** What its names start with. */
  readonly kind: string
  start(context: ActorContext<Config>): Behaviour<Message, Told> | Promise<Behaviour<Message, Told>>
}
