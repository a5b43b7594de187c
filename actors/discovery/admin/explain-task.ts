/** Pool task: explains a resource of a proxy. */
import type { Explained, ExplainInput } from '../../../protocols/messages/explain.ts'
import { explain } from '../../../src/push/explain/trial.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** How long objects are tried, in milliseconds. */
const triedMs = 2500

/** Runs on a thread of the pool. */
export default function explained(input: ExplainInput): Explained {
  const until = monotonicMs() + triedMs
  return explain(input, () => monotonicMs() > until)
}
