/** Directories and files for what nobody but the user of this process may read. */
import { chmodSync, lstatSync, mkdirSync, readdirSync, type Stats } from 'node:fs'

/**
 * Makes a directory for this user alone. One that is there must be so already, or be empty: then it is made so. Throws an Error that
 * names the directory and what is wrong with it.
 */
export function ownDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    const found = lstatSync(path)
    if (!found.isDirectory()) throw new Error('is not a directory')
    if (!isOpenToOthers(found)) return
    if (readdirSync(path).length > 0) throw new Error(`${openToOthers(found)}: chmod 700 it, or name another directory`)
    chmodSync(path, 0o700)
  } catch (error) {
    const { message } = error as Error
    throw new Error(message.includes(path) ? message : `${path}: ${message}`)
  }
}

/** Throws an Error that names the file when it is not a regular file of this user that nobody else can use. `found` is what the system says of it. */
export function checkOwnFile(path: string, found: Stats): void {
  try {
    if (!found.isFile()) throw new Error('is not a regular file')
    if (isOpenToOthers(found)) throw new Error(`${openToOthers(found)}: chmod 600 it, and make a new key if someone may have read it`)
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`)
  }
}

/** Whether others than this user can use it; never on systems without users, which have no such modes either. Throws an Error when it belongs to another user. */
function isOpenToOthers({ uid, mode }: Stats): boolean {
  const user = process.getuid?.()
  if (user === undefined) return false
  if (uid !== user) throw new Error(`belongs to user ${uid}, not to user ${user} that this process runs as`)
  return (mode & 0o077) !== 0
}

/** Why others than the owner of a file can read or write it, for messages; undefined when they cannot, or the system has no such modes. */
export function exposureOf(found: Stats): string | undefined {
  return process.getuid === undefined || (found.mode & 0o077) === 0 ? undefined : openToOthers(found)
}

const openToOthers = ({ mode }: Stats): string => `others can use it (mode ${(mode & 0o777).toString(8).padStart(4, '0')})`
