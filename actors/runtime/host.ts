/** Runs one actor behind a control port: on a worker thread of its own (thread.ts), or in the supervisor's thread. */
import { getHeapStatistics } from 'node:v8'
import { isMainThread, type MessagePort } from 'node:worker_threads'
import type { ActorStats, Control, Report } from '../../protocols/messages/envelope.ts'
import type { WireError } from '../../protocols/messages/errors.ts'
import type { LogLevels, LogRecord } from '../../protocols/messages/log.ts'
import type { ActorMetrics } from '../../protocols/messages/metrics.ts'
import { type ProfileKind, profileAsks } from '../../protocols/messages/profile.ts'
import type { ActorDefinition, Behaviour } from './actor.ts'
import { type Asks, askWithin, serveAsks, useAsks } from './ask.ts'
import { monotonicMs, threadCpuMs } from './clock.ts'
import { Links } from './links.ts'
import { createLogger, type Logger } from './logger.ts'
import { MetricRegistry } from './metrics.ts'
import { catchErrorsOfOwners, Owner } from './owner.ts'
import { systemThreadId } from './processor-waits.ts'
import type { ThreadRecorder } from './thread-recorder.ts'
import { after } from './timers.ts'

/** The parameters of a host. */
export interface HostOptions {
  readonly name: string
  readonly config: unknown
  readonly log: LogLevels
}

/** Maximum time for which messages are processed before other events get their turn, in milliseconds. */
const turnMs = 8
/** How long an ended actor that shares its thread may take to release its resources, in milliseconds. */
const releaseMs = 5000

/** Starts the actor on its own thread. Errors are reported to the supervisor, which then ends the thread and everything in it. */
export function hostActor(definition: ActorDefinition<unknown, unknown>, port: MessagePort, options: HostOptions): void {
  new Host(definition, port, options, undefined)
}

/** Starts the actor in the calling thread. When it fails or the port closes, it is drained and its timers are cancelled. */
export function hostActorHere(definition: ActorDefinition<unknown, unknown>, port: MessagePort, options: HostOptions): void {
  catchErrorsOfOwners()
  const owner = new Owner((error) => host.fail(error))
  const host: Host = owner.run(() => new Host(definition, port, options, owner))
}

class Host {
  readonly #definition: ActorDefinition<unknown, unknown>
  readonly #port: MessagePort
  readonly #options: HostOptions
  /** Owner of the timers and errors of an actor that shares its thread. */
  readonly #owner: Owner | undefined
  readonly #levels: LogLevels
  readonly #log: Logger
  readonly #logBatch: LogRecord[] = []
  readonly #metrics = new MetricRegistry()
  readonly #incarnation = `${process.pid}-${monotonicMs()}`
  /** Control messages that arrived before the actor had started. */
  readonly #pending: Control[] = []
  #behaviour: Behaviour<unknown> | undefined
  #links: Links<unknown> | undefined
  /** The supervisor, which may be asked soon after the thread has begun. */
  readonly #supervisor = Promise.withResolvers<Asks>()
  #processed = 0
  #awake = false
  #stopped = false
  #lastUtilisation = performance.eventLoopUtilization()

  constructor(definition: ActorDefinition<unknown, unknown>, port: MessagePort, options: HostOptions, owner: Owner | undefined) {
    this.#definition = definition
    this.#port = port
    this.#options = options
    this.#owner = owner
    this.#levels = { ...options.log }
    this.#log = createLogger(this.#levels, (record) => {
      this.#logBatch.push(record)
      if (this.#logBatch.length === 1) setImmediate(() => this.#sendLog())
    })
    port.on('message', (control: Control) => this.#guard(() => this.#obey(control)))
    port.on('close', () => this.#guard(() => this.#stop()))
    void this.#start()
  }

  /** Ends the actor with an error. */
  fail(error: unknown): void {
    if (this.#stopped) return
    this.#sendLog()
    this.#report({ type: 'Failed', error: wireError(error) })
    this.#stop()
  }

  async #start(): Promise<void> {
    try {
      const behaviour = await this.#definition.start({
        name: this.#options.name,
        config: this.#options.config,
        log: this.#log,
        metrics: this.#metrics,
        note: (name, value) => this.#report({ type: 'Noted', name, value }),
        ask: async (question: string, ...details: unknown[]) => askWithin<never>(await this.#supervisor.promise, question, details),
        askFor: async (asking, question, ...details) => askWithin<never>(await this.#supervisor.promise, question, details, { asking }),
      })
      if (this.#stopped) return this.#release(behaviour)
      this.#behaviour = behaviour
      this.#links = new Links(behaviour.objects, {
        guard: (work) => this.#guard(work),
        linked: (link) => behaviour.linked?.(link),
        unlinked: (link) => behaviour.unlinked?.(link),
        mail: () => this.#wake(),
        receive: (message, from) => {
          this.#processed++
          behaviour.receive(message, from)
        },
        synced: (link) => behaviour.synced?.(link),
        forgotten: (peer) => behaviour.forgotten?.(peer),
      })
      this.#report({ type: 'Started', threadId: systemThreadId() })
      for (const control of this.#pending.splice(0)) this.#obey(control)
    } catch (error) {
      this.fail(error)
    }
  }

  #report(message: Report): void {
    this.#port.postMessage(message)
  }

