/** Hosts an actor on a worker thread. Apart from the entry of the thread, because the package has it in one file with the actor. */
import type { ActorDefinition } from './actor.ts'
import { type HostOptions, hostActor, wireError } from './host.ts'
import { collectGarbageWhenIdle } from './idle-collection.ts'

/** What a thread is started with: the options of the actor, and two modules, that of the actor and the one that hosts it (`hostOnThread`). */
export interface ThreadData extends HostOptions {
  readonly module: string
  readonly hosting: string
}

type Port = Parameters<typeof hostActor>[1]

/** Hosts the actor that `load` brings, on the thread that has `port`. Reports an actor that cannot be loaded. */
export async function hostOnThread(
  load: () => Promise<{ readonly actor: ActorDefinition<unknown, unknown> }>,
  port: Port,
  options: HostOptions,
): Promise<void> {
  collectGarbageWhenIdle()
  try {
    const { actor } = await load()
    hostActor(actor, port, options)
  } catch (error) {
    port.postMessage({ type: 'Failed', error: wireError(error) })
  }
}
