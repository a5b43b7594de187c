/** Keeps actors alive: one-for-one restarts with exponential back-off, an intensity limit, links that are made anew. */
import { MessageChannel } from 'node:worker_threads'
import type { WireError } from '../../protocols/messages/errors.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { askWithin } from './ask.ts'
import { monotonicMs } from './clock.ts'
import type { Logger } from './logger.ts'
import { type ActorSpec, type RunningActor, type SpawnMode, spawnActor } from './spawn.ts'

/** How restarts are paced; times in milliseconds. */
export interface RestartPolicy {
  readonly firstDelay: number
  readonly longestDelay: number
  /** More restarts than this within `window` mean that restarting does not help: the actor counts as failing. */
  readonly intensity: number
  readonly window: number
}

/** The policy of every actor unless a test sets another. */
export const restartPolicy: RestartPolicy = { firstDelay: 50, longestDelay: 10_000, intensity: 10, window: 60_000 }

/** What a supervisor knows of one of its actors. */
export interface ActorState {
  readonly name: string
  /** `failing`: restarted more often than the policy allows; it is still tried again, at the longest delay. */
  readonly state: 'starting' | 'running' | 'restarting' | 'failing' | 'stopped'
  readonly restarts: number
  readonly lastError: WireError | undefined
  /** Unix milliseconds of the last start. */
  readonly startedAt: number
}

interface Child {
  readonly spec: ActorSpec
  actor: RunningActor | undefined
  state: ActorState['state']
  restarts: number
  recent: number[]
  lastError: WireError | undefined
  startedAt: number
  timer: NodeJS.Timeout | undefined
}

/** Supervises a fixed family of actors and the links between them. */
export class Supervisor {
  readonly #children = new Map<string, Child>()
  readonly #links: [string, string][] = []
  readonly #waiters: (() => void)[] = []
  readonly #mode: SpawnMode
  readonly #log: Logger
  readonly #logOptions: LogOptions
  readonly #logged: (records: readonly LogRecord[]) => void
  readonly #answers: Readonly<Record<string, unknown>>
  readonly #policy: RestartPolicy
  /** Number of the last link that was made. */
  #incarnations = 0
  #stopping = false

  constructor(options: {
    mode: SpawnMode
    log: Logger
    logOptions: LogOptions
    /** Where the log lines of actors go. */
    logged(records: readonly LogRecord[]): void
    /** Questions that actors may ask. */
    answers: Readonly<Record<string, unknown>>
    policy?: RestartPolicy
  }) {
    this.#mode = options.mode
    this.#log = options.log
    this.#logOptions = options.logOptions
    this.#logged = options.logged
    this.#answers = options.answers
    this.#policy = options.policy ?? restartPolicy
  }

  /** Starts an actor and keeps it running. */
  start(spec: ActorSpec): void {
    const child: Child = { spec, actor: undefined, state: 'starting', restarts: 0, recent: [], lastError: undefined, startedAt: 0, timer: undefined }
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
      await new Promise<void>((resolve) => this.#waiters.push(resolve))
    }
  }

  /** Asks an actor. Rejects when it is not there or does not answer in time. */
  ask<Answer>(name: string, question: string, ...details: unknown[]): Promise<Answer> {
    return askWithin(this.#children.get(name)?.actor?.asks, question, details)
  }

  /** Asks all actors of a kind; those that do not answer are left out. */
  async askAll<Answer>(kind: string, question: string, ...details: unknown[]): Promise<Answer[]> {
    const names = [...this.#children.keys()].filter((name) => kind === '*' || name.split('/')[0] === kind)
    const answers = await Promise.allSettled(names.map((name) => this.ask<Answer>(name, question, ...details)))
    return answers.filter((answer) => answer.status === 'fulfilled').map((answer) => answer.value)
  }

  /** The state of every actor. */
  states(): ActorState[] {
    return [...this.#children.values()].map(({ spec, state, restarts, lastError, startedAt }) => ({
      name: spec.name,
      state,
      restarts,
      lastError,
      startedAt,
    }))
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
    const kinds = new Set([...kindsInOrder, ...[...this.#children.keys()].map((name) => name.split('/')[0] as string)])
    for (const kind of kinds) {
      const children = [...this.#children.values()].filter((child) => child.spec.name.split('/')[0] === kind)
      await Promise.all(children.map((child) => this.#drainOne(child, deadlineMs)))
    }
  }

  async #drainOne(child: Child, deadlineMs: number): Promise<void> {
    clearTimeout(child.timer)
    const actor = child.actor
    if (!actor || child.state !== 'running') {
      actor?.kill()
      return
    }
    const deadline = setTimeout(() => actor.kill(), deadlineMs)
    actor.drain()
    while (child.actor === actor) await new Promise<void>((resolve) => this.#waiters.push(resolve))
    clearTimeout(deadline)
  }

  #spawn(child: Child): void {
    child.startedAt = Date.now()
    child.actor = spawnActor(child.spec, child.spec.mode ?? this.#mode, this.#logOptions, this.#answers, {
      started: () => {
        child.state = 'running'
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
    child.actor = undefined
    if (this.#stopping || !error) {
      child.state = 'stopped'
      this.#notify()
      return
    }
    const now = monotonicMs()
    child.lastError = error
    child.restarts++
    child.recent = [...child.recent.filter((at) => at > now - this.#policy.window), now]
    const failing = child.recent.length > this.#policy.intensity
    const delay = failing ? this.#policy.longestDelay : Math.min(this.#policy.longestDelay, this.#policy.firstDelay * 2 ** (child.recent.length - 1))
    child.state = failing ? 'failing' : 'restarting'
    this.#log('default').error(`actor ${child.spec.name} ended, starts again in ${delay} ms: ${error.message}`, { restarts: child.restarts })
    this.#log('default').debug(error.stack)
    child.timer = setTimeout(() => this.#spawn(child), delay)
    this.#notify()
  }

  #notify(): void {
    for (const resolve of this.#waiters.splice(0)) resolve()
  }
}
