/** Takes the trust from a root by command, and gives it back (docs/certificates.md, R16). */
import { X509Certificate } from 'node:crypto'
import type { CutOff, DistrustAnswer, TrustAnswer } from '../../../protocols/messages/authority-status.ts'
import { keptInTrust, rootNamed, rootsOfKey } from '../../../src/ca/distrust.ts'
import { rootsOf } from '../../../src/ca/rotation.ts'
import { fingerprintOf } from '../../../src/identity/pem.ts'
import { count } from '../../../src/model/counts.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { InForce } from './in-force.ts'
import type { RootRotation } from './root-rotation.ts'

/** Maximum number of holders in an answer, and in the log. */
const most = { answer: 1000, log: 20 }

/** Who is cut off when some roots (their fingerprints) are not trusted any more. */
function cutOffBy(rotation: RootRotation, roots: readonly string[], replicas: 'all' | 'own'): CutOff {
  const holders = roots.flatMap((root) => rotation.ledger.holdersOf(root, rotation.clock.now(), replicas))
  return { identities: new Set(holders.map(({ identity }) => identity)).size, holders: holders.slice(0, most.answer) }
}

/**
 * Distrusts the root that the first digits of its fingerprint name, and with it all others of the same key; with `isDry` only says who would
 * be cut off. Answers with the reason when the root is unknown or one of them must stay.
 */
export async function distrust(rotation: RootRotation, force: InForce | undefined, id: string, isDry: boolean): Promise<DistrustAnswer> {
  if (!force) return { refused: 'no authority is in force' }
  const { distrusted, stage } = rotation.state
  try {
    const known = [...force.trusted, ...force.bundle]
    const certificate = rootNamed(id, [...known, ...distrusted])
    const root = fingerprintOf(certificate)
    if (distrusted.includes(certificate)) return { refused: `root ${root.slice(0, 16)} is distrusted already` }
    const last = force.source === 'own' ? rootsOf(rotation.state).map(fingerprintOf).at(-1) : undefined
    const uses = { source: force.source, workloads: force.workloads.root, serving: force.serving.root, last, stage }
    const roots = rootsOfKey(certificate, known).map(fingerprintOf)
    for (const one of roots) {
      const kept = keptInTrust(one, uses)
      const other = one === root ? '' : `root ${root.slice(0, 16)} has the same key as another: `
      if (kept !== undefined) return { refused: `${other}${kept}` }
    }
    const cutOff = cutOffBy(rotation, roots, 'all')
    if (!isDry) await rotation.setTrust(certificate, false)
    return { root, subject: subjectOf(certificate), isDry, replicas: rotation.replicas, ...cutOff }
  } catch (error) {
    return { refused: (error as Error).message }
  }
}

/** Trusts a root again that was distrusted by command. Answers with the reason when there is no such root. */
export async function trust(rotation: RootRotation, id: string): Promise<TrustAnswer> {
  try {
    const certificate = rootNamed(id, rotation.state.distrusted, 'root that was distrusted by command')
    await rotation.setTrust(certificate, true)
    return { root: fingerprintOf(certificate), subject: subjectOf(certificate) }
  } catch (error) {
    return { refused: (error as Error).message }
  }
}

/** Logs which roots are no longer accepted from clients, and who is cut off; of the proxies each replica names its own. */
export function logDropped(rotation: RootRotation, before: readonly string[], after: readonly string[], log: Logger): void {
  const kept = new Set(after.map(fingerprintOf))
  for (const certificate of before) {
    const root = fingerprintOf(certificate)
    if (kept.has(root)) continue
    const { identities, holders } = cutOffBy(rotation, [root], 'own')
    const line = `root ${root.slice(0, 16)} (${subjectOf(certificate)}) is not sent to workloads and not accepted from clients any more`
    if (identities === 0) {
      log('ca').info(`${line}; nobody is known to hold a certificate of it`)
      continue
    }
    log('ca').warn(`${line}; cut off: ${count(identities, 'identity', 'identities')} with certificates of it`)
    for (const { identity, addresses, proxies } of holders.slice(0, most.log))
      log('ca').warn(`cut off: ${identity}${listed(' at ', addresses)}${listed('; connected: ', proxies)}`)
  }
}

const listed = (before: string, names: readonly string[]): string => (names.length === 0 ? '' : `${before}${names.slice(0, most.log).join(', ')}`)

const subjectOf = (certificate: string): string => (new X509Certificate(certificate).subject ?? '').replaceAll('\n', ', ')
