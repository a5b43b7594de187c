/** Whether the workload of an agent is healthy: the status server tells the relay, which tells the discovery service (docs/agent.md, H9). */

/** The workload became healthy or unhealthy. The last one is told again to a relay that starts anew. */
export interface HealthChanged {
  readonly type: 'HealthChanged'
  readonly healthy: boolean
  /** Why it is unhealthy; empty when it is healthy. */
  readonly message: string
}
