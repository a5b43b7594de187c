/** How requests for certificates are refused: counted, logged within bounds, and answered with a status. */
import type { CertificateAnswer, SignError } from '../../../protocols/messages/authority.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { AuthorityMetrics } from './authority-metrics.ts'

/** An answer without a certificate. */
export type Refusal = Exclude<CertificateAnswer, { chain: unknown }>

/** Refuses requests. */
export class Refusals {
  readonly #metrics: Pick<AuthorityMetrics, 'failed'>
  readonly #log: Logger
  readonly #lines = new LineBounds()

  constructor(metrics: Pick<AuthorityMetrics, 'failed'>, log: Logger) {
    this.#metrics = metrics
    this.#log = log
  }

  /** Returns the answer to a request of `peer`. `code`: a gRPC status code. */
  refuse(code: number, error: SignError, reason: string, peer: string, retryAfterMs?: number): Refusal {
    this.#metrics.failed(error)
    this.warn(`${error}|${peer}`, `request of ${peer} refused (${error}): ${reason}`)
    return { code, error, message: `CSR signing error (${reason})`, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  }

  /** Logs a failure. The number of lines of one kind is limited; those whose kind begins with `signing` concern all callers. */
  warn(kind: string, line: string): void {
    if (this.#lines.take(kind, monotonicMs()) !== 'no') this.#log(kind.startsWith('signing') ? 'pkica' : 'serverca').warn(line)
  }
}
