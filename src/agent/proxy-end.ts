/** The exit of the proxy's process, and the agent's exit status that follows from it (docs/agent.md, P4). */

/** The exit of a process: its status, or the signal that terminated it. */
export interface ProxyEnd {
  readonly status: number | null
  readonly signal: string | null
}

/** Added to the number of the signal that terminated the proxy, as shells do. */
const signalBase = 128

/**
 * Returns the agent's exit status after an exit of the proxy that the agent did not cause: the proxy's status, or 128 plus the number of
 * the signal that terminated the proxy. `numbers` maps the names of signals to their numbers on this system.
 */
export function statusAfter({ status, signal }: ProxyEnd, numbers: Readonly<Record<string, number>>): number {
  if (signal !== null) return signalBase + (numbers[signal] ?? 0)
  return status ?? signalBase
}

/** Returns the log text for the exit of the proxy. */
export function describeEnd({ status, signal }: ProxyEnd): string {
  if (signal === 'SIGKILL') return 'the proxy was ended by SIGKILL: the system does that when memory runs out'
  if (signal !== null) return `the proxy crashed or was ended: signal ${signal}`
  return status === 0 ? 'the proxy ended in order' : `the proxy ended with status ${status}`
}
