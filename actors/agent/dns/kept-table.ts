/** The file that preserves the last name table over a restart of the agent (docs/agent.md, D7). */
import { join } from 'node:path'
import { FileError, isGone, readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import { checkOwnFile, ownDirectory } from '../../runtime/own-directory.ts'

const fileName = 'name-table.json'
/** The maximum size of the file, in bytes. */
const fileBytes = 96 * 1024 * 1024

/** Reads the stored table of a domain. Undefined when there is none. Throws an Error when the file cannot be used. */
export function readKeptTable(directory: string, domain: string): Uint8Array | undefined {
  const path = join(directory, fileName)
  try {
    const text = readBoundedFileSync(path, { most: fileBytes, check: checkOwnFile, refusesLinks: true })
    const kept = JSON.parse(text) as { readonly domain?: unknown; readonly table?: unknown }
    return kept.domain === domain && typeof kept.table === 'string' ? Buffer.from(kept.table, 'base64') : undefined
  } catch (error) {
    if (isGone(error)) return undefined
    throw FileError.of(path, error)
  }
}

/**
 * Stores the table of a domain. The directory is created with access for this user only. Throws an Error that names what cannot be written.
 */
export function writeKeptTable(directory: string, domain: string, table: Uint8Array): void {
  ownDirectory(directory)
  replaceFile(join(directory, fileName), JSON.stringify({ domain, table: Buffer.from(table).toString('base64') }))
}
