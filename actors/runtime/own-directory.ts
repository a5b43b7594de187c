/** Directories and files that only the user of this process may access. */
import { chmodSync, lstatSync, mkdirSync, readdirSync, type Stats } from 'node:fs'

/**
 * Creates a directory that only this user may access. An existing directory must have such a mode, or be empty: then its mode is changed.
 * Throws an Error that names the directory and the reason.
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

/** Throws an Error with the reason unless a file (by its `lstat` or `fstat`) is a regular file that only this user may access. */
export function checkOwnFile(found: Stats): void {
  if (!found.isFile()) throw new Error('is not a regular file')
  if (isOpenToOthers(found)) throw new Error(`${openToOthers(found)}: chmod 600 it, and make a new key if someone may have read it`)
}

/** Whether other users have access; always false on systems without user ids. Throws an Error when the file belongs to another user. */
function isOpenToOthers({ uid, mode }: Stats): boolean {
  const user = process.getuid?.()
  if (user === undefined) return false
  if (uid !== user) throw new Error(`belongs to user ${uid}, not to user ${user} that this process runs as`)
  return (mode & 0o077) !== 0
}

/**
 * For messages: says that users other than the owner may read or write a file, with its mode. Undefined when they may not, and on systems
 * without file modes.
 */
export function exposureOf(found: Stats): string | undefined {
  return process.getuid === undefined || (found.mode & 0o077) === 0 ? undefined : openToOthers(found)
}

const openToOthers = ({ mode }: Stats): string => `others can use it (mode ${(mode & 0o777).toString(8).padStart(4, '0')})`
