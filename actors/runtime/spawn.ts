/** Starts actors, each on a worker thread of its own or all in the calling thread. */
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import type { Control, Report } from '../../protocols/messages/envelope.ts'
import type { WireError } from '../../protocols/messages/errors.ts'
import type { LogLevels, LogRecord } from '../../protocols/messages/log.ts'
import type { ActorDefinition } from './actor.ts'
import { type Asking, askWithin, OpenQuestions, serveAsks, useAsks } from './ask.ts'
import { hostActorHere } from './host.ts'
import type { ThreadData } from './hosting.ts'

/** Describes an actor to start. */
export interface ActorSpec {
  /** Unique name, `<kind>` or `<kind>/<number>`. */
  readonly name: string
  /** Module that exports the definition as `actor`. */
  readonly module: URL
  /** The configuration; a function is called at every start of the actor. */
  readonly config: unknown | (() => unknown)
  /** Size of the young generation of the thread's heap in MiB. The default is {@link usualYoungMib}. */
  readonly youngMib?: number
  /** Where the actor runs, if not in the mode of its supervisor. */
  readonly mode?: SpawnMode
  /** Called after an incarnation has ended and before the next one starts, to reclaim its resources in shared memory. */
  readonly ended?: () => void
}

/** Where actors run: on worker threads, or in the thread that spawns them (tests, the agent). */
export type SpawnMode = 'threads' | 'in-thread'

/** Callbacks about a running actor. */
export interface SpawnEvents {
  /** `threadId`: the thread that the actor runs on, as the system numbers it, if it tells. */
  started(threadId: number | undefined): void
  logged(records: readonly LogRecord[]): void
  /** The actor answered a ping. */
  alive(): void
  /** The actor reported a value of its condition. */
  noted(name: string, value: unknown): void
  /** The actor has ended, with an error, or undefined after an orderly drain. */
  ended(error: WireError | undefined): void
}

/** Handle to a running actor, for its supervisor. */
export interface RunningActor {
  /** Asks the actor a question, for as long as `asking` waits. Rejects when it does not answer in time or ends. */
  ask<Answer>(question: string, details: readonly unknown[], asking?: Asking): Promise<Answer>
  /** Sends a ping, to be answered by {@link SpawnEvents.alive}. */
  ping(): void
  /** Changes the actor's log levels. Resolves when they are in force or the actor has ended. */
  setLogLevels(levels: LogLevels): Promise<void>
  /** Gives the actor a port to a peer. Of several links to one peer, the one with the highest incarnation counts. */
  link(peer: string, incarnation: number, port: MessagePort): void
  /** A peer was removed for good. Links to it up to this incarnation are forgotten, with what it announced. */
  forget(peer: string, incarnation: number): void
  drain(): void
  /** Ends the actor at once, as a crash with this error would. */
  kill(error?: WireError): void
}

