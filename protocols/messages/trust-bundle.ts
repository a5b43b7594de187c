/** The roots that discovery announces to the agent, through the relay. */

/** The roots that peers are to be verified with were announced. A secret agent that is restarted is sent the last ones again. */
export interface TrustBundleChanged {
  readonly type: 'TrustBundleChanged'
  /** PEM, as received. */
  readonly roots: string
}
