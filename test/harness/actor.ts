/** Actors without their host: started here, linked to peers that keep what they are told. */
import type { ActorContext, ActorDefinition, Behaviour } from '../../actors/runtime/actor.ts'
import type { Peer } from '../../actors/runtime/link.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { Registry } from '../../actors/runtime/metrics.ts'

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

/** Starts an actor in the calling thread, without a log. */
export async function startActor<Config, Message>(definition: ActorDefinition<Config, Message>, config: Config): Promise<Behaviour<Message>> {
  const off = { fallback: 'none', scopes: {} } as const
  const context: ActorContext<Config> = {
    name: definition.kind,
    config,
    log: createLogger({ output: off, stackTrace: off, callers: [], asJson: false, targets: [], rotate: undefined }, () => {}),
    metrics: new Registry(),
    note: () => {},
    ask: () => Promise.reject(new Error('nobody answers')),
  }
  return definition.start(context)
}
