/** Pool task: explains a resource of a proxy, or where it sends a request. */
import type { Explained, ExplainInput, Routing, RoutingInput } from '../../../protocols/messages/explain.ts'
import { routing } from '../../../src/push/explain/routing.ts'
import { explain } from '../../../src/push/explain/trial.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** How long objects are tried, in milliseconds. */
const triedMs = 2500

/** Runs on a thread of the pool; without an input it does nothing, by which the thread is known to have started. */
export default function explained(input: ExplainInput | RoutingInput | undefined): Explained | Routing | undefined {
  if (!input) return undefined
  if ('request' in input) return routing(input)
  const until = monotonicMs() + triedMs
  return explain(input, () => monotonicMs() > until)
}
