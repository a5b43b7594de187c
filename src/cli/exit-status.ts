/** Exit statuses of commands that fail. */

/** The exit status of a failed command, unless its error has another: invalid arguments, invalid configuration, no response. */
export const failedStatus = 255

/** An error with the exit status of the process. */
export class ExitError extends Error {
  readonly exitStatus: number

  constructor(message: string, exitStatus: number) {
    super(message)
    this.exitStatus = exitStatus
  }
}
