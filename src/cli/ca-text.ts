/** Formats the output of the `ca` commands. */
import type { AuthorityStatus, DistrustAnswer, LedgerPage, ShownBlocker } from '../../protocols/messages/authority-status.ts'
import type { ReplicaState } from '../../protocols/messages/replicas.ts'
import { silence } from '../model/replica-silence.ts'
import { table } from './table.ts'

/** The number of digits of a fingerprint that are printed. */
const shortId = 16

/** Formats roots, intermediates, expiries and the rotation's stage (docs/certificates.md, "The command"). */
export function authorityText(status: AuthorityStatus): string {
  const { source, keptIn, roots, intermediates, rotation, clock, keptKeys, faults, serving, holders, replicas } = status
  const { stage, since, next, blocking, plaintextProxies } = rotation
  const certificates = [...new Map([...intermediates.workloads, ...intermediates.serving].map((one) => [one.id, one])).values()]
  return [
    `Authority: ${source === 'own' ? 'own root' : 'plugged in (ROOT_CA_DIR or Secret cacerts)'}; state is kept in ${keptIn}`,
    source === 'own'
      ? `Rotation stage: ${stage}${since === undefined ? '' : ` since ${since}`}; next stage: ${next}`
      : 'Rotation stage: none, a plugged-in root is not rotated',
    ...waitLines(status),
    `Clock: ${clock.verdict}${clock.verdict === 'agreed' ? '' : ` (it shows ${clock.wall}, recorded is ${clock.believed})`}`,
    ...faults.map((fault) => `Not valid: ${fault}`),
    ...silentLines(replicas),
    '',
    table(
      ['ROOT', 'SUBJECT', 'BEGINS', 'EXPIRES', 'USES'],
      roots.map(({ id, subject, notBefore, notAfter, uses }) => [short(id), subject, notBefore, notAfter, uses.join(', ')]),
    ),
    ...section(
      ['INTERMEDIATE', 'SUBJECT', 'EXPIRES'],
      certificates.map(({ id, subject, notAfter }) => [short(id), subject, notAfter]),
    ),
    ...section(
      ['KEPT KEY', 'SUBJECT', 'EXPIRES'],
      keptKeys.map(({ id, subject, notAfter }) => [short(id), subject, notAfter]),
    ),
    ...section(
      ['SERVING CERTIFICATE', 'ROOT', 'EXPIRES'],
      serving.filter(({ isServed }) => isServed).map(({ serial, root, notAfter }) => [serial, short(root), notAfter]),
    ),
    '',
    `Serving certificates that are not in use and have not expired: ${serving.filter(({ isServed }) => !isServed).length}`,
    `Workload certificates that are held: ${holders} ("pilot-discovery ca ledger" lists them)`,
    `Proxies on the plaintext port, without a certificate: ${plaintextProxies}`,
    ...(source === 'own' ? [`Blockers of the next stage: ${blocking} ("pilot-discovery ca rotate --dry-run" lists them)`] : []),
  ].join('\n')
}

/** Formats who is cut off, or would be, when a root is not trusted any more. */
export function distrustText({ root, subject, isDry, identities, holders, replicas }: Exclude<DistrustAnswer, { refused: string }>): string {
  const rows = holders.map(({ identity, addresses, proxies }) => [identity, addresses.join(', ') || '-', proxies.join(', ') || '-'])
  return [
    `Root ${short(root)} (${subject}) ${isDry ? 'would neither be' : 'is neither'} sent to workloads nor accepted from clients any more.`,
    'Workloads stop trusting it in new connections within seconds, as their agents are told; an agent that is not connected, when it is.',
    `Identities with certificates of it, which ${isDry ? 'would be' : 'are'} cut off until they get others: ${identities}`,
    ...(rows.length === 0 ? [] : [table(['IDENTITY', 'ADDRESSES', 'CONNECTED PROXIES'], rows)]),
    ...(identities > rows.length ? [`and ${identities - rows.length} more`] : []),
    ...silentLines(replicas),
  ].join('\n')
}

const waitLines = ({ rotation: { waits } }: AuthorityStatus): string[] => (waits === undefined ? [] : [`No stage begins: ${waits}`])

/** Names the replicas of whose proxies it is not known which are connected. */
const silentLines = (replicas: readonly ReplicaState[]): string[] =>
  replicas
    .filter(({ answered }) => !answered)
    .map(({ name, reason }) => `Replica ${name} ${silence(reason)}, so its proxies are not known to be connected: ${reason}`)

/** Formats the identities that block the rotation. */
export function blockersText(status: AuthorityStatus): string {
  const { rotation, replicas } = status
  const { stage, next, blocking, blockers, plaintextProxies, plaintext } = rotation
  return [
    `Rotation stage: ${stage}; next stage: ${next}`,
    ...waitLines(status),
    ...silentLines(replicas),
    `Blockers of the next stage: ${blocking}`,
    ...blockers.flatMap(blockerLines),
    ...(blocking > blockers.length ? [`  and ${blocking - blockers.length} more`] : []),
    `Proxies on the plaintext port, without a certificate; they do not block: ${plaintextProxies}`,
    ...plaintext.map((node) => `  ${node}`),
  ].join('\n')
}

/** Formats the ledger: which identities hold which certificates, and how many proxies of each identity are connected. */
export function ledgerText({ identities, replicas }: LedgerPage): string {
  const lines = identities.flatMap(({ identity, proxies, certificates }) => {
    const connected = String(proxies.length)
    const held = certificates.map(({ address, serial, root, notAfter }) => [identity, connected, address, serial, short(root), notAfter])
    return held.length > 0 ? held : [[identity, connected, '-', '-', '-', '-']]
  })
  return [table(['IDENTITY', 'CONNECTED PROXIES', 'ADDRESS', 'CERTIFICATE', 'ROOT', 'EXPIRES'], lines), ...silentLines(replicas)].join('\n')
}

function blockerLines({ identity, proxies, reason, until }: ShownBlocker): string[] {
  const end = until === undefined ? '' : `; blocks until ${until} at the latest`
  return [`  ${identity} ${reason}${end}`, ...proxies.map((node) => `    ${node}`)]
}

const short = (id: string): string => id.slice(0, shortId)

const section = (head: readonly string[], rows: readonly (readonly string[])[]): string[] => (rows.length === 0 ? [] : ['', table(head, rows)])
