/** The stored state of a certificate authority: public data only. Private keys are stored separately, by the id of their certificate. */
import { X509Certificate } from 'node:crypto'
import { fingerprintOf } from '../identity/pem.ts'
import { list, number, object, oneOf, text } from './fields.ts'

/** A certificate that workload certificates are signed with, and its chain to a root. */
export interface AuthorityRecord {
  /** SHA-256 fingerprint of `certificate`, 64 hexadecimal digits in lower case. It is also the name of the private key. */
  readonly id: string
  /** The signing certificate, PEM. */
  readonly certificate: string
  /** Certificates between the signing certificate and the root, PEM. Empty when the signing certificate is the root. */
  readonly intermediates: string
  /** The root, PEM. */
  readonly root: string
  /**
   * The cross-certificate: subject and key of the root, signed by the previous authority, so that peers that trust only the previous root
   * can verify certificates of this one. PEM; empty when there is none.
   */
  readonly cross: string
  /** Whether the key was generated here or imported with `pilot-discovery ca import`. */
  readonly origin: 'made' | 'imported'
}

/** The stages of a rotation, in order; `stable` means that no rotation is under way (docs/certificates.md, R2). */
export const stages = ['stable', 'announce', 'trust-both', 'sign-with-new', 'retire'] as const
export type Stage = (typeof stages)[number]

/** A root that was replaced outside a rotation, and until when it is still trusted, in Unix milliseconds. */
export interface FormerRoot {
  readonly certificate: string
  readonly until: number
}

/** The state of an authority. */
export interface AuthorityState {
  /** Oldest first. One while the stage is `stable` (none before the first root is made), two in a rotation. */
  readonly authorities: readonly AuthorityRecord[]
  readonly stage: Stage
  /** When the stage began, in Unix milliseconds. */
  readonly since: number
  /** The number of stages that have begun so far. It identifies what was issued in the current stage independently of the clock. */
  readonly epoch: number
  readonly formerRoots: readonly FormerRoot[]
  /** The roots in force when last recorded, from any source, one PEM text each. */
  readonly inForce: readonly string[]
  /** Own roots that a client was seen to use: it presented a certificate of it. Fingerprints of `authorities` (R15). */
  readonly inUse: readonly string[]
  /** Authorities of rotations that have ended, whose keys are kept until the present root was seen in use, oldest first (R15). */
  readonly retired: readonly AuthorityRecord[]
  /** Roots that are distrusted by command, wherever they come from, one PEM text each (R16). */
  readonly distrusted: readonly string[]
}

/** The state of an authority that has no root yet. */
export const emptyState: AuthorityState = {
  authorities: [],
  stage: 'stable',
  since: 0,
  epoch: 0,
  formerRoots: [],
  inForce: [],
  inUse: [],
  retired: [],
  distrusted: [],
}

/** The maximum length of a list in the state. */
export const longestList = 64

/**
 * Parses the JSON form of {@link AuthorityState}. Throws an Error that names the invalid field. The last three lists may be missing: earlier
 * versions did not write them.
 */
export function readState(value: unknown): AuthorityState {
  const { authorities, stage, since, epoch, formerRoots, inForce, inUse = [], retired = [], distrusted = [] } = object(value, 'the state')
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
    inUse: list(inUse, 'inUse', longestList).map((entry, index) => text(entry, `inUse[${index}]`)),
    retired: list(retired, 'retired', longestList).map((entry, index) => readAuthority(entry, `retired[${index}]`)),
    distrusted: list(distrusted, 'distrusted', longestList).map((entry, index) => pem(entry, `distrusted[${index}]`)),
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

/** Returns `value` as a text that begins with a certificate in PEM. Throws an Error that names the field otherwise. */
function pem(value: unknown, where: string): string {
  const given = text(value, where)
  try {
    new X509Certificate(given)
    return given
  } catch (error) {
    throw new Error(`${where}: is not a certificate in PEM: ${(error as Error).message}`)
  }
}
