/** How the proxy ended, and what follows from it (docs/agent.md, P4). */

/** The end of a process: with a status, or by a signal. */
export interface ProxyEnd {
  readonly status: number | null
  readonly signal: string | null
}

/** Added to the number of a signal that ended the proxy, as shells do. */
const signalBase = 128

/**
 * The status with which the agent ends when the proxy has ended by itself: that of the proxy, and 128 and the number of the signal when one ended it. `numbers` are those
 * of the signals of this system.
 */
export function statusAfter({ status, signal }: ProxyEnd, numbers: Readonly<Record<string, number>>): number {
  if (signal !== null) return signalBase + (numbers[signal] ?? 0)
  return status ?? signalBase
}

/** What the log says of the end. */
export function toldEnd({ status, signal }: ProxyEnd): string {
  if (signal === 'SIGKILL') return 'the proxy was ended by SIGKILL: the system does that when memory runs out'
  if (signal !== null) return `the proxy crashed or was ended: signal ${signal}`
  return status === 0 ? 'the proxy ended in order' : `the proxy ended with status ${status}`
}
