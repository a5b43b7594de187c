/** Writes small files atomically and durably: after a crash at any moment, a file has either its old or its new content. */
import { randomUUID } from 'node:crypto'
import { closeSync, constants, fchmodSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Suffix of files that are being written. Files with this suffix that a crashed process left behind can be removed. */
export const unfinished = '.unfinished'

/** Whether an error says that the disk, or the user's share of it, is full. */
export const isFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(String((error as NodeJS.ErrnoException).code))

/** Mode of files that only this user may read. */
const ownMode = 0o600

/**
 * Creates a file with exactly the given mode, whatever the umask is (by default readable by this user only), and syncs its content to
 * disk. Throws if the file exists. If writing fails, the file is removed. Errors name the path.
 */
export function writeNewFile(path: string, content: string | Buffer, mode = ownMode): void {
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0), ownMode)
  try {
    fchmodSync(file, mode)
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written)
    fsyncSync(file)
  } catch (error) {
    rmSync(path, { force: true })
    // Errors of calls that take a descriptor do not name the file.
    if (error instanceof Error && !error.message.includes(path)) error.message += ` '${path}'`
    throw error
  } finally {
    closeSync(file)
  }
}

/** Replaces or creates a file atomically: a reader, also after a crash, sees the old content or the new. Durable when the call returns. */
export function replaceFile(path: string, content: string | Buffer, mode = ownMode): void {
  const next = `${path}${unfinished}`
  rmSync(next, { force: true })
  writeNewFile(next, content, mode)
  renameSync(next, path)
  syncDirectory(dirname(path))
}

/** Creates a file with its whole content, unless there is one already. If several processes do so at the same time, the first one's stays. */
export function createOnce(path: string, content: string | Buffer): void {
  const made = `${path}.${randomUUID()}`
  writeNewFile(made, content)
  try {
    linkSync(made, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(made, { force: true })
  }
  syncDirectory(dirname(path))
}

/** Syncs a directory, so that the creation, renaming and removal of its entries are durable, on systems that support it. */
export function syncDirectory(directory: string): void {
  if (process.platform === 'win32') return
  const opened = openSync(directory, constants.O_RDONLY)
  try {
    fsyncSync(opened)
  } finally {
    closeSync(opened)
  }
}
