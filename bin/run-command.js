import { readCommandLine } from '../src/cli/command-line.ts'
import { failedStatus } from '../src/cli/exit-status.ts'

/**
 * Runs the command in the command line, or `help` when there is none or help is requested. An error is written to stderr as `Error: ...`
 * and ends the process with the error's exit status, by default 255.
 */
export async function runCommand(given, commands, help) {
  // The reader of a pipe may close it early (EPIPE).
  process.stdout.on('error', () => {})
  try {
    const found = readCommandLine(given, commands)
    if (found) await found.command.run(found.line)
    else await (await help())(given)
  } catch (error) {
    if (error?.oclif?.exit === 0) process.exit(0)
    process.stderr.write(`Error: ${String(error?.message ?? error).split('\nSee more help')[0]}\n`)
    process.exit(error?.exitStatus ?? failedStatus)
  }
}
