/** Counts the documents of configuration files that were checked (`galley_validation_*`, docs/metrics.md). */
import { clusterKinds, kindOfKey, kinds } from '../../../../src/config/kinds.ts'
import type { DocumentFault, ParsedFile } from '../../../../src/config/parse.ts'
import { Counter, type MetricRegistry } from '../../../runtime/metrics.ts'

/** The resource of a kind of the core group. */
const coreResource = (kind: string) => ({ group: '', version: 'v1', resource: `${kind.toLowerCase()}s` })
const secrets = coreResource('Secret')

/** Counts the documents of each file that is read. */
export class ValidationMetrics {
  readonly #domain: string
  readonly #passed: Counter<'group' | 'version' | 'resource'>
  readonly #failed: Counter<'group' | 'version' | 'resource' | 'reason'>
  readonly #secretFailures: Counter

  /** `domain` is the mesh domain, in which the groups of all kinds are. */
  constructor(registry: MetricRegistry, domain: string) {
    const registers = [registry]
    const labelNames = ['group', 'version', 'resource'] as const
    this.#domain = domain
    this.#passed = new Counter({ name: 'galley_validation_passed', help: 'resources that are valid', labelNames, registers })
    const failed = { name: 'galley_validation_failed', help: 'resources that are not valid', labelNames: [...labelNames, 'reason'] as const }
    this.#failed = new Counter({ ...failed, registers })
    this.#secretFailures = new Counter({ name: 'num_file_secret_failures_total', help: 'Secrets in files that cannot be used', registers })
  }

  /** Counts the documents of a file. A document with several faults counts once. */
  checked({ objects, secrets: read, faults }: ParsedFile): void {
    for (const { kind, group, version } of objects)
      this.#passed.inc({ group, version, resource: kinds.get(kind)?.plural ?? coreResource(kind).resource })
    this.#passed.inc(secrets, read.length)
    const failed = new Map(faults.map((fault) => [fault.document, fault]))
    for (const fault of failed.values()) this.#count(fault)
  }

  #count({ key, mayBe }: DocumentFault): void {
    const name = key === undefined ? (mayBe ?? '') : kindOfKey(key)
    if (name === 'Secret') {
      this.#secretFailures.inc()
      this.#failed.inc({ ...secrets, reason: 'invalid_resource' })
      return
    }
    if (clusterKinds.has(name)) return this.#failed.inc({ ...coreResource(name), reason: 'invalid_resource' })
    const kind = kinds.get(name)
    if (kind) this.#failed.inc({ group: `${kind.group}.${this.#domain}`, resource: kind.plural, reason: 'invalid_resource' })
    else this.#failed.inc({ reason: mayBe === 'anything' ? 'yaml_decode_error' : 'unknown_type' })
  }
}
