/**
 * The staged rotation of the authority's own root (docs/certificates.md, R1 to R14): the signers and roots in force at each stage, when a
 * rotation is due, and the transitions between stages.
 */
import { X509Certificate } from 'node:crypto'
import { fingerprintOf } from '../identity/pem.ts'
import type { LedgerStage } from './ledger.ts'
import { type AuthorityRecord, type AuthorityState, type FormerRoot, type Stage, stages } from './state.ts'

/** A signing certificate and the intermediates that are sent after the certificates that it signs. */
export interface Signer {
  /** Fingerprint of the certificate. It is also the name of the private key. */
  readonly id: string
  /** PEM. */
  readonly certificate: string
  /**
   * Sent after a signed certificate: certificates up to the root, and the cross-certificate. PEM. Empty when the root signs and no
   * cross-certificate is in use.
   */
  readonly intermediates: string
}

/** The signers and roots in force at a stage. */
export interface Material {
  /** Signs workload certificates. */
  readonly workloads: Signer
  /** Signs the serving certificates of this process. */
  readonly serving: Signer
  /** The roots in responses of the authority, one PEM text each. */
  readonly bundle: readonly string[]
  /** The roots that the servers of this process accept for client certificates, one PEM text each. */
  readonly trusted: readonly string[]
}

/** Returns the signers and roots in force at the Unix time `now` in milliseconds. Undefined before there is a root. */
export function materialOf({ authorities, stage }: AuthorityState, now: number): Material | undefined {
  const [old, next = old] = authorities
  if (!old || !next) return undefined
  const isNew = { workloads: stage === 'sign-with-new' || stage === 'retire', serving: isAfter(stage, 'announce') }
  const both = stage === 'stable' ? [old.root] : [old.root, next.root]
  return {
    workloads: signer(isNew.workloads ? next : old, stage !== 'stable', now),
    serving: signer(isNew.serving ? next : old, true, now),
    bundle: stage === 'retire' ? [next.root] : isNew.workloads ? both.toReversed() : both,
    trusted: both,
  }
}

const isAfter = (stage: Stage, other: Stage): boolean => stages.indexOf(stage) > stages.indexOf(other)

function signer({ id, certificate, intermediates, root, cross }: AuthorityRecord, crosses: boolean, now: number): Signer {
  const own = certificate === root ? '' : certificate + intermediates
  return { id, certificate, intermediates: own + (crosses && cross !== '' && endOf(cross) > now ? cross : '') }
}

/** When a certificate in PEM expires, in Unix milliseconds. */
const endOf = (certificate: string): number => new X509Certificate(certificate).validToDate.getTime()

/**
 * The earliest expiry among an authority's certificate, its intermediates and its root, in Unix milliseconds. No certificate signed by the
 * authority is valid after it.
 */
export function chainExpiry({ certificate, intermediates, root }: AuthorityRecord): number {
  const between = intermediates.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  return Math.min(...[certificate, ...between, root].map(endOf))
}

/**
 * Whether a rotation is due: the remaining life of the signing root's chain at the Unix time `now` in milliseconds is less than `percent`
 * of its whole life.
 */
export function isDue({ authorities: [old], stage }: AuthorityState, percent: number, now: number): boolean {
  if (!old || stage !== 'stable') return false
  const begin = new X509Certificate(old.certificate).validFromDate.getTime()
  const end = chainExpiry(old)
  return end - now < ((end - begin) * percent) / 100
}

/** Whether every certificate that the old root signed has expired, so that the rotation need not wait for any workload. */
export function hasOldRootExpired({ authorities: [old], stage }: AuthorityState, now: number): boolean {
  return old !== undefined && stage !== 'stable' && chainExpiry(old) <= now
}

/** Returns the state with its first root. Throws when there is a root, which only a rotation may replace. */
export function withFirstRoot(state: AuthorityState, first: AuthorityRecord, now: number): AuthorityState {
  if (state.authorities.length > 0) throw new Error('there is a root already')
  return { ...state, authorities: [first], since: now, epoch: state.epoch + 1 }
}

/**
 * Returns the state with a rotation to `next` begun. Throws when a rotation is under way, when there is no root, or when `next` has the
 * root in force.
 */
export function announce(state: AuthorityState, next: AuthorityRecord, now: number): AuthorityState {
  const [old] = state.authorities
  if (!old || state.stage !== 'stable') throw new Error(old ? `a rotation is under way, in stage ${state.stage}` : 'there is no root to replace')
  if (fingerprintOf(next.root) === fingerprintOf(old.root)) throw new Error('this root is in force already')
  return { ...state, authorities: [old, next], stage: 'announce', since: now, epoch: state.epoch + 1 }
}

/** Returns the state advanced by one stage. Throws when no rotation is under way. */
export function advance(state: AuthorityState, now: number): AuthorityState {
  if (state.stage === 'stable') throw new Error('no rotation is under way')
  const stage = stages[(stages.indexOf(state.stage) + 1) % stages.length] as Stage
  const begun = { ...state, stage, since: now, epoch: state.epoch + 1 }
  if (stage !== 'stable') return begun
  return withoutNeedlessKeys({ ...begun, authorities: state.authorities.slice(1), retired: [...state.retired, ...state.authorities.slice(0, 1)] })
}

