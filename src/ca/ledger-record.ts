/**
 * Writes and reads the stored form of the certificate ledger: JSON lines, of which the first holds the {@link LedgerHead} and each other
 * one a holder.
 */
import { list, number, object, text } from './fields.ts'
import type { Evictions, HeldCertificate, KeptHolder, Ledger, LedgerHead, ServingRecord } from './ledger.ts'

/**
 * The lines of a ledger. `inOrder` is true when the process writes the ledger as it shuts down, so that no later certificate is missing
 * from it.
 */
export function* ledgerLines(ledger: Ledger, inOrder: boolean): Iterable<string> {
  yield `${JSON.stringify({ inOrder, ...ledger.head() })}\n`
  // Earlier versions read a number of certificates as well.
  for (const [identity, held] of ledger.holders()) yield `${JSON.stringify([identity, { ...held, count: 1 }])}\n`
}

/** A ledger as read from its stored form. */
export interface KeptLedger {
  /** Whether the process that wrote the ledger shut down in order. */
  readonly inOrder: boolean
  readonly head: LedgerHead
  readonly holders: readonly KeptHolder[]
}

/** Parses the stored form. Throws an Error that names the line or field that is wrong. */
export function readLedger(lines: string): KeptLedger {
  const [first = '', ...others] = lines.split('\n')
  const { inOrder, format, completeSince, longestLife, hasAll, evictions, forgottenUntil, serving } = object(JSON.parse(first), 'the first line')
  if (format !== 1) throw new Error(`format ${JSON.stringify(format)} is not 1`)
  const head: LedgerHead = {
    format,
    completeSince: number(completeSince, 'completeSince'),
    longestLife: number(longestLife, 'longestLife'),
    hasAll: hasAll === true,
    evictions: readEvictions(evictions, forgottenUntil),
    serving: list(serving, 'serving').map((entry, index) => readServing(entry, `serving[${index}]`)),
  }
  const holders = others
    .filter((line) => line !== '')
    .map((line, index): KeptHolder => {
      const where = `line ${index + 2}`
      const [identity, held] = list(JSON.parse(line), where)
      return [text(identity, `${where}, identity`), readHeld(held, where)]
    })
  return { inOrder: inOrder === true, head, holders }
}

/** Reads the evicted certificates. Earlier forms have the last expiry only: then any root and the first stage are taken. */
function readEvictions(value: unknown, until: unknown): Evictions[] {
  if (value === undefined) return [{ epoch: 0, root: '', until: number(until, 'forgottenUntil') }]
  return list(value, 'evictions').map((entry, index) => {
    const where = `evictions[${index}]`
    const { epoch, root, until: last } = object(entry, where)
    return { epoch: number(epoch, `${where}, epoch`), root: text(root, `${where}, root`), until: number(last, `${where}, until`) }
  })
}

function readServing(value: unknown, where: string): ServingRecord {
  const { serial, root, issuedAt, notAfter } = object(value, where)
  return {
    serial: text(serial, `${where}, serial`),
    root: text(root, `${where}, root`),
    issuedAt: number(issuedAt, `${where}, issuedAt`),
    notAfter: number(notAfter, `${where}, notAfter`),
  }
}

function readHeld(value: unknown, where: string): HeldCertificate {
  const { address, epoch, renews } = object(value, where)
  return {
    address: text(address, `${where}, address`),
    ...readServing(value, where),
    ...(renews !== undefined && { renews: text(renews, `${where}, renews`) }),
    epoch: number(epoch, `${where}, epoch`),
  }
}
