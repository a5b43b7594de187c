/** Reads configuration files: their content, whether they are gone, and whether they may have changed. */
import { lstatSync, type Stats } from 'node:fs'
import { lstat, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { fileText } from '../../../../src/config/file-text.ts'
import { fileLimits, tooLarge } from '../../../../src/config/parse.ts'
import { type FileError, FileTooLarge, isGone, NotAFile, readBoundedBytes } from '../../../runtime/bounded-file.ts'
import type { FileTimeouts } from '../../../runtime/file-timeouts.ts'

/**
 * The text of a file, or the reason why it cannot be read. `isNoFile`: the path is a pipe, a device or a directory, which by itself never
 * holds objects; objects of a file that was there before are not gone.
 */
export type Content = { readonly text: string } | { readonly fault: string; readonly isNoFile?: boolean }

/** A file as it was read. */
export interface FoundFile {
  /** Undefined only if the directory has no entry of the name. */
  readonly content: Content | undefined
  /**
   * The signature before the content was read. Undefined for a missing file; empty after a failure, so that the next look reads the file
   * again even if it has not changed.
   */
  readonly signature: string | undefined
}

/** Reads a file. Never rejects. */
export async function readFile(file: string, timeouts: FileTimeouts): Promise<FoundFile> {
  let signature = ''
  const check = (found: Stats) => {
    signature = signatureIn(found)
  }
  try {
    const bytes = await readBoundedBytes(file, { most: fileLimits.bytes, check, timeouts })
    return { content: { text: fileText(bytes) }, signature }
  } catch (error) {
    const content = await faultOf(file, error, timeouts)
    return { content, signature: content && '' }
  }
}

/** Returns why a file could not be read. Undefined if there is no such file. */
async function faultOf(file: string, error: unknown, timeouts: FileTimeouts): Promise<Content | undefined> {
  if (error instanceof NotAFile) return { fault: 'cannot be read: it is a directory, a pipe, a socket or a device', isNoFile: true }
  if (error instanceof FileTooLarge) return { fault: tooLarge }
  const { reason, code } = error as FileError
  // The error for opening a socket.
  if (code === 'ENXIO') return { fault: `cannot be read: ${reason}`, isNoFile: true }
  const fault = `cannot be read: ${reason}`
  if (!isGone(error)) return { fault }
  // A parent of the path is not a directory. There can be no file, but the objects of a file that was there before are not gone.
  return (await hasEntry(file, timeouts)) ? { fault, isNoFile: code === 'ENOTDIR' } : undefined
}

/**
 * Whether there may be an entry of the name. A dangling symbolic link counts as one, and so does a path whose state cannot be determined,
 * for example because a parent directory was replaced by a file.
 */
async function hasEntry(file: string, timeouts: FileTimeouts): Promise<boolean> {
  try {
    await timeouts.run(() => lstat(file))
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

/** Whether two results are the same text or the same fault. */
export function sameContent(one: Content | undefined, other: Content | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return 'text' in one ? 'text' in other && one.text === other.text : 'fault' in other && one.fault === other.fault
}

/** Maximum number of files whose signatures are read after one answer of their file system. */
const filesPerAnswer = 128

/**
 * Yields files with their signatures ({@link signatureOf}). Reading one on this thread costs a tenth of what an operation of Node's thread
 * pool costs, but blocks the thread while the file system does not answer: it is done right after the directory has answered an operation
 * of the pool, and not for symbolic links, whose targets may be on another file system.
 */
export async function* signaturesOf(files: Iterable<string>, timeouts: FileTimeouts): AsyncGenerator<[file: string, signature: string | undefined]> {
  let directory = ''
  let left = 0
  let answers = false
  for (const file of files) {
    if (left === 0 || dirname(file) !== directory) {
      directory = dirname(file)
      left = filesPerAnswer
      answers = await timeouts
        .run(() => stat(directory))
        .then(
          () => true,
          () => false,
        )
    }
    left--
    yield [file, (answers ? signatureNow(file) : undefined) ?? (await signatureOf(file, timeouts))]
  }
}

/** The signature of a regular file. Undefined for everything else, and after a failure. */
function signatureNow(file: string): string | undefined {
  try {
    const found = lstatSync(file, { throwIfNoEntry: false })
    return found?.isFile() ? signatureIn(found) : undefined
  } catch {
    return undefined
  }
}

/**
 * Inode, size and modification time of a file. Undefined when it does not exist; empty when that cannot be determined, so that the file
 * is read.
 */
export async function signatureOf(file: string, timeouts: FileTimeouts): Promise<string | undefined> {
  try {
    return signatureIn(await timeouts.run(() => stat(file)))
  } catch (error) {
    return isGone(error) ? undefined : ''
  }
}

const signatureIn = ({ ino, size, mtimeMs }: Stats): string => `${ino}|${size}|${mtimeMs}`