/** The maximum number of authorities whose keys are kept after the rotation from them. */
const mostRetired = 8

/**
 * Records that a client presented a certificate that leads to a root (its fingerprint). Returns the same state when the root is no own one,
 * or known to be in use (docs/certificates.md, R15).
 */
export function withUse(state: AuthorityState, root: string): AuthorityState {
  const isNews = !state.inUse.includes(root) && state.authorities.some((one) => fingerprintOf(one.root) === root)
  if (!isNews) return state
  return withoutNeedlessKeys({ ...state, inUse: [...state.inUse, root] })
}

/** Drops the kept authorities once the root after them is alone and was seen in use, and what is recorded of roots that are gone. */
function withoutNeedlessKeys(state: AuthorityState): AuthorityState {
  const own = rootsOf(state).map(fingerprintOf)
  const inUse = state.inUse.filter((root) => own.includes(root))
  const isReplaced = state.stage === 'stable' && inUse.length > 0
  return { ...state, inUse, retired: isReplaced ? [] : state.retired.slice(-mostRetired) }
}

/** The ids of the certificates whose keys are kept. */
export const keptKeys = ({ authorities, retired }: AuthorityState): string[] => [...authorities, ...retired].map(({ id }) => id)

/**
 * For roots that were replaced outside a rotation: when the last known certificate of a root expires, and until when a replaced root is
 * trusted at least. Both are Unix milliseconds.
 */
export interface Lives {
  readonly lastExpiry: (root: string) => number
  readonly atLeast: number
}

/**
 * Records the roots that are in force now. A root that was in force before, and was not ended by a rotation (`ended`, fingerprints of
 * roots), becomes a former root (docs/certificates.md, R14), unless another root that was in force beside it still is: then it was taken
 * out, and is not trusted any more (R16). Former roots whose time has passed at `now` are removed.
 */
export function noteRoots(state: AuthorityState, roots: readonly string[], ended: readonly string[], lives: Lives, now: number): AuthorityState {
  const ids = new Set(roots.map(fingerprintOf))
  const kept = (certificate: string) => {
    const id = fingerprintOf(certificate)
    return !ids.has(id) && !ended.includes(id)
  }
  const known = new Set(state.formerRoots.map(({ certificate }) => fingerprintOf(certificate)))
  const isTakenOut = state.inForce.some((certificate) => ids.has(fingerprintOf(certificate)))
  const added = (isTakenOut ? [] : state.inForce)
    .filter((certificate) => kept(certificate) && !known.has(fingerprintOf(certificate)))
    .map((certificate): FormerRoot => {
      const until = Math.max(lives.lastExpiry(fingerprintOf(certificate)), lives.atLeast)
      return { certificate, until: Math.min(until, endOf(certificate)) }
    })
  const formerRoots = [...state.formerRoots.filter(({ certificate }) => kept(certificate)), ...added].filter(({ until }) => until > now)
  const isSame = formerRoots.length === state.formerRoots.length && added.length === 0
  return isSame && roots.join('') === state.inForce.join('') ? state : { ...state, formerRoots, inForce: [...roots] }
}

/** Returns the stage as the ledger needs it. */
export function stageOf({ authorities, stage, epoch }: AuthorityState): LedgerStage {
  const [old, next = old] = authorities
  const signing = stage === 'sign-with-new' || stage === 'retire' ? next : old
  return { epoch, provenBy: stage === 'announce' || !signing ? undefined : fingerprintOf(signing.root) }
}

/** The roots of the authority's own signing certificates, one PEM text each. */
export const rootsOf = ({ authorities }: AuthorityState): string[] => authorities.map(({ root }) => root)

/** What is told when the own root is put in force, `secret` being the Secret of a plugged-in authority; undefined unless other roots were in force when the state was written, those of an authority that was plugged in. */
export function replacedBy(state: AuthorityState, secret: string): string | undefined {
  const own = new Set(rootsOf(state).map(fingerprintOf))
  const plugged = state.inForce.map(fingerprintOf).filter((id) => !own.has(id))
  if (plugged.length === 0) return undefined
  const roots = plugged.map((id) => id.slice(0, 16)).join(', ')
  return `the authority that was in force before (roots ${roots}) is not plugged in any more, in ROOT_CA_DIR or as Secret ${secret}: an own root signs, which those that trust the former roots refuse until they have it; plug it in again, unless it was taken out on purpose`
}

/** A stage of a rotation as part of a sentence: which roots are sent and used. */
export function described({ stage, authorities: [old, next] }: AuthorityState): string {
  switch (stage) {
    case 'announce':
      return `answers hold roots ${old?.id} and ${next?.id}, the first one signs`
    case 'trust-both':
      return `root ${next?.id} signs the certificates of the own servers`
    case 'sign-with-new':
      return `root ${next?.id} signs all certificates`
    case 'retire':
      return `answers hold root ${next?.id} alone, the own servers still take certificates of ${old?.id}`
    case 'stable':
      return `root ${old?.id} is alone`
  }
}

/** The stage of a rotation, and between which authorities. */
export const rotationOf = ({ epoch, stage, authorities }: AuthorityState): string => [epoch, stage, ...authorities.map(({ id }) => id)].join(' ')
