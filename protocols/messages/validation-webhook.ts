/** The configuration of the validating webhook: what its keeper asks the main thread for, as the leader of a term. */

/** Has the configuration read, the webhook tried and what follows written. */
export interface ValidationStep {
  readonly term: number
  /** The certificates that verify the webhook, PEM; empty: those in the configuration stay. */
  readonly bundle: string
  /** Whether `failurePolicy` becomes `Ignore` when the webhook is not seen to deny. */
  readonly opens: boolean
}

/** What came of it. */
export type ValidationStepOutcome =
  /** There is no such configuration. */
  | { readonly outcome: 'absent' }
  /** The webhook was seen to deny, and `failurePolicy` is `Fail`. */
  | { readonly outcome: 'closed'; readonly version: string; readonly isWritten: boolean }
  /** It was not seen to deny, for this reason. */
  | { readonly outcome: 'open'; readonly version: string; readonly isWritten: boolean; readonly reason: string }
  /** The term is over. */
  | { readonly outcome: 'lost' }
  /** A call failed: of reading the configuration or of writing it. `word`: the reason in one word, for metrics. */
  | { readonly outcome: 'failed'; readonly at: 'load' | 'update'; readonly word: string; readonly reason: string }

/** Configuration of the keeper. */
export interface ValidationControllerConfig {
  /** The name of the ValidatingWebhookConfiguration. */
  readonly name: string
  /** Whether the certificate of the webhook is in files, as are then those that verify it; otherwise an authority has signed it. */
  readonly hasFiles: boolean
}
