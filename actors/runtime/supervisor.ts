/**
 * Supervises actors: one-for-one restarts with exponential back-off and an intensity limit. Links are made again after a restart. Actors may
 * come and go while the others run.
 */
import { MessageChannel } from 'node:worker_threads'
import type { WireError } from '../../protocols/messages/errors.ts'
import type { LogLevels, LogRecord } from '../../protocols/messages/log.ts'
import type { BoundedQuestions } from '../../protocols/messages/questions.ts'
import { type Asking, patient } from './ask.ts'
import { monotonicMs, wallClockMs } from './clock.ts'
import type { Logger } from './logger.ts'
import { processorWaitMs } from './processor-waits.ts'
import { type Health, type RestartPolicy, RestartRecord, restartPolicy } from './restarts.ts'
import { type ActorSpec, type RunningActor, type SpawnMode, spawnActor } from './spawn.ts'
import { after, checkEvery, type Timer } from './timers.ts'
import { beatInterval, Liveness, type WatchPolicy, watchPolicy } from './watchdog.ts'

/** State of an actor, as its supervisor sees it. */
export interface ActorState {
  readonly name: string
  readonly state: 'starting' | 'running' | 'restarting' | 'stopped'
  readonly health: Health
  /** Number of ends within the last window of the restart policy, or since the actor began to fail. */
  readonly ends: number
  readonly restarts: number
  readonly lastError: WireError | undefined
  /** How long a running actor has not answered a ping, in milliseconds; 0 while that is within the usual. */
  readonly silentMs: number
  /** Whether the watchdog watches the actor. An actor that shares the supervisor's thread cannot be watched. */
  readonly watched: boolean
  /** The values that the actor has reported since its start (`ActorContext.note`). */
  readonly notes: ReadonlyMap<string, unknown>
  /** Time of the last start, in Unix milliseconds. */
  readonly startedAt: number
}

interface Child {
  readonly spec: ActorSpec
  readonly record: RestartRecord
  readonly watched: boolean
  actor: RunningActor | undefined
  state: ActorState['state']
  liveness: Liveness
  /** The thread of the actor as the system numbers it, and how long it had waited for a processor at the last beat, in milliseconds. */
  thread: { readonly id: number; waitedMs: number } | undefined
  notes: Map<string, unknown>
  startedAt: number
  timer: Timer | undefined
  /** Whether it is being removed: it is not started again. */
  isLeaving: boolean
  /** Resolves when it has been removed. */
  left: Promise<void> | undefined
}

/** Why an actor ends that is restarted on purpose. */
const orderly: WireError = { name: 'Restarted', message: 'the actor is started again', stack: '' }

/** Supervises actors and the links between them. */
export class Supervisor {
  readonly #children = new Map<string, Child>()
  #links: (readonly [string, string])[] = []
  readonly #waiters: (() => void)[] = []
  readonly #mode: SpawnMode
  readonly #log: Logger
  #levels: LogLevels
  readonly #logged: (records: readonly LogRecord[]) => void
  readonly #answers: Readonly<Record<string, unknown>>
  readonly #policy: RestartPolicy
  readonly #watch: WatchPolicy
  readonly #processorWaitMs: typeof processorWaitMs
  readonly #watchTimer: Timer
  #lastBeat = monotonicMs()
  /** Incarnation of the last link. */
  #incarnations = 0
  #stopping = false

  constructor(options: {
    mode: SpawnMode
    log: Logger
    /** Log levels of the actors. */
    logOptions: LogLevels
    /** Receives the log lines of the actors. */
    logged(records: readonly LogRecord[]): void
    /** Functions for questions that actors may ask. */
    answers: Readonly<Record<string, unknown>>
    policy?: RestartPolicy
    /** When an actor counts as hung; by default none does. */
    watch?: WatchPolicy
    /** How long a thread has waited for a processor; by default as the system shows it. */
    processorWaitMs?: typeof processorWaitMs
  }) {
    this.#mode = options.mode
    this.#log = options.log
    this.#levels = options.logOptions
    this.#logged = options.logged
    this.#answers = options.answers
    this.#policy = options.policy ?? restartPolicy
    this.#watch = options.watch ?? watchPolicy(0)
    this.#processorWaitMs = options.processorWaitMs ?? processorWaitMs
    this.#watchTimer = checkEvery(beatInterval(this.#watch), () => this.#beat()).unref()
  }

