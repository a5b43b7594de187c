/** Responses with secrets: made for one stream, kept by nobody, and cleared when they have left (docs/resources.md, K8). */
import type { Catalog } from '../stream/catalog.ts'
import { responseFrame } from '../stream/frames.ts'
import { type Plan, Plans } from '../stream/plans.ts'
import type { Response } from '../stream/session.ts'
import type { Subscription } from '../stream/subscription.ts'
import type { TypeState } from '../stream/type-state.ts'

/** Makes plans of secrets. A subscription to secrets has no wildcard, so all that it gets is what it names. */
export class SecretPlans extends Plans {
  constructor(catalog: Catalog) {
    super(catalog, { enabled: false, size: 0 })
  }

  override full(typeUrl: string, state: TypeState, subscription: Subscription, delta: boolean): Plan {
    return this.some(typeUrl, state, subscription, new Set(subscription.names), delta)
  }
}

/**
 * The frame of a response as one copy, so that secrets may be replaced and cleared while it is on its way out. What was put together for it is cleared, except
 * the encoded secrets themselves, which `isKept` tells. Whoever sends it clears it when it has left.
 */
export function secretFrame(response: Response, delta: boolean, isKept: (chunk: Buffer) => boolean): Buffer {
  const parts = responseFrame(response, delta)
  const frame = Buffer.concat(parts)
  for (const chunk of [...response.plan.chunks, ...parts]) if (!isKept(chunk)) chunk.fill(0)
  return frame
}
