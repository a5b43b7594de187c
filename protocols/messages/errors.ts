/** An error as sent between threads: structured cloning would lose its class and fields. */
export interface WireError {
  readonly name: string
  readonly message: string
  readonly stack: string
  readonly cause?: WireError
}
