/** Reads the stored ledger of issued certificates at the start of an authority (docs/certificates.md, R10, K12). */
import { Ledger } from '../../../src/ca/ledger.ts'
import { type KeptLedger, readLedger } from '../../../src/ca/ledger-record.ts'
import type { AuthorityState } from '../../../src/ca/state.ts'
import type { Logger } from '../../runtime/logger.ts'
import { type CaStorage, damagedNote, StorageAwayError } from './storage.ts'

interface Parts {
  readonly storage: CaStorage
  readonly settings: { readonly workloadLife: number }
  readonly log: Logger
}

/** The name of the note with the ledger. */
export const ledgerNote = 'ledger'

/** The stored ledger; undefined when there is none, `damaged` when it cannot be used, which is logged. */
export async function keptLedger({ storage, log }: Parts): Promise<KeptLedger | 'damaged' | undefined> {
  try {
    const text = await storage.readNote(ledgerNote)
    return text === undefined ? undefined : readStored(storage, text)
  } catch (error) {
    if (error instanceof StorageAwayError) throw error
    log('ca').error(
      `the ledger of issued certificates begins anew, and is not saved before the stored one is restored or removed: ${(error as Error).message}`,
    )
    return 'damaged'
  }
}

/** Reads a stored ledger. Throws an Error that says where it is, what is wrong with it, and what to do. */
export function readStored({ noteAt }: Pick<CaStorage, 'noteAt'>, text: string): KeptLedger {
  try {
    return readLedger(text)
  } catch (error) {
    throw damagedNote(`${noteAt(ledgerNote)}: ${(error as Error).message}`)
  }
}

/** The ledger that goes on from the stored one, at the Unix time `now` in milliseconds. */
export function ledgerOf(kept: KeptLedger | undefined, { inForce }: AuthorityState, { settings }: Parts, now: number): Ledger {
  const ledger = new Ledger(now, settings.workloadLife)
  if (kept) ledger.restore(kept.head, kept.holders, kept.inOrder, now)
  // Certificates of these roots may have been issued.
  else if (inForce.length > 0) ledger.lost(now)
  return ledger
}

/** The latest time that the state and the ledger record as passed, in Unix milliseconds; undefined without a root. */
export function passedTime({ since, authorities }: AuthorityState, kept: KeptLedger | undefined): number | undefined {
  if (authorities.length === 0) return undefined
  const issued = [...(kept?.head.serving ?? []), ...(kept?.holders ?? []).map(([, held]) => held)].map(({ issuedAt }) => issuedAt)
  return issued.reduce((last, at) => Math.max(last, at), since)
}