/** Starts an actor. `answers` holds the functions for questions that the actor may ask. */
export function spawnActor(
  spec: ActorSpec,
  mode: SpawnMode,
  log: LogLevels,
  answers: Readonly<Record<string, unknown>>,
  events: SpawnEvents,
): RunningActor {
  const started = mode === 'threads' ? startThread(spec, log) : startHere(spec, log)
  let ended = false
  let failure: WireError | undefined
  const open = new OpenQuestions()
  const settingLevels: (() => void)[] = []
  const asked = new MessageChannel()
  const asking = new MessageChannel()
  const end = (error: WireError | undefined) => {
    if (ended) return
    ended = true
    open.end(new Error(`actor ${spec.name} has ended`))
    for (const resolve of settingLevels.splice(0)) resolve()
    events.ended(error)
    started.stop()
    for (const port of [asked.port1, asking.port1]) port.close()
  }
  started.onReport((report) => {
    // Late reports of an ended actor must not be taken for its successor's; only its log lines are still written.
    if (ended && report.type !== 'Logged') return
    if (report.type === 'Started') events.started(report.threadId)
    else if (report.type === 'Logged') events.logged(report.records)
    else if (report.type === 'Alive') events.alive()
    else if (report.type === 'LogLevelsSet') settingLevels.shift()?.()
    else if (report.type === 'Noted') events.noted(report.name, report.value)
    else if (report.type === 'Drained') end(undefined)
    else {
      failure = report.error
      end(failure)
    }
  })
  started.onExit((error) => end(failure ?? error ?? { name: 'Error', message: 'the actor ended without reporting an error', stack: '' }))
  const send = (control: Control, transfer: MessagePort[] = []) => started.post(control, transfer)
  serveAsks(asking.port1, answers)
  send({ type: 'UseAsks', port: asking.port2 }, [asking.port2])
  send({ type: 'ServeAsks', port: asked.port2 }, [asked.port2])
  for (const port of [asked.port1, asking.port1]) port.unref()
  const asks = useAsks(asked.port1)
  return {
    ask: (question, details, asking) => askWithin(asks, question, details, { open, ...(asking && { asking }) }),
    ping: () => send({ type: 'Ping' }),
    setLogLevels(levels) {
      send({ type: 'SetLogLevels', levels })
      return new Promise((resolve) => (ended ? resolve() : settingLevels.push(resolve)))
    },
    link: (peer, incarnation, port) => send({ type: 'Link', peer, incarnation, port }, [port]),
    forget: (peer, incarnation) => send({ type: 'Forget', peer, incarnation }),
    drain: () => send({ type: 'Drain' }),
    kill: (error = { name: 'Killed', message: 'the actor was killed', stack: '' }) => end(error),
  }
}

interface Started {
  post(control: Control, transfer: MessagePort[]): void
  onReport(listen: (report: Report) => void): void
  onExit(listen: (error: WireError | undefined) => void): void
  stop(): void
}

/**
 * Usual size of the young generation of a thread's heap in MiB (three times V8's semi-space). A writer allocates mostly short-lived buffers;
 * a small young generation frees them early, which saves 150 MB of 500 with 400 proxies at no measurable CPU cost.
 */
export const usualYoungMib = 6

const isBuilt = import.meta.url.endsWith('.js')
/** The entry of a thread, and what it loads for an actor. In the package that is one file, which the build makes of the actor and of what hosts it. */
const entry = new URL(isBuilt ? './thread.js' : './thread.ts', import.meta.url)
const modulesOf = ({ href }: URL): Pick<ThreadData, 'module' | 'hosting'> => {
  if (!isBuilt) return { module: href, hosting: new URL('./hosting.ts', import.meta.url).href }
  const module = href.replace(/\.js$/, '-thread.js')
  return { module, hosting: module }
}

function startThread(spec: ActorSpec, log: LogLevels): Started {
  const worker = new Worker(entry, {
    name: spec.name,
    workerData: { ...modulesOf(spec.module), name: spec.name, config: configOf(spec), log } satisfies ThreadData,
    resourceLimits: { maxYoungGenerationSizeMb: spec.youngMib ?? usualYoungMib },
  })
  return {
    post: (control, transfer) => worker.postMessage(control, transfer),
    onReport: (listen) => worker.on('message', listen),
    onExit(listen) {
      worker.on('error', (error: unknown) => {
        const known = error instanceof Error ? error : new Error(String(error))
        listen({ name: known.name, message: known.message, stack: known.stack ?? '' })
      })
      worker.on('exit', () => listen(undefined))
    },
    stop: () => void worker.terminate(),
  }
}

function configOf({ config }: ActorSpec): unknown {
  return typeof config === 'function' ? config() : config
}

function startHere(spec: ActorSpec, log: LogLevels): Started {
  const channel = new MessageChannel()
  const options = { name: spec.name, config: structuredClone(configOf(spec)), log }
  import(spec.module.href).then(
    ({ actor }: { actor: ActorDefinition<unknown, unknown> }) => hostActorHere(actor, channel.port2, options),
    (error: Error) => channel.port2.postMessage({ type: 'Failed', error: { name: error.name, message: error.message, stack: error.stack ?? '' } }),
  )
  return {
    post: (control, transfer) => channel.port1.postMessage(control, transfer),
    onReport: (listen) => channel.port1.on('message', listen),
    onExit: (listen) => channel.port1.on('close', () => listen(undefined)),
    stop: () => channel.port1.close(),
  }
}
