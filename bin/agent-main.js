import { runCommand } from './run-command.js'

/** Runs the command line. The commands are the files in `agent/`. */
export const main = (given) =>
  runCommand(given, new URL('./agent', import.meta.url), {
    bin: 'pilot-agent',
    description: 'Runs beside a workload: starts its proxy and keeps it supplied with certificates and configuration.',
  })
