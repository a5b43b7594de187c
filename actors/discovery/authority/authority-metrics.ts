/** Metrics of the certificate authority. */
import type { SignError } from '../../../protocols/messages/authority.ts'
import { readCertificates } from '../../../src/ca/certificate.ts'
import { Counter, Gauge, type Registry } from '../../runtime/metrics.ts'
import type { InForce } from './in-force.ts'

const signErrors: readonly SignError[] = ['CA_NOT_READY', 'CSR_ERROR', 'TTL_ERROR', 'CERT_GEN_ERROR', 'UNKNOWN']

/** Registers the metrics, with every series present from the start, and returns the functions that update them. */
export function authorityMetrics(registry: Registry) {
  const registers = [registry]
  const counter = (name: string, help: string) => new Counter({ name, help, registers })
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers })
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
  const root = gauge('citadel_server_root_cert_expiry_timestamp', 'Unix seconds when the root cert expires; negative when there is none')
  const chain = gauge('citadel_server_cert_chain_expiry_timestamp', 'Unix seconds when the CA cert chain expires; negative when there is none')
  for (const one of [root, chain]) one.set(-1)
  return {
    issued: () => issued.inc(),
    failed: (error: SignError) => failed.inc({ error }),
    unread: () => unread.inc(),
    nameless: () => nameless.inc(),
    inForce({ workloads, bundle }: InForce): void {
      const [first] = readCertificates(bundle[0] ?? '')
      root.set(first ? first.notAfter / 1000 : -1)
      chain.set(workloads.within.notAfter / 1000)
    },
  }
}

/** The functions that update the metrics of the authority. */
export type AuthorityMetrics = ReturnType<typeof authorityMetrics>
