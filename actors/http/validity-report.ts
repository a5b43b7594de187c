/** Reports certificates that are not valid at present: in the log, as a metric, and in `/ready` (docs/certificates.md, V1 to V3). */
import { X509Certificate } from 'node:crypto'
import type { ScopedLogger } from '../runtime/logger.ts'
import { Gauge, type MetricRegistry } from '../runtime/metrics.ts'

/** What a certificate is used for, a label of the metric. */
export type CertificateKind = 'root' | 'chain' | 'serving'

/** A certificate in use. */
export interface UsedCertificate {
  readonly kind: CertificateKind
  /** Names the certificate in messages, as the subject of a sentence. */
  readonly described: string
  /** PEM. */
  readonly certificate: string
}

/** Where faults are reported. */
export interface ReportParts {
  /** The kinds that this report is about. */
  readonly kinds: readonly CertificateKind[]
  readonly metrics: MetricRegistry
  /** Undefined when another report of the process logs the same. */
  readonly log: ScopedLogger | undefined
  /** Called with the sentences for `/ready` when they have changed. */
  noted(lines: readonly string[]): void
}

/** Why a certificate (PEM) is not valid at the Unix time `now` in milliseconds, as the end of a sentence; undefined when it is valid. */
export function faultAt(certificate: string, now: number): string | undefined {
  const { validFromDate, validToDate } = new X509Certificate(certificate)
  if (now < validFromDate.getTime()) return `is not valid before ${validFromDate.toISOString()}`
  return now > validToDate.getTime() ? `has expired on ${validToDate.toISOString()}` : undefined
}

/** Remembers what was reported, so that each state is logged once. */
export class ValidityReport {
  readonly #parts: ReportParts
  readonly #gauge: Gauge<'certificate'>
  #lines: readonly string[] = []

  constructor(parts: ReportParts) {
    this.#parts = parts
    this.#gauge = new Gauge({
      name: 'mesh_certificates_not_valid',
      help: 'certificates in use that have expired or are not valid yet: root and chain of the authority, serving certificates',
      labelNames: ['certificate'],
      registers: [parts.metrics],
    })
    for (const kind of parts.kinds) this.#gauge.set({ certificate: kind }, 0)
  }

  /** The sentences reported last, one for each certificate that is not valid. */
  get lines(): readonly string[] {
    return this.#lines
  }

  /** Examines the certificates in use at the Unix time `now` in milliseconds. Returns whether all are valid. */
  check(used: readonly UsedCertificate[], now: number): boolean {
    const faults = used.flatMap(({ kind, described, certificate }) => {
      const fault = faultAt(certificate, now)
      return fault === undefined ? [] : [{ kind, line: `${described} ${fault}` }]
    })
    for (const kind of this.#parts.kinds) this.#gauge.set({ certificate: kind }, faults.filter((one) => one.kind === kind).length)
    const lines = faults.map(({ line }) => line)
    if (lines.join('\n') === this.#lines.join('\n')) return lines.length === 0
    for (const line of lines) if (!this.#lines.includes(line)) this.#parts.log?.error(line)
    if (lines.length === 0) this.#parts.log?.info('all certificates in use are valid again')
    this.#lines = lines
    this.#parts.noted(lines)
    return lines.length === 0
  }
}
