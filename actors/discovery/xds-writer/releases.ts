/** Ends transport connections of a writer with all of their streams, so that their clients connect again, here or at another replica of discovery. */
import { status } from '../../../src/model/status-codes.ts'
import type { Transport, Transports } from '../../../src/transport/transports.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { Connection } from './connection.ts'

/** The connections of a writer, and what is told of those that are ended. */
export interface ReleaseParts {
  readonly transports: Transports<Connection>
  readonly log: ScopedLogger
  /** Counts connections that are ended so that they come back at another replica. */
  readonly spread: (count: number) => void
}

/** Ends connections of a writer. */
export class Releases {
  readonly #parts: ReleaseParts

  constructor(parts: ReleaseParts) {
    this.#parts = parts
  }

  readonly answers = {
    /**
     * Ends the oldest connections, so that they come back at another replica (docs/operation.md, R3): one that has come back is the last to be ended
     * again. Returns how many there were.
     */
    spread: (count: number): number => {
      const oldest = this.#parts.transports.oldest(count)
      this.#parts.spread(oldest.length)
      end(oldest, 'the connection is closed so that the proxies of all replicas are spread')
      return oldest.length
    },
  }

  /** Ends the newest connections, for which the kernel then chooses a writer each. */
  balance(count: number): void {
    const { transports, log } = this.#parts
    const newest = transports.newest(count)
    log.info(`closing ${newest.length} of ${transports.size} connections to balance them among the writers`)
    end(newest, 'the connection is closed for load balancing')
  }
}

function end(transports: readonly Transport<Connection>[], reason: string): void {
  for (const { streams } of transports) for (const { stream } of streams) stream.release(status.unavailable, reason)
}
