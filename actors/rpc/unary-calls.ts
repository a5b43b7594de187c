/** The calls of a unary method: one request message, one answer, within the bounds of the method. */
import { randomInt } from 'node:crypto'
import { clientKey } from '../../src/model/client-address.ts'
import { status } from '../../src/model/status-codes.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { deadlineAfter } from '../runtime/timers.ts'
import type { Call, CallOrigin, CallStatus } from './call.ts'
import { CallSlots } from './call-slots.ts'
import type { RpcRequest, RpcResponse, UnaryRpc } from './rpc-methods.ts'
import { timeLimitOf } from './time-limit.ts'

/** A request without its call. */
export type BareRequest = Omit<RpcRequest, 'call' | 'refusal'>

/** A response that is complete. */
export interface WholeResponse extends Pick<RpcResponse, 'status' | 'headers'> {
  readonly body: readonly Uint8Array[]
  readonly trailers: Readonly<Record<string, string>>
}

/** A call that has a slot. */
export interface BegunCall {
  /** Answers the request, whose message has arrived. Undefined when the call was refused meanwhile, or nobody waits for the answer. */
  answer(request: BareRequest): Promise<WholeResponse | undefined>
  /** The client is gone, or has got its answer. */
  over(): void
}

/**
 * Retry delay of a call refused for lack of capacity, in milliseconds: randomized, so that clients refused together do not retry
 * together.
 */
const retryMs = (): number => 500 + randomInt(1000)

/** The reason of aborted signals. Without one, each would get an exception with a stack, which costs 0.05 ms. */
const callIsOver = 'the call is over'

/** Runs the calls of one method. */
export class UnaryCalls {
  readonly #method: UnaryRpc
  readonly #failed: (error: unknown) => void
  readonly #slots: CallSlots

  /** `failed` is called when the implementation cannot be loaded. */
  constructor(method: UnaryRpc, failed: (error: unknown) => void) {
    this.#method = method
    this.#failed = failed
    this.#slots = new CallSlots(method.bounds.concurrent)
  }

  /** Maximum size of a request message, in bytes. */
  get requestBytes(): number {
    return this.#method.bounds.requestBytes
  }

  /**
   * Begins a call whose headers have arrived. `refuse` is called at most once, also before this returns; then there is no answer. Returns
   * undefined when it is refused at once.
   */
  begin(origin: CallOrigin, refuse: (as: CallStatus) => void): BegunCall | undefined {
    const { timeLimit, concurrent } = this.#method.bounds
    const clientLimit = timeLimitOf(origin.headers)
    if (typeof clientLimit === 'string') return void refuse({ code: status.invalidArgument, message: clientLimit })
    const isOver = new AbortController()
    const end = (as: CallStatus) => {
      if (isOver.signal.aborted) return
      over()
      refuse(as)
    }
    const slot = this.#slots.enter(clientKey(origin.peer), () => end(tooMany(concurrent)))
    if (!slot) return void refuse(tooMany(concurrent))
    const limitMs = Math.min(clientLimit, timeLimit)
    const until = monotonicMs() + limitMs
    const limit = deadlineAfter(limitMs, () => end({ code: status.deadlineExceeded, message: 'the deadline of the call was exceeded' }))
    const over = () => {
      limit.cancel()
      slot.gone()
      isOver.abort(callIsOver)
    }
    const call = { ...propertiesOf(origin), signal: isOver.signal, restMs: () => Math.max(0, until - monotonicMs()) }
    return {
      over,
      answer: async (request) => {
        if (isOver.signal.aborted) return undefined
        slot.arrived()
        const answer = await this.#answer({ ...request, call }).finally(() => slot.answered())
        if (!isOver.signal.aborted && answer) return answer
        return void end({ code: status.internal, message: 'internal error' })
      },
    }
  }

  /** The answer to a call that was refused, in the protocol of its request. */
  async refusal(origin: CallOrigin, request: BareRequest, refusal: CallStatus): Promise<WholeResponse | undefined> {
    return this.#answer({ ...request, call: { ...propertiesOf(origin), signal: AbortSignal.abort(callIsOver), restMs: () => 0 }, refusal })
  }

  /** Undefined when the implementation cannot be loaded. */
  async #answer(request: RpcRequest): Promise<WholeResponse | undefined> {
    try {
      const handler = await this.#method.load()
      const { status: code, headers, body, trailers } = await handler(request)
      const parts: Uint8Array[] = []
      for await (const part of body) parts.push(part)
      return { status: code, headers, body: parts, trailers: trailers() }
    } catch (error) {
      this.#failed(error)
      return undefined
    }
  }
}

const tooMany = (concurrent: number): CallStatus => ({
  code: status.resourceExhausted,
  message: `more than ${concurrent} concurrent calls of this method`,
  retryAfterMs: retryMs(),
})

/** The properties of the origin as they are now: an origin may be a stream, which changes. */
function propertiesOf({ peer, headers, isSecure, isLocal, ends, certificateCaller, connection }: CallOrigin): Omit<Call, 'signal' | 'restMs'> {
  return { peer, headers, isSecure, isLocal, ends, certificateCaller, connection }
}
