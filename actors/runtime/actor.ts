/** The interface between an actor and the runtime: its definition, its context and its behaviour. */
import type { BoundedQuestions } from '../../protocols/messages/questions.ts'
import type { Asking } from './ask.ts'
import type { Peer } from './link.ts'
import type { Logger } from './logger.ts'
import type { MetricRegistry } from './metrics.ts'
import type { ObjectRule } from './register.ts'

/** What an actor receives when it starts. */
export interface ActorContext<Config> {
  /** Unique name, for example `xds-writer/1`. */
  readonly name: string
  readonly config: Config
  readonly log: Logger
  /** The actor's own metrics; the supervisor merges those of all actors on scrape. */
  readonly metrics: MetricRegistry
  /** Reports a named value of the actor's condition to the supervisor. The last value of each name holds until the actor ends. */
  note(name: string, value: unknown): void
  /** Asks the supervisor a question. Rejects when the supervisor does not offer an answer to it or does not answer in time. */
  ask<Answer>(question: string, ...details: unknown[]): Promise<Answer>
  /** Asks the supervisor for somebody who waits only as long as `asking` says. Rejects like {@link ActorContext.ask}. */
  askFor: AskFor
}

/** Asks a question with a deadline of its own, for somebody. */
export type AskFor = <Name extends keyof BoundedQuestions>(
  asking: Asking,
  question: Name,
  ...details: Parameters<BoundedQuestions[Name]>
) => Promise<ReturnType<BoundedQuestions[Name]>>

/** The functions that answer questions with deadlines of their own. */
export type BoundedAnswers<Name extends keyof BoundedQuestions> = {
  readonly [Each in Name]: (...details: [...Parameters<BoundedQuestions[Each]>, asking?: Asking]) => Promise<ReturnType<BoundedQuestions[Each]>>
}

/**
 * A started actor: receives messages of type `Message` and sends its peers messages of type `Sent`. Its state is its own; an exception
 * that leaves it ends the actor, and its supervisor starts a new one.
 */
export interface Behaviour<Message, Sent = unknown> {
  /** Processes one message. */
  receive(message: Message, from: Peer): void
  /**
   * A link to a peer is up, so that messages can be sent to it. Sources replay their whole state here ({@link Peer.replay}), because the
   * peer may have just restarted. There is at most one live link to a peer: its predecessor was unlinked before.
   */
  linked?(peer: Peer<Sent>): void
  /** The link to a peer is down, and its undelivered messages are dropped. The peer's successor arrives as a new link. */
  unlinked?(peer: Peer<Sent>): void
  /** Which objects the messages of sources are about. With it, the runtime withdraws objects that a finished replay did not mention. */
  readonly objects?: ObjectRule<Message>
  /** A source has finished a replay, and the objects that it did not mention have been withdrawn by messages to {@link receive}. */
  synced?(source: Peer): void
  /** A peer was removed for good, and its objects have been withdrawn by messages to {@link receive}. */
  forgotten?(peer: Peer): void
  /** Answers to questions of the supervisor, called over comlink. Never used on the push path. */
  readonly asks?: Readonly<Record<string, (...details: never[]) => unknown>>
  /** Finishes work under way before an orderly stop. */
  drain?(): Promise<void>
}

/** The definition that an actor module exports under the name `actor`. */
export interface ActorDefinition<Config, Message, Sent = unknown> {
  /** First part of the names of its actors, for example `xds-writer`. */
  readonly kind: string
  start(context: ActorContext<Config>): Behaviour<Message, Sent> | Promise<Behaviour<Message, Sent>>
}
