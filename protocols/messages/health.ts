/**
 * The health of an agent's workload, which the status server sends to the relay, and the relay to the discovery service (docs/agent.md,
 * H9).
 */

/** The workload became healthy or unhealthy. A relay that is restarted is sent the last state again. */
export interface HealthChanged {
  readonly type: 'HealthChanged'
  readonly healthy: boolean
  /** The reason why it is unhealthy; empty if it is healthy. */
  readonly message: string
}
