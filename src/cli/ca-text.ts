/** Formats the output of the `ca` commands. */
import type { AuthorityPage, LedgerPage, ShownBlocker } from '../../protocols/messages/authority-page.ts'

/** The number of digits of an identifier that are printed. */
const shortId = 16

/** Formats roots, intermediates, expiries and the rotation's stage. */
export function pageText(page: AuthorityPage): string {
  const { source, keptIn, roots, intermediates, rotation, serving, holders } = page
  const certificates = [...new Map([...intermediates.workloads, ...intermediates.serving].map((one) => [one.id, one])).values()]
  return [
    `Certificate authority: ${source === 'own' ? 'a root of its own' : 'plugged in (ROOT_CA_DIR)'}, state in ${keptIn}`,
    source === 'own'
      ? `Rotation: ${rotation.stage}${rotation.since === undefined ? '' : ` since ${rotation.since}`}`
      : 'Rotation: only of a root of its own',
    '',
    table(
      ['ROOT', 'SUBJECT', 'NOT AFTER', 'USE'],
      roots.map(({ id, subject, notAfter, uses }) => [short(id), subject, notAfter, uses.join(', ')]),
    ),
    ...section(
      ['BETWEEN', 'SUBJECT', 'NOT AFTER'],
      certificates.map(({ id, subject, notAfter }) => [short(id), subject, notAfter]),
    ),
    ...section(
      ['SERVING CERTIFICATE', 'ROOT', 'NOT AFTER'],
      serving.map(({ serial, root, notAfter }) => [serial, short(root), notAfter]),
    ),
    '',
    `${holders} workloads hold a certificate; ${rotation.plaintextProxies} proxies are on the plaintext port.`,
    ...(rotation.blocking > 0 ? [`${rotation.blocking} holders block the rotation: see "ca rotate --dry-run".`] : []),
  ].join('\n')
}

/** Formats the identities that block the rotation. */
export function blockersText({ rotation }: AuthorityPage): string {
  const { stage, next, blocking, blockers, plaintextProxies, plaintext } = rotation
  return [
    blocking === 0 ? `Stage ${stage}: all holders are ready for ${next}.` : `Stage ${stage}: ${blocking} are not ready for ${next}:`,
    ...blockers.flatMap(blockerLines),
    ...(blocking > blockers.length ? [`  and ${blocking - blockers.length} more`] : []),
    ...(plaintextProxies === 0 ? [] : [`On the plaintext port, without certificates, not waited for: ${plaintextProxies} proxies:`]),
    ...plaintext.map((node) => `  ${node}`),
  ].join('\n')
}

/** Formats the ledger: which identities hold which certificates. */
export function ledgerText(rows: LedgerPage['identities']): string {
  const lines = rows.flatMap(({ identity, proxies, certificates }) => {
    const held = certificates.map(({ address, serial, root, notAfter }) => [identity, address, serial, short(root), notAfter, String(proxies.length)])
    return held.length > 0 ? held : [[identity, '-', '-', '-', '-', String(proxies.length)]]
  })
  return table(['IDENTITY', 'ADDRESS', 'SERIAL', 'ROOT', 'NOT AFTER', 'PROXIES'], lines)
}

function blockerLines({ identity, proxies, reason, until }: ShownBlocker): string[] {
  const end = until === undefined ? '' : `; until ${until} at the latest`
  return [`  ${identity} ${reason}${end}`, ...proxies.map((node) => `    ${node}`)]
}

const short = (id: string): string => id.slice(0, shortId)

const section = (head: readonly string[], rows: readonly (readonly string[])[]): string[] => (rows.length === 0 ? [] : ['', table(head, rows)])

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [head, ...rows].map(line).join('\n')
}
