/** The file in which the last name table outlives a restart of the agent (docs/agent.md, D7). */
import { join } from 'node:path'
import { readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { isGone } from '../../runtime/directory-watch.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import { checkOwnFile, ownDirectory } from '../../runtime/own-directory.ts'

const fileName = 'name-table.json'
/** Longest file, in bytes. */
const fileBytes = 96 * 1024 * 1024

/** Reads the table that is kept for a domain in a directory; undefined when there is none. Throws an Error when it cannot be used. */
export function readKeptTable(directory: string, domain: string): Uint8Array | undefined {
  const path = join(directory, fileName)
  try {
    const text = readBoundedFileSync(path, { most: fileBytes, check: (found) => checkOwnFile(path, found), isNoLink: true })
    const kept = JSON.parse(text) as { readonly domain?: unknown; readonly table?: unknown }
    return kept.domain === domain && typeof kept.table === 'string' ? Buffer.from(kept.table, 'base64') : undefined
  } catch (error) {
    if (isGone(error)) return undefined
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error })
  }
}

/** Keeps a table for a domain in a directory, which is made for this user alone. Throws an Error that names what cannot be written. */
export function writeKeptTable(directory: string, domain: string, table: Uint8Array): void {
  ownDirectory(directory)
  replaceFile(join(directory, fileName), JSON.stringify({ domain, table: Buffer.from(table).toString('base64') }))
}
