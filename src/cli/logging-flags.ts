/** The logging flags that every command of both binaries accepts (docs/operation.md, "Flags"). */
import { type LogOptions, parseScopeLevels, parseScopes } from '../logging/levels.ts'
import { type FlagValues, int, paths, text, toggle } from './flags.ts'

/** Returns the logging flags of a binary with the given log scopes. */
export function loggingFlags(scopes: readonly string[]) {
  const list = scopes.join(', ')
  return {
    log_as_json: toggle({ description: 'output as JSON instead of plain console format' }),
    log_caller: text({
      value: 'scope',
      default: '',
      description: `comma-separated scopes for which caller information is included, in packages file and line of a bundle; scopes: ${list}`,
    }),
    log_output_level: text({
      value: 'scope:level',
      default: 'default:info',
      description: `comma-separated <scope>:<level> pairs, the minimum level of messages output per scope; scopes: ${list}; levels: debug, info, warn, error, fatal, none`,
    }),
    log_rotate: text({ value: 'file', default: '', description: 'path of the optional rotating log file' }),
    log_rotate_max_age: int({ default: 30, range: [0, 2_147_483_647], description: 'maximum age in days before rotation; 0 means no limit' }),
    log_rotate_max_backups: int({ default: 1000, range: [0, 2_147_483_647], description: 'maximum number of backups kept; 0 means no limit' }),
    log_rotate_max_size: int({
      default: 104857600,
      range: [1, 2_147_483_647],
      description: 'maximum size in megabytes (1,048,576 bytes) of a log file before rotation; by default, 100 TiB, no file is rotated for its size',
    }),
    log_stacktrace_level: text({
      value: 'scope:level',
      default: 'default:none',
      description: 'comma-separated <scope>:<level> pairs, the minimum level at which stack traces are captured',
    }),
    log_target: paths({ default: ['stdout'], description: 'paths where the log is written; special values stdout and stderr' }),
  }
}

/** The logging flags of a binary. */
export type LoggingFlags = ReturnType<typeof loggingFlags>

/** Validates the logging flags. Throws an Error that names the flag and the fault. */
export function readLogOptions(flags: FlagValues<LoggingFlags>, scopes: readonly string[]): LogOptions {
  const about = <T>(flag: string, read: () => T): T => {
    try {
      return read()
    } catch (error) {
      throw new Error(`--${flag}: ${(error as Error).message}`)
    }
  }
  return {
    output: about('log_output_level', () => parseScopeLevels(flags.log_output_level, scopes, 'info')),
    stackTrace: about('log_stacktrace_level', () => parseScopeLevels(flags.log_stacktrace_level, scopes, 'none')),
    callers: about('log_caller', () => parseScopes(flags.log_caller, scopes)),
    asJson: flags.log_as_json,
    targets: flags.log_target,
    rotate:
      flags.log_rotate === ''
        ? undefined
        : {
            path: flags.log_rotate,
            maxSizeMb: flags.log_rotate_max_size,
            maxAgeDays: flags.log_rotate_max_age,
            maxBackups: flags.log_rotate_max_backups,
          },
  }
}
