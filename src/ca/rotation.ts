/** The staged exchange of the authority's own root (docs/certificates.md, R1 to R14): what each stage means, when one begins and what comes next. */
import { X509Certificate } from 'node:crypto'
import { fingerprintOf } from '../identity/pem.ts'
import type { LedgerStage } from './ledger.ts'
import { type AuthorityRecord, type AuthorityState, type FormerRoot, type Stage, stages } from './state.ts'

/** A certificate to sign with, and what stands between a certificate that it signed and the root. */
export interface Signer {
  /** Names its private key. */
  readonly id: string
  /** PEM. */
  readonly certificate: string
  /** What is sent after a signed certificate, PEM; empty when the root has signed it and nothing else leads to it. */
  readonly intermediates: string
}

/** What is in force at a stage. */
export interface Material {
  /** Signs workload certificates. */
  readonly workloads: Signer
  /** Signs the serving certificates of this process. */
  readonly serving: Signer
  /** Roots in answers, PEM each. */
  readonly bundle: readonly string[]
  /** Roots of client certificates that the own servers take, PEM each. */
  readonly trusted: readonly string[]
}

/** What is in force at the Unix time `now` in milliseconds; undefined before the first root is there. */
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

/** When something signed by an authority can be valid for the last time, in Unix milliseconds: the earliest end of its certificate and what leads to its root. */
export function lastMoment({ certificate, intermediates, root }: AuthorityRecord): number {
  const between = intermediates.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  return Math.min(...[certificate, ...between, root].map(endOf))
}

/** Whether the root that signs now is so near its end that a rotation is due: less than so many percent of its life are left at the Unix time `now` in milliseconds. */
export function isDue({ authorities: [old], stage }: AuthorityState, percent: number, now: number): boolean {
  if (!old || stage !== 'stable') return false
  const begin = new X509Certificate(old.certificate).validFromDate.getTime()
  const end = lastMoment(old)
  return end - now < ((end - begin) * percent) / 100
}

/** Whether nothing that the old root signed can be valid any more, so that a rotation need not wait for anybody. */
export function isOver({ authorities: [old], stage }: AuthorityState, now: number): boolean {
  return old !== undefined && stage !== 'stable' && lastMoment(old) <= now
}

/** Puts the first root in force. Throws when there is one: a root is replaced by a rotation only. */
export function beginWith(state: AuthorityState, first: AuthorityRecord, now: number): AuthorityState {
  if (state.authorities.length > 0) throw new Error('there is a root already')
  return { ...state, authorities: [first], since: now, epoch: state.epoch + 1 }
}

/** Begins a rotation to another root. Throws when one is under way, when there is no root, or when it is the same. */
export function announce(state: AuthorityState, next: AuthorityRecord, now: number): AuthorityState {
  const [old] = state.authorities
  if (!old || state.stage !== 'stable') throw new Error(old ? `a rotation is under way, in stage ${state.stage}` : 'there is no root to replace')
  if (fingerprintOf(next.root) === fingerprintOf(old.root)) throw new Error('this root is in force already')
  return { ...state, authorities: [old, next], stage: 'announce', since: now, epoch: state.epoch + 1 }
}

/** Goes one stage further. Throws when no rotation is under way. */
export function goOn(state: AuthorityState, now: number): AuthorityState {
  if (state.stage === 'stable') throw new Error('no rotation is under way')
  const stage = stages[(stages.indexOf(state.stage) + 1) % stages.length] as Stage
  const authorities = stage === 'stable' ? state.authorities.slice(1) : state.authorities
  return { ...state, authorities, stage, since: now, epoch: state.epoch + 1 }
}

/** When roots were replaced outside a rotation: until when certificates of a root may be in use, and the least time that it stays, both in Unix milliseconds. */
export interface Lives {
  readonly lastExpiry: (root: string) => number
  readonly atLeast: number
}

/**
 * Takes note of the roots that are in force now. Those that were before and were not ended by a rotation (`ended`, ids of roots) become
 * former roots (docs/certificates.md, R14); former roots whose time is over go.
 */
export function noteRoots(state: AuthorityState, roots: readonly string[], ended: readonly string[], lives: Lives, now: number): AuthorityState {
  const ids = new Set(roots.map(fingerprintOf))
  const kept = (certificate: string) => {
    const id = fingerprintOf(certificate)
    return !ids.has(id) && !ended.includes(id)
  }
  const known = new Set(state.formerRoots.map(({ certificate }) => fingerprintOf(certificate)))
  const added = state.inForce
    .filter((certificate) => kept(certificate) && !known.has(fingerprintOf(certificate)))
    .map((certificate): FormerRoot => {
      const until = Math.max(lives.lastExpiry(fingerprintOf(certificate)), lives.atLeast)
      return { certificate, until: Math.min(until, endOf(certificate)) }
    })
  const formerRoots = [...state.formerRoots.filter(({ certificate }) => kept(certificate)), ...added].filter(({ until }) => until > now)
  const isSame = formerRoots.length === state.formerRoots.length && added.length === 0
  return isSame && roots.join('') === state.inForce.join('') ? state : { ...state, formerRoots, inForce: [...roots] }
}

/** What the ledger must know of the stage: nobody is blocked while there is no rotation. */
export function stageOf({ authorities, stage, epoch }: AuthorityState): LedgerStage {
  const [old, next = old] = authorities
  const signing = stage === 'sign-with-new' || stage === 'retire' ? next : old
  return { epoch, provenBy: stage === 'announce' || !signing ? undefined : fingerprintOf(signing.root) }
}

/** The roots of the own authorities, PEM each. */
export const rootsOf = ({ authorities }: AuthorityState): string[] => authorities.map(({ root }) => root)
