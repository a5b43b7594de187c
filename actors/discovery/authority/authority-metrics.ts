/** Metrics of the certificate authority. */
import { X509Certificate } from 'node:crypto'
import type { SignError } from '../../../protocols/messages/authority.ts'
import { certificatesOf, fingerprintOf } from '../../../src/identity/pem.ts'
import { Counter, gaugesOf, type MetricRegistry } from '../../runtime/metrics.ts'
import type { InForce } from './in-force.ts'

const signErrors: readonly SignError[] = ['CA_NOT_READY', 'CSR_ERROR', 'TTL_ERROR', 'CERT_GEN_ERROR', 'UNKNOWN']

/**
 * Registers the metrics, with every series present from the start, and returns the functions that update them. `now` returns the Unix time
 * in milliseconds.
 */
export function authorityMetrics(registry: MetricRegistry, now: () => number) {
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const issued = counter('citadel_server_success_cert_issuance_count', 'successful certificate issuances')
  const unread = counter('citadel_server_csr_parsing_err_count', 'errors parsing a CSR')
  const nameless = counter('citadel_server_id_extraction_err_count', 'callers without an identity that a certificate can name')
  const failed = new Counter({
    name: 'citadel_server_csr_sign_err_count',
    help: 'errors signing a CSR, by kind',
    labelNames: ['error'],
    registers,
  })
  for (const error of signErrors) failed.inc({ error }, 0)
  const expiry: { root?: number; chain?: number } = {}
  const shown = (at: number | undefined): number => {
    if (at === undefined) return -1
    return at > now() ? at / 1000 : -at / 1000
  }
  const gauge = gaugesOf(registry)
  const negative = 'negative when it has expired, -1 when there is none'
  gauge('citadel_server_root_cert_expiry_timestamp', `Unix seconds when the root cert that signs workloads expires; ${negative}`, () =>
    shown(expiry.root),
  )
  gauge('citadel_server_cert_chain_expiry_timestamp', `Unix seconds when the CA cert chain expires; ${negative}`, () => shown(expiry.chain))
  return {
    issued: () => issued.inc(),
    failed: (error: SignError) => failed.inc({ error }),
    unread: () => unread.inc(),
    nameless: () => nameless.inc(),
    inForce({ workloads, bundle }: InForce): void {
      const root = bundle.find((one) => fingerprintOf(one) === workloads.root)
      expiry.root = root === undefined ? undefined : new X509Certificate(root).validToDate.getTime()
      expiry.chain = workloads.within.notAfter
    },
    /** Of an external signer: its roots, PEM, of which the one that expires first counts. */
    roots(bundle: string): void {
      expiry.root = Math.min(...certificatesOf(bundle).map((root) => root.validToDate.getTime()))
    },
  }
}

/** The functions that update the metrics of the authority. */
export type AuthorityMetrics = ReturnType<typeof authorityMetrics>
