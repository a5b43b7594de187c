/** Runs actors without their host, linked to peers that record messages. */
import type { ActorContext, ActorDefinition, Behaviour } from '../../actors/runtime/actor.ts'
import type { Peer } from '../../actors/runtime/link.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'

/** A peer that records the messages sent to it. */
export class RecordingPeer<Message> implements Peer<Message> {
  readonly name: string
  readonly kind: string
  readonly received: Message[] = []
  /** Called with each message. */
  onReceived: (message: Message) => void = () => {}

  constructor(name: string) {
    this.name = name
    this.kind = name.split('/')[0] as string
  }

  tell(message: Message): void {
    this.received.push(message)
    this.onReceived(message)
  }

  replay(): { finish(): void } {
    return { finish: () => {} }
  }
}

/**
 * Starts an actor in the calling thread. `ask` answers the asks to its supervisor. `logged` is called with every log line, debug lines
 * included; without it logging is off.
 */
export async function startActor<Config, Message, Sent>(
  definition: ActorDefinition<Config, Message, Sent>,
  config: Config,
  {
    logged,
    metrics = new MetricRegistry(),
    noted,
    ask = () => Promise.reject(new Error('nobody answers')),
  }: {
    logged?: (record: LogRecord) => void
    metrics?: MetricRegistry
    /** Called with the notes that the actor makes. */
    noted?: (name: string, value: unknown) => void
    ask?: (question: string, ...details: unknown[]) => Promise<unknown>
  } = {},
): Promise<Behaviour<Message, Sent>> {
  const off = { fallback: 'none', scopes: {} } as const
  const output = logged ? ({ fallback: 'debug', scopes: {} } as const) : off
  const context: ActorContext<Config> = {
    name: definition.kind,
    config,
    log: createLogger({ output, stackTrace: off, callers: [] }, (record) => logged?.(record)),
    metrics,
    note: (name, value) => noted?.(name, value),
    ask: <Answer>(question: string, ...details: unknown[]) => ask(question, ...details) as Promise<Answer>,
    askFor: (_, question, ...details) => ask(question, ...details) as Promise<never>,
  }
  return definition.start(context)
}
