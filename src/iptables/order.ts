/** The parsed command line of `mesh-iptables`. */
import type { RedirectSettings } from './options.ts'

/** Settings as text, switches, and the texts that are printed first. */
export interface RedirectOrder {
  readonly settings: RedirectSettings
  /** The name of the user that the proxy runs as. */
  readonly proxyUser: string
  readonly isDryRun: boolean
  readonly restoreFormat: boolean
  readonly redirectDns: boolean
  readonly skipRuleApply: boolean
  readonly runValidation: boolean
  readonly probePort: number
  readonly probeTimeoutMs: number
  /** The variables to print, in order, with their values. */
  readonly environment: readonly (readonly [name: string, value: string])[]
  /** Warnings about variables with invalid values. */
  readonly warnings: readonly string[]
}
