/** Directories for what nobody but the user of this process may read. */
import { chmodSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'

/**
 * Makes a directory for this user alone. One that is there must be so already, or be empty: then it is made so. Throws an Error that
 * names the directory and what is wrong with it.
 */
export function ownDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    const found = lstatSync(path)
    if (!found.isDirectory()) throw new Error('is not a directory')
    const user = process.getuid?.()
    if (user === undefined) return
    if (found.uid !== user) throw new Error(`belongs to user ${found.uid}, not to user ${user} that this process runs as`)
    if ((found.mode & 0o077) === 0) return
    if (readdirSync(path).length > 0)
      throw new Error(`others can use it (mode ${(found.mode & 0o777).toString(8).padStart(4, '0')}): chmod 700 it, or name another directory`)
    chmodSync(path, 0o700)
  } catch (error) {
    const { message } = error as Error
    throw new Error(message.includes(path) ? message : `${path}: ${message}`)
  }
}
