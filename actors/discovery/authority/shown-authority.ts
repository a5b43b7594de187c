/** The content of the debug pages and of the `ca` command about the authority: public data, no keys. */
import { X509Certificate } from 'node:crypto'
import type {
  AcceptedTimeAnswer,
  AuthorityStatus,
  LedgerPage,
  RotateAnswer,
  ShownBlocker,
  ShownCertificate,
  ShownRoot,
} from '../../../protocols/messages/authority-status.ts'
import type { Blocker } from '../../../src/ca/ledger.ts'
import { fingerprintOf } from '../../../src/identity/pem.ts'
import { faultAt, type UsedCertificate } from '../../http/validity-report.ts'
import { after } from '../../runtime/timers.ts'
import type { ActiveSigner, InForce } from './in-force.ts'
import type { RootRotation } from './root-rotation.ts'

/** Maximum number of entries in a list. */
const longest = 1000

/** Returns the status of the authority. `served`: serial numbers of the certificates that servers of this process have now. */
export function authorityStatus(force: InForce, rotation: RootRotation, keptIn: string, served: ReadonlySet<string>): AuthorityStatus {
  const { stage, next, since, blockers, plaintext, waits } = rotation.status()
  const { verdict, wall, believed } = rotation.clock.judge()
  return {
    source: force.source,
    keptIn,
    roots: shownRoots(force, rotation),
    intermediates: { workloads: between(force.workloads), serving: between(force.serving) },
    signing: { certificate: force.workloads.by.certificate, chain: force.workloads.intermediates },
    rotation: {
      stage,
      next,
      since,
      blocking: blockers.length,
      blockers: blockers.slice(0, longest).map(shownBlocker),
      plaintextProxies: plaintext.length,
      plaintext: plaintext.slice(0, longest),
      waits,
    },
    clock: { verdict, wall: iso(wall), believed: iso(believed) },
    keptKeys: rotation.state.retired.map(({ certificate }) => shown(certificate)),
    faults: usedCertificates(force).flatMap(({ described, certificate }) => {
      const fault = faultAt(certificate, wall)
      return fault === undefined ? [] : [`${described} ${fault}`]
    }),
    serving: rotation.ledger.serving().map(({ serial, root, issuedAt, notAfter }) => ({
      serial,
      root,
      issuedAt: iso(issuedAt),
      notAfter: iso(notAfter),
      isServed: served.has(serial),
    })),
    holders: rotation.ledger.size,
    replicas: rotation.replicas,
  }
}

/** Returns rows of the ledger: `length` identities in the order of their names, from index `start`. */
export function ledgerRows(rotation: RootRotation, start: number, length: number): LedgerPage {
  const identities = rotation.ledger.rows(start, Math.min(length, longest)).map(({ identity, proxies, certificates }) => ({
    identity,
    proxies,
    certificates: certificates.slice(0, longest).map(({ address, serial, root, issuedAt, notAfter }) => ({
      address,
      serial,
      root,
      issuedAt: iso(issuedAt),
      notAfter: iso(notAfter),
    })),
  }))
  return { identities, replicas: rotation.replicas }
}

/**
 * The maximum time that the answer waits for the rotation to advance, in milliseconds. After it, it says that the rotation is under
 * way. Requests for pages time out after five seconds.
 */
const answerTimeoutMs = 4000

/** Advances the rotation by one stage and returns the result, after at most `timeoutMs` milliseconds. */
export async function rotate(
  rotation: RootRotation,
  force: boolean,
  status: () => AuthorityStatus | undefined,
  timeoutMs = answerTimeoutMs,
): Promise<RotateAnswer> {
  const late = Promise.withResolvers<undefined>()
  const timer = after(timeoutMs, () => late.resolve(undefined))
  try {
    const answer = await Promise.race([rotation.advance(force), late.promise])
    if (!answer)
      return { refused: 'the next stage has not been reached yet (a large key takes long to generate): check with "ca show"', status: status() }
    if ('refused' in answer) return { refused: answer.refused, status: status() }
    return { from: answer.from, went: answer.went, forcedOver: answer.forcedOver.slice(0, longest).map(shownBlocker) }
  } finally {
    timer.cancel()
  }
}

/** The certificates whose validity the work of the authority depends on: the root that signs workloads, and the chain below it. */
export function usedCertificates({ workloads, bundle }: InForce): UsedCertificate[] {
  const named = (certificate: string, kind: 'root' | 'chain') => {
    const { id, subject } = shown(certificate)
    return { kind, described: `${kind === 'root' ? 'root' : 'the authority'} ${id.slice(0, 16)} (${subject})`, certificate }
  }
  const root = bundle.find((one) => fingerprintOf(one) === workloads.root)
  const chain = [workloads.by.certificate, ...certificatesIn(workloads.intermediates)].filter((one) => fingerprintOf(one) !== workloads.root)
  return [...(root === undefined ? [] : [named(root, 'root')]), ...chain.map((one) => named(one, 'chain'))]
}

/** Takes the wall clock for right. Resolves with it, and with the reason why it was disputed. */
export async function acceptTime({ clock }: RootRotation): Promise<AcceptedTimeAnswer> {
  const dispute = clock.dispute()
  await clock.accept()
  return { wall: iso(clock.now()), dispute }
}

function shownRoots(force: InForce, rotation: RootRotation): ShownRoot[] {
  const [former, { distrusted }] = [rotation.formerRoots(), rotation.state]
  const ids = (certificates: readonly string[]) => new Set(certificates.map(fingerprintOf))
  const [inAnswers, trusted, replaced] = [ids(force.bundle), ids(force.trusted), ids(former.map(({ certificate }) => certificate))]
  const all = new Map([...force.trusted, ...force.bundle, ...distrusted].map((certificate) => [fingerprintOf(certificate), certificate]))
  return [...all].map(([id, certificate]) => ({
    ...shown(certificate),
    uses: [
      ...(id === force.workloads.root ? (['signs workload certificates'] as const) : []),
      ...(id === force.serving.root ? (['signs serving certificates'] as const) : []),
      ...(inAnswers.has(id) ? (['sent to workloads'] as const) : []),
      ...(trusted.has(id) ? (['accepted from clients'] as const) : []),
      ...(replaced.has(id) ? (['replaced'] as const) : []),
      ...(distrusted.includes(certificate) ? (['distrusted'] as const) : []),
    ],
    certificate,
  }))
}

/** The intermediate certificates between a leaf and its root. */
const between = ({ intermediates }: ActiveSigner): ShownCertificate[] => certificatesIn(intermediates).map(shown)

const certificatesIn = (pem: string): readonly string[] => pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []

function shown(certificate: string): ShownCertificate {
  const { subject, serialNumber, validFromDate, validToDate } = new X509Certificate(certificate)
  return {
    id: fingerprintOf(certificate),
    subject: (subject ?? '').replaceAll('\n', ', '),
    serial: serialNumber.toLowerCase(),
    notBefore: validFromDate.toISOString(),
    notAfter: validToDate.toISOString(),
  }
}

const shownBlocker = ({ until, ...blocker }: Blocker): ShownBlocker => ({ ...blocker, until: until === undefined ? undefined : iso(until) })

const iso = (ms: number): string => new Date(ms).toISOString()
