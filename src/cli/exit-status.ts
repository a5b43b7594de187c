/** Exit statuses of commands that fail. */
import { endWhenUnwritten } from './print.ts'

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

/** The exit status of commands that compare, when they cannot. */
export const troubleStatus = 2

/** Awaits the work of a command that compares. Its errors have the exit status {@link troubleStatus}. */
export async function reportTrouble(work: () => Promise<void>): Promise<void> {
  endWhenUnwritten(troubleStatus)
  try {
    await work()
  } catch (error) {
    throw new ExitError(error instanceof Error ? error.message : String(error), troubleStatus)
  }
}