  #sendLog(): void {
    if (this.#logBatch.length > 0) this.#report({ type: 'Logged', records: this.#logBatch.splice(0) })
  }

  /** Runs code of the actor; an exception ends the actor. */
  #guard(work: () => void): void {
    try {
      if (this.#owner) this.#owner.run(work)
      else work()
    } catch (error) {
      this.fail(error)
    }
  }

  #wake(): void {
    if (this.#awake || this.#stopped) return
    this.#awake = true
    setImmediate(() => this.#guard(() => this.#work()))
  }

  #work(): void {
    this.#awake = false
    const until = monotonicMs() + turnMs
    while (!this.#stopped && this.#links?.deliverOne()) if (monotonicMs() > until) return this.#wake()
  }

  #obey(control: Control): void {
    if (control.type === 'Ping') return this.#report({ type: 'Alive' })
    if (control.type === 'SetLogLevels') {
      Object.assign(this.#levels, control.levels)
      return this.#report({ type: 'LogLevelsSet' })
    }
    // Not after the start, which may ask.
    if (control.type === 'UseAsks') return this.#supervisor.resolve(useAsks(control.port))
    const actor = this.#behaviour
    const links = this.#links
    if (!actor || !links) {
      this.#pending.push(control)
      return
    }
    switch (control.type) {
      case 'Link':
        return links.add(control.peer, control.incarnation, control.port)
      case 'Forget':
        return links.forget(control.peer, control.incarnation)
      case 'ServeAsks':
        return serveAsks(control.port, {
          ...this.#owned(actor.asks ?? {}),
          stats: () => this.#stats(),
          metrics: () => this.#collect(),
          ...(this.#owner ? {} : this.#profileAnswers()),
        })
      case 'Drain':
        void this.#drain(actor)
    }
  }

  /** The answers about profiles, of an actor with a thread of its own. */
  #profileAnswers(): Record<string, (...details: never[]) => unknown> {
    let recorder: ThreadRecorder | undefined
    return {
      [profileAsks.start]: async (kind: ProfileKind, seconds: number) => {
        recorder ??= new (await import('./thread-recorder.ts')).ThreadRecorder()
        await recorder.start(kind, seconds)
      },
      [profileAsks.stop]: () => recorder?.stop(),
    }
  }

  /** The answers of an actor that shares its thread, wrapped so that timers and promises that they start belong to the actor's owner. */
  #owned(asks: Readonly<Record<string, (...details: never[]) => unknown>>): Record<string, (...details: never[]) => unknown> {
    const owner = this.#owner
    if (!owner) return { ...asks }
    return Object.fromEntries(Object.entries(asks).map(([question, answer]) => [question, (...details) => owner.run(() => answer(...details))]))
  }

  async #drain(actor: Behaviour<unknown>): Promise<void> {
    try {
      await actor.drain?.()
    } catch (error) {
      return this.fail(error)
    }
    if (this.#stopped) return
    this.#stopped = true
    this.#sendLog()
    this.#report({ type: 'Drained' })
    this.#links?.close()
    this.#port.close()
    this.#owner?.end()
  }

  /** Releases everything. A worker thread ends with all that is in it; an actor that shares its thread is drained. */
  #stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    this.#links?.close()
    for (const control of this.#pending.splice(0)) if (control.type === 'Link') control.port.close()
    this.#port.close()
    this.#owner?.cancelTimers()
    if (this.#behaviour) void this.#release(this.#behaviour)
    else this.#owner?.end()
  }

  async #release(behaviour: Behaviour<unknown>): Promise<void> {
    const owner = this.#owner
    if (!owner) return
    const late = after(releaseMs, () => owner.end())
    try {
      await behaviour.drain?.()
    } catch {
      // The actor's error has been reported already, and its timers are cancelled below.
    }
    late.cancel()
    owner.end()
  }

  #stats(): ActorStats {
    const utilisation = performance.eventLoopUtilization(this.#lastUtilisation)
    this.#lastUtilisation = performance.eventLoopUtilization()
    return {
      name: this.#options.name,
      kind: this.#definition.kind,
      depth: this.#links?.depth ?? 0,
      processed: this.#processed,
      coalesced: this.#links?.coalesced ?? 0,
      utilisation: utilisation.utilization,
      heapBytes: getHeapStatistics().used_heap_size,
      cpuSeconds: isMainThread ? 0 : threadCpuMs() / 1000,
    }
  }

  #collect(): ActorMetrics {
    return { stats: this.#stats(), incarnation: this.#incarnation, families: this.#metrics.collect() }
  }
}

/** Converts an error to plain data. */
export function wireError(error: unknown): WireError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), stack: '' }
  return {
    name: error.name,
    message: error.message,
    stack: error.stack ?? '',
    ...(error.cause === undefined ? {} : { cause: wireError(error.cause) }),
  }
}
