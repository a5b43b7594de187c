/** Keeps a key set that is fetched up to date. */
import { Renewal, type RenewalParts } from '../runtime/renewal.ts'
import type { KeySetFetcher, WantedKeys } from './key-set-fetch.ts'

/** The first and the longest delay after a failed fetch, in milliseconds. */
const pauses = { firstMs: 1000, longestMs: 60_000 }

/** What is fetched, and who uses it. */
export interface KeySetRenewalParts extends Pick<RenewalParts<string>, 'failed'> {
  readonly fetcher: KeySetFetcher
  /** Interval between fetches, in milliseconds. */
  readonly refreshMs: number
  /** Returns what the next fetch is for. */
  wanted(): Omit<WantedKeys, 'retry'>
  /** Uses the keys. An Error that it throws counts as a failed fetch. */
  use(keys: string): void
}

/** Returns the renewal of a key set: it is fetched at start, at an interval, and after a failure no later than after that interval. */
export function keySetRenewal({ fetcher, refreshMs, wanted, use, failed }: KeySetRenewalParts): Renewal<string> {
  return new Renewal({
    pauses: { ...pauses, longestMs: Math.min(refreshMs, pauses.longestMs) },
    obtain: (failures) => fetcher.fetch({ ...wanted(), retry: failures > 0 }),
    use: (keys) => {
      use(keys)
      return refreshMs
    },
    failed,
  })
}
