/** Actors without their host: started here, linked to peers that keep what they are told. */
import type { ActorContext, ActorDefinition, Behaviour } from '../../actors/runtime/actor.ts'
import type { Peer } from '../../actors/runtime/link.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { Registry } from '../../actors/runtime/metrics.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'

/** A peer that keeps what it is told. */
export class RecordingPeer<Message> implements Peer<Message> {
  readonly name: string
  readonly kind: string
  readonly told: Message[] = []
  /** Called with each message. */
  onTold: (message: Message) => void = () => {}

  constructor(name: string) {
    this.name = name
    this.kind = name.split('/')[0] as string
  }

  tell(message: Message): void {
    this.told.push(message)
    this.onTold(message)
  }

  replay(): { finish(): void } {
    return { finish: () => {} }
  }
}

/** Starts an actor in the calling thread. `ask` is what its supervisor answers. Without `logged` it has no log; that is told every line, those for debugging too. */
export async function startActor<Config, Message, Told>(
  definition: ActorDefinition<Config, Message, Told>,
  config: Config,
  {
    logged,
    metrics = new Registry(),
    ask = () => Promise.reject(new Error('nobody answers')),
  }: { logged?: (record: LogRecord) => void; metrics?: Registry; ask?: (question: string, ...details: unknown[]) => Promise<unknown> } = {},
): Promise<Behaviour<Message, Told>> {
  const off = { fallback: 'none', scopes: {} } as const
  const output = logged ? ({ fallback: 'debug', scopes: {} } as const) : off
  const context: ActorContext<Config> = {
    name: definition.kind,
    config,
    log: createLogger({ output, stackTrace: off, callers: [] }, (record) => logged?.(record)),
    metrics,
    note: () => {},
    ask: <Answer>(question: string, ...details: unknown[]) => ask(question, ...details) as Promise<Answer>,
  }
  return definition.start(context)
}
