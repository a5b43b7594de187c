/** Reads what was kept of the ledger of certificates. */
import { list, number, object, text } from './fields.ts'
import type { Held, LedgerRecord, ServingRecord } from './ledger.ts'

/** Reads a kept ledger, and whether it was kept by a process that ended in order. Throws an Error that names what is wrong. */
export function readLedger(value: unknown): { readonly inOrder: boolean; readonly record: LedgerRecord } {
  const { inOrder, record } = object(value, 'the ledger')
  const { format, completeSince, longestLife, forgottenUntil, holders, serving } = object(record, 'record')
  if (format !== 1) throw new Error(`format ${JSON.stringify(format)} is not 1`)
  return {
    inOrder: inOrder === true,
    record: {
      format,
      completeSince: number(completeSince, 'completeSince'),
      longestLife: number(longestLife, 'longestLife'),
      forgottenUntil: number(forgottenUntil, 'forgottenUntil'),
      holders: list(holders, 'holders').map((entry, index) => {
        const [identity, held] = list(entry, `holders[${index}]`)
        return [text(identity, `holders[${index}][0]`), readHeld(held, `holders[${index}][1]`)] as const
      }),
      serving: list(serving, 'serving').map((entry, index) => readServing(entry, `serving[${index}]`)),
    },
  }
}

function readServing(value: unknown, where: string): ServingRecord {
  const { serial, root, issuedAt, notAfter } = object(value, where)
  return {
    serial: text(serial, `${where}.serial`),
    root: text(root, `${where}.root`),
    issuedAt: number(issuedAt, `${where}.issuedAt`),
    notAfter: number(notAfter, `${where}.notAfter`),
  }
}

function readHeld(value: unknown, where: string): Held {
  const { address, epoch, count } = object(value, where)
  return {
    ...readServing(value, where),
    address: text(address, `${where}.address`),
    epoch: number(epoch, `${where}.epoch`),
    count: number(count, `${where}.count`),
  }
}
