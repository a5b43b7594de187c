/** What `mesh-iptables` is asked to do. */
import type { RedirectSettings } from './options.ts'

/** Settings, as text; switches; and what is said before anything is done. */
export interface RedirectOrder {
  readonly settings: RedirectSettings
  /** Name of the user under which the proxy runs. */
  readonly proxyUser: string
  readonly isDryRun: boolean
  readonly restoreFormat: boolean
  readonly redirectDns: boolean
  readonly skipRuleApply: boolean
  readonly runValidation: boolean
  readonly probePort: number
  readonly probeTimeoutMs: number
  /** The variables that are printed, in order, with what the environment has for them. */
  readonly environment: readonly (readonly [name: string, value: string])[]
  /** Variables whose values cannot be read. */
  readonly warnings: readonly string[]
}
