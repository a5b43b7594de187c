/** The health of the service (`grpc.health.v1`): that of the readiness page, for the server as a whole and for each service alike. */
import { HealthCheckResponse_ServingStatus as Serving } from '../../../protocols/gen/grpc/health/v1/health_pb.js'
import { checkEvery, type Timer } from '../../runtime/timers.ts'

/** Interval at which readiness is determined for those who watch it, in milliseconds. */
const checkMs = 1000

/** The health of the server and its services. */
export class Health {
  readonly #isReady: () => Promise<boolean>
  readonly #services: ReadonlySet<string>
  /** Those who watch: called after each check. */
  readonly #watchers = new Set<(isReady: boolean) => void>()
  #timer: Timer | undefined
  #isChecking = false

  /** `isReady`: rejects when it is not known, which counts as not ready. `services`: the full names of the services. */
  constructor(isReady: () => Promise<boolean>, services: readonly string[]) {
    this.#isReady = () => isReady().catch(() => false)
    this.#services = new Set(['', ...services])
  }

  /** The names of the server (empty) and its services. */
  get names(): Iterable<string> {
    return this.#services
  }

  /** The status of a service; undefined if there is none of this name. */
  async of(service: string): Promise<Serving | undefined> {
    return this.#services.has(service) ? servingOf(await this.#isReady()) : undefined
  }

  /** The status of a service, now and after each change, until `over` is aborted. */
  async *watch(service: string, over: AbortSignal): AsyncIterable<Serving> {
    let last = (await this.of(service)) ?? Serving.SERVICE_UNKNOWN
    yield last
    while (!over.aborted) {
      const isReady = await this.#nextCheck(over)
      if (isReady === undefined || !this.#services.has(service) || servingOf(isReady) === last) continue
      last = servingOf(isReady)
      yield last
    }
  }

  /** Resolves with the next check; undefined when `over` is aborted before it. */
  #nextCheck(over: AbortSignal): Promise<boolean | undefined> {
    return new Promise((resolve) => {
      const seen = (isReady?: boolean) => {
        over.removeEventListener('abort', gone)
        this.#watchers.delete(seen)
        resolve(isReady)
      }
      const gone = () => seen()
      over.addEventListener('abort', gone)
      this.#watchers.add(seen)
      this.#timer ??= checkEvery(checkMs, () => void this.#check()).unref()
    })
  }

  async #check(): Promise<void> {
    if (this.#watchers.size === 0) {
      this.#timer?.cancel()
      this.#timer = undefined
    }
    if (this.#isChecking || !this.#timer) return
    this.#isChecking = true
    const isReady = await this.#isReady()
    this.#isChecking = false
    for (const seen of [...this.#watchers]) seen(isReady)
  }
}

const servingOf = (isReady: boolean): Serving => (isReady ? Serving.SERVING : Serving.NOT_SERVING)
