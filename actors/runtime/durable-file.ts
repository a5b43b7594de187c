/** Small files that survive the end of the process at any moment: they are there whole, in their old or their new content. */
import { closeSync, constants, fchmodSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** What ends the names of files that are being written. Those that a dead process left behind can be removed. */
export const unfinished = '.unfinished'

/** Mode of files that are for this user alone. */
const ownMode = 0o600

/**
 * Writes a file that is not there yet, with the mode that is given whatever the umask is (for this user alone without one), and makes its
 * content durable. Throws when there is one, and leaves none behind when it cannot be written whole.
 */
export function writeNewFile(path: string, content: string, mode = ownMode): void {
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0), ownMode)
  try {
    fchmodSync(file, mode)
    const bytes = Buffer.from(content)
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written)
    fsyncSync(file)
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
}

/** Replaces a file, or makes it: whoever reads it meanwhile, or after a crash, finds the old content or the new. Durable when the call returns. */
export function replaceFile(path: string, content: string, mode = ownMode): void {
  const next = `${path}${unfinished}`
  rmSync(next, { force: true })
  writeNewFile(next, content, mode)
  renameSync(next, path)
  syncDirectory(dirname(path))
}

/** Makes what was created, renamed and removed in a directory durable, where the system can. */
export function syncDirectory(directory: string): void {
  if (process.platform === 'win32') return
  const opened = openSync(directory, constants.O_RDONLY)
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
