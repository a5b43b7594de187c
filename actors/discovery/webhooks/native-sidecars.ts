/** Whether the orchestrator has containers that start before the others of a pod and end after them (docs/injection.md, N11). */
import type { Features } from '../../../src/config/features.ts'
import { hasNativeSidecars } from '../../../src/inject/native-sidecars.ts'
import type { ActorContext } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** Times between two questions for the version, in milliseconds: until one was answered, and after that, since servers are upgraded. */
const times = { again: 2000, renewed: 600_000 } as const

/** Knows it: `ENABLE_NATIVE_SIDECARS`, and with `auto` the version of the API server. Without a version there are none. */
export class NativeSidecars {
  readonly #context: ActorContext<unknown>
  #areThere: boolean
  #timer: Timer | undefined
  #isClosed = false

  constructor(context: ActorContext<unknown>, { ENABLE_NATIVE_SIDECARS: wanted }: Features) {
    this.#context = context
    this.#areThere = wanted === true
    if (wanted === 'auto') void this.#ask()
  }

  get areThere(): boolean {
    return this.#areThere
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  async #ask(): Promise<void> {
    const version = await this.#context.askFor(patient, 'clusterVersion').catch(() => undefined)
    if (this.#isClosed) return
    if (version !== undefined) {
      const areThere = hasNativeSidecars(version)
      if (areThere !== this.#areThere)
        this.#context
          .log('validationServer')
          .info(`the API server has version ${version}: agents ${areThere ? 'start before' : 'run beside'} the other containers`)
      this.#areThere = areThere
    }
    this.#timer = after(version === undefined ? times.again : times.renewed, () => void this.#ask()).unref()
  }
}