  /**
   * Starts an actor, restarts it when it fails, and links it to `peers`. Throws an Error while there is an actor with this name, also while
   * that one is being removed. No effect while everything is being drained.
   */
  start(spec: ActorSpec, peers: readonly string[] = []): void {
    if (this.#stopping) return
    if (this.#children.has(spec.name)) throw new Error(`there is an actor ${spec.name} already`)
    const child: Child = {
      spec,
      record: new RestartRecord(this.#policy),
      watched: (spec.mode ?? this.#mode) === 'threads' && this.#watch.deadline < Number.POSITIVE_INFINITY,
      actor: undefined,
      state: 'starting',
      liveness: new Liveness(this.#watch),
      thread: undefined,
      notes: new Map(),
      startedAt: 0,
      timer: undefined,
      isLeaving: false,
      left: undefined,
    }
    this.#children.set(spec.name, child)
    this.#spawn(child)
    for (const peer of peers) this.connect(spec.name, peer)
  }

  /**
   * Removes an actor for good: drains it for at most `deadlineMs` and ends it, or does not start it again when it has ended; its links are
   * forgotten, and its peers withdraw what it announced. Resolves when a new actor may have its name; at once when there is none with it.
   */
  stop(name: string, deadlineMs: number): Promise<void> {
    const child = this.#children.get(name)
    if (!child) return Promise.resolve()
    child.isLeaving = true
    child.left ??= this.#remove(child, deadlineMs)
    return child.left
  }

  async #remove(child: Child, deadlineMs: number): Promise<void> {
    await this.#drainOne(child, deadlineMs)
    const { name } = child.spec
    const peers = this.#links.flatMap(([one, other]) => (one === name ? [other] : other === name ? [one] : []))
    this.#links = this.#links.filter((link) => !link.includes(name))
    this.#children.delete(name)
    for (const peer of peers) this.#children.get(peer)?.actor?.forget(name, this.#incarnations)
    this.#notify()
  }

  /** Links two actors, now and whenever one of them is restarted. */
  connect(one: string, other: string): void {
    this.#links.push([one, other])
    this.#join(one, other)
  }

  /** Resolves when every actor has started. */
  async started(): Promise<void> {
    while ([...this.#children.values()].some((child) => child.state !== 'running')) {
      await this.changed()
    }
  }

  /** Resolves at the next start, end or reported value of any actor. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  /**
   * Asks an actor. Rejects when it is not running, ends, or does not answer in time; at once when it has not answered a ping for longer
   * than usual.
   */
  ask<Answer>(name: string, question: string, ...details: unknown[]): Promise<Answer> {
    return this.#ask<Answer>(patient, name, question, details)
  }

  /** Passes a question with a deadline of its own on to an actor, for as long as `asking` waits. Rejects like {@link ask}. */
  askFor<Name extends keyof BoundedQuestions>(
    asking: Asking,
    name: string,
    question: Name,
    ...details: Parameters<BoundedQuestions[Name]>
  ): Promise<ReturnType<BoundedQuestions[Name]>> {
    return this.#ask(asking, name, question, details)
  }

  async #ask<Answer>(asking: Asking, name: string, question: string, details: readonly unknown[]): Promise<Answer> {
    const child = this.#children.get(name)
    if (!child?.actor) throw new Error(`request ${question} to actor ${name} failed: the actor is not running`)
    const silentMs = this.#silentMs(child)
    if (silentMs > 0)
      throw new Error(`request ${question} to actor ${name} was not sent: the actor has not answered for ${Math.round(silentMs / 1000)} s`)
    return child.actor.ask<Answer>(question, details, asking)
  }

  /** Asks all actors of a kind (`*`: of every kind). Actors that do not answer are left out. */
  async askAll<Answer>(kind: string, question: string, ...details: unknown[]): Promise<Answer[]> {
    const names = [...this.#children.keys()].filter((name) => kind === '*' || name.split('/')[0] === kind)
    const answers = await Promise.allSettled(names.map((name) => this.ask<Answer>(name, question, ...details)))
    return answers.filter((answer) => answer.status === 'fulfilled').map((answer) => answer.value)
  }

  /** The state of every actor. */
  states(): ActorState[] {
    const now = monotonicMs()
    return [...this.#children.values()].map((child) => ({
      name: child.spec.name,
      state: child.state,
      ...child.record.health(now),
      restarts: child.record.restarts,
      lastError: child.record.lastError,
      silentMs: this.#silentMs(child),
      watched: child.watched,
      notes: child.notes,
      startedAt: child.startedAt,
    }))
  }

  /** How long a running actor has not answered a ping, in milliseconds, if longer than one watchdog beat; otherwise 0. */
  #silentMs({ state, liveness }: Child): number {
    return state === 'running' && liveness.silentMs > beatInterval(this.#watch) ? liveness.silentMs : 0
  }

  /** Changes the log levels of all present and future actors. Resolves when the levels are in force. */
  async setLogLevels(levels: LogLevels): Promise<void> {
    this.#levels = levels
    await Promise.all([...this.#children.values()].map(({ actor }) => actor?.setLogLevels(levels)))
  }

  /** Ends an actor at once, as a crash would; it is restarted. Returns whether it was running. */
  kill(name: string): boolean {
    const actor = this.#children.get(name)?.actor
    actor?.kill()
    return actor !== undefined
  }

  /** Ends an actor at once, to start it with what it is given now. That counts as no failure; what it announced stays until it has told all again. */
  restart(name: string): void {
    this.#children.get(name)?.actor?.kill(orderly)
  }

  /** Drains actors in the order of their kinds, each for at most `deadlineMs`, then ends them. */
  async drain(kindsInOrder: readonly string[], deadlineMs: number): Promise<void> {
    this.#stopping = true
    this.#watchTimer.cancel()
    const kinds = new Set([...kindsInOrder, ...[...this.#children.keys()].map((name) => name.split('/')[0] as string)])
    for (const kind of kinds) {
      const children = [...this.#children.values()].filter((child) => child.spec.name.split('/')[0] === kind)
      await Promise.all(children.map((child) => child.left ?? this.#drainOne(child, deadlineMs)))
    }
  }

  async #drainOne(child: Child, deadlineMs: number): Promise<void> {
    child.timer?.cancel()
    const actor = child.actor
    if (!actor || child.state !== 'running') {
      actor?.kill()
      return
    }
    const deadline = after(deadlineMs, () => actor.kill())
    actor.drain()
    while (child.actor === actor) await this.changed()
    deadline.cancel()
  }

  #spawn(child: Child): void {
    child.startedAt = wallClockMs()
    child.state = 'starting'
    child.liveness = new Liveness(this.#watch)
    child.thread = undefined
    child.notes = new Map()
    child.actor = spawnActor(child.spec, child.spec.mode ?? this.#mode, this.#levels, this.#answers, {
      started: (threadId) => {
        child.state = 'running'
        if (threadId !== undefined) child.thread = { id: threadId, waitedMs: this.#processorWaitMs(threadId) ?? 0 }
        child.record.running(monotonicMs())
        child.liveness.started()
        this.#notify()
      },
      alive: () => child.liveness.answered(),
      noted: (name, value) => {
        child.notes.set(name, value)
        this.#notify()
      },
      logged: this.#logged,
      ended: (error) => this.#ended(child, error),
    })
    for (const [one, other] of this.#links) if (one === child.spec.name || other === child.spec.name) this.#join(one, other)
  }

  #join(one: string, other: string): void {
    const [first, second] = [this.#children.get(one)?.actor, this.#children.get(other)?.actor]
    if (!first || !second) return
    const channel = new MessageChannel()
    const incarnation = ++this.#incarnations
    first.link(other, incarnation, channel.port1)
    second.link(one, incarnation, channel.port2)
  }

  #ended(child: Child, error: WireError | undefined): void {
    child.spec.ended?.()
    child.actor = undefined
    if (child.isLeaving && error) this.#log('default').warn(`actor ${child.spec.name} ended before it had finished its work: ${error.message}`)
    if (this.#stopping || child.isLeaving || !error) {
      child.state = 'stopped'
      this.#notify()
      return
    }
    child.state = 'restarting'
    child.notes = new Map()
    child.timer = after(error === orderly ? this.#policy.firstMs : this.#failed(child, error), () => this.#spawn(child))
    this.#notify()
  }

  /** Records and tells that an actor has failed. Returns the delay before its restart, in milliseconds. */
  #failed({ spec, record }: Child, error: WireError): number {
    const delay = record.ended(monotonicMs(), error)
    const { restarts } = record
    this.#log('default').error(`actor ${spec.name} ended, starts again in ${delay} ms: ${error.message}`, { restarts })
    this.#log('default').debug(error.stack)
    return delay
  }

  /** Pings the actors on worker threads, and ends those whose answer is overdue. */
  #beat(): void {
    const now = monotonicMs()
    // Time during which this thread was blocked is not counted: answers may have been waiting to be read.
    const elapsed = Math.min(now - this.#lastBeat, 1.5 * beatInterval(this.#watch))
    this.#lastBeat = now
    for (const child of this.#children.values()) {
      const { actor, liveness, watched } = child
      if (!actor || !watched) continue
      const due = liveness.beat(elapsed, this.#waitedMs(child))
      if (due === 'ask') actor.ping()
      else if (due === 'end') actor.kill({ name: 'Hung', message: `did not answer for ${Math.round(liveness.silentMs / 1000)} s`, stack: '' })
    }
  }

  /** How long the thread of an actor waited for a processor since the last beat, in milliseconds. */
  #waitedMs({ thread }: Child): number {
    const waitedMs = thread && this.#processorWaitMs(thread.id)
    if (waitedMs === undefined || !thread) return 0
    const since = waitedMs - thread.waitedMs
    thread.waitedMs = waitedMs
    return since
  }

  #notify(): void {
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}
