import { readCommandLine } from '../src/cli/command-line.ts'
import { failedStatus } from '../src/cli/exit-status.ts'

/**
 * Runs the command that the line names, or `help` when it names none or asks for help. An error goes to stderr as `Error: ...` and ends
 * the process with the status that it says, else 255.
 */
export async function runCommand(given, commands, help) {
  // Whoever reads the output may have read enough.
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
