/** Responses with secrets: made for one stream, not cached, and cleared after they are sent (docs/resources.md, K8). */
import type { Catalog } from '../stream/catalog.ts'
import { responseFrame } from '../stream/frames.ts'
import { type Plan, Plans } from '../stream/plans.ts'
import type { Response } from '../stream/session.ts'
import type { Subscription } from '../stream/subscription.ts'
import type { TypeState } from '../stream/type-state.ts'

/** Makes plans of secrets. A wildcard covers no secret, so a full plan consists of the named ones. */
export class SecretPlans extends Plans {
  constructor(catalog: Catalog) {
    super(catalog, { enabled: false, size: 0 })
  }

  override full(typeUrl: string, state: TypeState, subscription: Subscription, delta: boolean): Plan {
    return this.ofNames(typeUrl, state, subscription, new Set(subscription.names), delta)
  }
}

/**
 * Returns the frame of a response as one copy, so that secrets may be replaced and cleared while the frame is being sent. Clears the
 * intermediate buffers except those of encoded secrets, for which `isKept` returns true. The caller clears the frame after it is sent.
 */
export function secretFrame(response: Response, delta: boolean, isKept: (chunk: Buffer) => boolean): Buffer {
  const parts = responseFrame(response, delta)
  const frame = Buffer.concat(parts)
  for (const chunk of [...response.plan.chunks, ...parts]) if (!isKept(chunk)) chunk.fill(0)
  return frame
}
