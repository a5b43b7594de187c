/** Keeps actors alive: one-for-one restarts with exponential back-off, an intensity limit, links that are made anew. */
import { MessageChannel } from 'node:worker_threads'
import type { WireError } from '../../protocols/messages/errors.ts'
import type { LogLevels, LogRecord } from '../../protocols/messages/log.ts'
import { monotonicMs, wallClockMs } from './clock.ts'
import type { Logger } from './logger.ts'
import { type Health, type RestartPolicy, RestartRecord, restartPolicy } from './restarts.ts'
import { type ActorSpec, type RunningActor, type SpawnMode, spawnActor } from './spawn.ts'
import { after, checkEvery, type Timer } from './timers.ts'
import { beatOf, Pulse, type WatchPolicy, watchPolicy } from './watchdog.ts'

/** What a supervisor knows of one of its actors. */
export interface ActorState {
  readonly name: string
  readonly state: 'starting' | 'running' | 'restarting' | 'stopped'
  readonly health: Health
  /** How often it ended of late: within the last window of the restart policy, or since it was failing. */
  readonly ends: number
  readonly restarts: number
  readonly lastError: WireError | undefined
  /** How long a running actor has owed a sign of life, in milliseconds, as far as that is longer than usual; else 0. */
  readonly silentMs: number
  /** Whether the watchdog sees it: an actor that shares the supervisor's thread cannot be watched. */
  readonly watched: boolean
  /** What it has noted of its condition since it started. */
  readonly notes: ReadonlyMap<string, unknown>
  /** Unix milliseconds of the last start. */
  readonly startedAt: number
}

interface Child {
  readonly spec: ActorSpec
  readonly record: RestartRecord
  readonly watched: boolean
  actor: RunningActor | undefined
  state: ActorState['state']
  pulse: Pulse
  notes: Map<string, unknown>
  startedAt: number
  timer: Timer | undefined
}

/** Supervises a fixed family of actors and the links between them. */
export class Supervisor {
  readonly #children = new Map<string, Child>()
  readonly #links: [string, string][] = []
  readonly #waiters: (() => void)[] = []
  readonly #mode: SpawnMode
  readonly #log: Logger
  #levels: LogLevels
  readonly #logged: (records: readonly LogRecord[]) => void
  readonly #answers: Readonly<Record<string, unknown>>
  readonly #policy: RestartPolicy
  readonly #watch: WatchPolicy
  readonly #watchTimer: Timer
  #lastBeat = monotonicMs()
  /** Number of the last link that was made. */
  #incarnations = 0
  #stopping = false

  constructor(options: {
    mode: SpawnMode
    log: Logger
    /** What the actors log. */
    logOptions: LogLevels
    /** Where the log lines of actors go. */
    logged(records: readonly LogRecord[]): void
    /** Questions that actors may ask. */
    answers: Readonly<Record<string, unknown>>
    policy?: RestartPolicy
    /** Which actors count as hung; nobody is watched without it. */
    watch?: WatchPolicy
  }) {
    this.#mode = options.mode
    this.#log = options.log
    this.#levels = options.logOptions
    this.#logged = options.logged
    this.#answers = options.answers
    this.#policy = options.policy ?? restartPolicy
    this.#watch = options.watch ?? watchPolicy(0)
    this.#watchTimer = checkEvery(beatOf(this.#watch), () => this.#beat()).unref()
  }

  /** Starts an actor and keeps it running. */
  start(spec: ActorSpec): void {
    const child: Child = {
      spec,
      record: new RestartRecord(this.#policy),
      watched: (spec.mode ?? this.#mode) === 'threads' && this.#watch.deadline < Number.POSITIVE_INFINITY,
      actor: undefined,
      state: 'starting',
      pulse: new Pulse(this.#watch),
      notes: new Map(),
      startedAt: 0,
      timer: undefined,
    }
    this.#children.set(spec.name, child)
    this.#spawn(child)
  }

  /** Links two actors, now and whenever one of them starts again. */
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

  /** Resolves when an actor has started, ended or noted something. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve))
  }

  /** Asks an actor. Rejects when it is not there, ends, or does not answer in time; at once when it owes a sign of life. */
  async ask<Answer>(name: string, question: string, ...details: unknown[]): Promise<Answer> {
    const child = this.#children.get(name)
    if (!child?.actor) throw new Error(`nobody to ask ${question}: ${name} is not running`)
    const silentMs = this.#silentMs(child)
    if (silentMs > 0) throw new Error(`${name} is not asked ${question}: it has not answered for ${Math.round(silentMs / 1000)} s`)
    return child.actor.ask<Answer>(question, details)
  }

  /** Asks all actors of a kind; those that do not answer are left out. */
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

  /** How long a running actor has owed a sign of life, if that is longer than usual; else 0. */
  #silentMs({ state, pulse }: Child): number {
    return state === 'running' && pulse.silentMs > beatOf(this.#watch) ? pulse.silentMs : 0
  }

  /** Has all actors log by other levels, those that start later too. Resolves when they do. */
  async setLogLevels(levels: LogLevels): Promise<void> {
    this.#levels = levels
    await Promise.all([...this.#children.values()].map(({ actor }) => actor?.setLogLevels(levels)))
  }

  /** Ends an actor at once, as a crash would; it is restarted like after one. */
  kill(name: string): boolean {
    const actor = this.#children.get(name)?.actor
    actor?.kill()
    return actor !== undefined
  }

  /** Drains actors in the order of their kinds, each for at most `deadlineMs`, then ends them. */
  async drain(kindsInOrder: readonly string[], deadlineMs: number): Promise<void> {
    this.#stopping = true
    this.#watchTimer.cancel()
    const kinds = new Set([...kindsInOrder, ...[...this.#children.keys()].map((name) => name.split('/')[0] as string)])
    for (const kind of kinds) {
      const children = [...this.#children.values()].filter((child) => child.spec.name.split('/')[0] === kind)
      await Promise.all(children.map((child) => this.#drainOne(child, deadlineMs)))
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
    child.pulse = new Pulse(this.#watch)
    child.notes = new Map()
    child.actor = spawnActor(child.spec, child.spec.mode ?? this.#mode, this.#levels, this.#answers, {
      started: () => {
        child.state = 'running'
        child.record.running(monotonicMs())
        child.pulse.started()
        this.#notify()
      },
      alive: () => child.pulse.answered(),
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
    if (this.#stopping || !error) {
      child.state = 'stopped'
      this.#notify()
      return
    }
    const delay = child.record.ended(monotonicMs(), error)
    child.state = 'restarting'
    child.notes = new Map()
    const { restarts } = child.record
    this.#log('default').error(`actor ${child.spec.name} ended, starts again in ${delay} ms: ${error.message}`, { restarts })
    this.#log('default').debug(error.stack)
    child.timer = after(delay, () => this.#spawn(child))
    this.#notify()
  }

  /** Asks the actors on threads for a sign of life, and ends those that have owed one for too long. */
  #beat(): void {
    const now = monotonicMs()
    // While this thread was held up itself, nothing is known of the others.
    const elapsed = Math.min(now - this.#lastBeat, 1.5 * beatOf(this.#watch))
    this.#lastBeat = now
    for (const { actor, pulse, watched } of this.#children.values()) {
      if (!actor || !watched) continue
      const due = pulse.beat(elapsed)
      if (due === 'ask') actor.ping()
      else if (due === 'end') actor.kill({ name: 'Hung', message: `did not answer for ${Math.round(pulse.silentMs / 1000)} s`, stack: '' })
    }
  }

  #notify(): void {
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}
