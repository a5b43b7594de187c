/** Runs jobs of several clients: a bounded number at a time, a bounded number waiting, and clients in turn. */
import { FairQueue } from '../../src/model/fair-queue.ts'

/** The bounds of {@link FairWork}. */
export interface WorkBounds {
  /** The number of jobs that run at a time: of all clients, and of one. */
  readonly atOnce: number
  readonly ofClient: number
  /** The number of jobs that wait, and their size together in bytes. Beyond, the newest job of the client with the most is refused. */
  readonly waiting: number
  readonly bytes: number
}

/** A job as its client gives it. */
export interface Job<Result> {
  /** Whose job it is; clients take turns. */
  readonly client: string
  /** What it keeps in memory while it waits, in bytes. */
  readonly bytes: number
  run(): Promise<Result>
  /** Whether nobody waits for the result any more: then a waiting job is refused in place of being run. */
  isGone?(): boolean
}

/** The result of a job that was not run. */
export const refusedJob = Symbol('refused')

interface Waiting {
  readonly client: string
  isGone(): boolean
  start(): Promise<void>
  refuse(): void
}

/** Runs jobs. Between the end of a job and the beginning of the next the event loop serves others. */
export class FairWork {
  readonly #bounds: WorkBounds
  readonly #queue: FairQueue<Waiting>
  /** The number of running jobs by client, and of all. */
  readonly #ofClients = new Map<string, number>()
  #running = 0
  #turn: NodeJS.Immediate | undefined

  constructor(bounds: WorkBounds) {
    this.#bounds = bounds
    this.#queue = new FairQueue({ calls: bounds.waiting, bytes: bounds.bytes })
  }

  /** Runs a job when it is its turn. Resolves with its result, or with {@link refusedJob} if it is not run. Rejects as the job does. */
  run<Result>({ client, bytes, run, isGone = () => false }: Job<Result>): Promise<Result | typeof refusedJob> {
    const { promise, resolve, reject } = Promise.withResolvers<Result | typeof refusedJob>()
    const waiting = { client, isGone, start: () => run().then(resolve, reject), refuse: () => resolve(refusedJob) }
    for (const refused of this.#queue.add(client, waiting, bytes)) refused.refuse()
    this.#begin()
    return promise
  }

  #begin(): void {
    while (this.#running < this.#bounds.atOnce) {
      const next = this.#queue.take((client) => (this.#ofClients.get(client) ?? 0) < this.#bounds.ofClient)
      if (!next) return
      if (next.isGone()) next.refuse()
      else void this.#start(next)
    }
  }

  async #start({ client, start }: Waiting): Promise<void> {
    this.#running++
    this.#ofClients.set(client, (this.#ofClients.get(client) ?? 0) + 1)
    await start()
    this.#running--
    const left = (this.#ofClients.get(client) ?? 1) - 1
    if (left > 0) this.#ofClients.set(client, left)
    else this.#ofClients.delete(client)
    this.#turn ??= setImmediate(() => {
      this.#turn = undefined
      this.#begin()
    })
  }
}
