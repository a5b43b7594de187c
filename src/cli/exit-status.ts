/** With which status a command ends that fails. */

/** The status of a command that fails, unless its error says another: wrong arguments, wrong configuration, no answer. */
export const failedStatus = 255

/** An error that ends the process with a status of its own. */
export class ExitError extends Error {
  readonly exitStatus: number

  constructor(message: string, exitStatus: number) {
    super(message)
    this.exitStatus = exitStatus
  }
}
