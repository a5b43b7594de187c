/** What a certificate authority remembers of itself: public data only. Its private keys are kept beside it, by the id of their certificate. */
import { X509Certificate } from 'node:crypto'
import { fingerprintOf } from '../identity/pem.ts'
import { list, number, object, oneOf, text } from './fields.ts'

/** A certificate that workload certificates are signed with, and how it leads to its root. */
export interface AuthorityRecord {
  /** SHA-256 fingerprint of `certificate`, 64 hexadecimal digits in lower case: the name of its private key too. */
  readonly id: string
  /** The signing certificate, PEM. */
  readonly certificate: string
  /** Certificates between the signing certificate and the root, PEM; empty when it is the root itself. */
  readonly intermediates: string
  /** The root, PEM. */
  readonly root: string
  /** Subject and key of the root, signed by the authority before: who trusts only that one verifies certificates of this one. PEM; empty when there is none. */
  readonly cross: string
  /** Whether its key was made here or came from `pilot-discovery ca import`. */
  readonly origin: 'made' | 'imported'
}

/** Stages of a rotation, in order; `stable` is none (docs/certificates.md, R2). */
export const stages = ['stable', 'announce', 'trust-both', 'sign-with-new', 'retire'] as const
export type Stage = (typeof stages)[number]

/** A root that was replaced outside a rotation, and until when it stays trusted, in Unix milliseconds. */
export interface FormerRoot {
  readonly certificate: string
  readonly until: number
}

/** Everything that is remembered. */
export interface AuthorityState {
  /** Oldest first: one while the stage is `stable` (none before the first was made), two in a rotation. */
  readonly authorities: readonly AuthorityRecord[]
  readonly stage: Stage
  /** When the stage began, in Unix milliseconds. */
  readonly since: number
  /** Number of stages that have begun so far: tells what was issued in this one whatever the clock does. */
  readonly epoch: number
  readonly formerRoots: readonly FormerRoot[]
  /** The roots that were last in force, from whatever source, PEM each. */
  readonly inForce: readonly string[]
}

/** Of an authority that has made nothing yet. */
export const emptyState: AuthorityState = { authorities: [], stage: 'stable', since: 0, epoch: 0, formerRoots: [], inForce: [] }

/** Most entries that a list of the state may have. */
const longestList = 64

/** Reads what {@link AuthorityState} looks like as JSON. Throws an Error that names the field that is not what it should be. */
export function readState(value: unknown): AuthorityState {
  const { authorities, stage, since, epoch, formerRoots, inForce } = object(value, 'the state')
  const state: AuthorityState = {
    authorities: list(authorities, 'authorities', longestList).map((entry, index) => readAuthority(entry, `authorities[${index}]`)),
    stage: oneOf(stage, stages, 'stage'),
    since: number(since, 'since'),
    epoch: number(epoch, 'epoch'),
    formerRoots: list(formerRoots, 'formerRoots', longestList).map((entry, index) => {
      const { certificate, until } = object(entry, `formerRoots[${index}]`)
      return { certificate: pem(certificate, `formerRoots[${index}].certificate`), until: number(until, `formerRoots[${index}].until`) }
    }),
    inForce: list(inForce, 'inForce', longestList).map((entry, index) => pem(entry, `inForce[${index}]`)),
  }
  const expected = state.stage === 'stable' ? [0, 1] : [2]
  if (!expected.includes(state.authorities.length))
    throw new Error(`authorities: in stage ${state.stage} there are ${expected.join(' or ')} of them, not ${state.authorities.length}`)
  return state
}

function readAuthority(value: unknown, where: string): AuthorityRecord {
  const { id, certificate, intermediates, root, cross, origin } = object(value, where)
  const record: AuthorityRecord = {
    id: text(id, `${where}.id`),
    certificate: pem(certificate, `${where}.certificate`),
    intermediates: intermediates === '' ? '' : pem(intermediates, `${where}.intermediates`),
    root: pem(root, `${where}.root`),
    cross: cross === '' ? '' : pem(cross, `${where}.cross`),
    origin: oneOf(origin, ['made', 'imported'], `${where}.origin`),
  }
  if (fingerprintOf(record.certificate) !== record.id) throw new Error(`${where}.id: is not the fingerprint of the certificate`)
  return record
}

/** A text that begins with a certificate in PEM. */
function pem(value: unknown, where: string): string {
  const given = text(value, where)
  try {
    new X509Certificate(given)
    return given
  } catch (error) {
    throw new Error(`${where}: is not a certificate in PEM: ${(error as Error).message}`)
  }
}
