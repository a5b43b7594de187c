/** The levels of the log while the service runs. */
import type { LogLevels } from '../../../protocols/messages/log.ts'

/** The log levels in force, and how to change them in all threads. */
export interface LevelsInForce {
  get(): LogLevels
  /** Resolves when all threads that respond have applied the levels. */
  set(levels: LogLevels): Promise<void>
}
