/** Reading configuration files: what one holds, whether it is gone, whether it may have changed. */
import { lstat, stat } from 'node:fs/promises'
import { fileText } from '../../../../src/config/file-text.ts'
import { fileLimits, tooLarge } from '../../../../src/config/parse.ts'
import { NoFile, readBoundedBytes } from '../../../runtime/bounded-file.ts'
import { isGone } from '../../../runtime/directory-watch.ts'
import type { FilePatience } from '../../../runtime/patience.ts'

/**
 * What a file holds, or why that cannot be had; a file that is not there has neither. What is no file (a pipe, a device, a directory) never held
 * anything by itself (`isNoFile`), but what was there before it is not gone.
 */
export type Content = { readonly text: string } | { readonly fault: string; readonly isNoFile?: boolean }

/** Reads a file. Undefined only when its directory has no entry of the name. Never rejects. */
export async function readContent(file: string, patience: FilePatience): Promise<Content | undefined> {
  try {
    return { text: fileText(await patience.wait(() => readBoundedBytes(file, { most: fileLimits.bytes, check: checkSize }))) }
  } catch (error) {
    if (error instanceof NoFile) return { fault: 'cannot be read: it is a directory, a pipe, a socket or a device', isNoFile: true }
    if (error instanceof TooLarge) return { fault: tooLarge }
    const { message, code } = error as NodeJS.ErrnoException
    // What opening a socket is answered with.
    if (code === 'ENXIO') return { fault: `cannot be read: ${message}`, isNoFile: true }
    const fault = `cannot be read: ${message}`
    if (!isGone(error)) return { fault }
    // Below what is no directory there are no files, but what was there is not gone.
    return (await hasEntry(file, patience)) ? { fault, isNoFile: code === 'ENOTDIR' } : undefined
  }
}

class TooLarge extends Error {}

function checkSize({ size }: { readonly size: number }): void {
  if (size > fileLimits.bytes) throw new TooLarge()
}

/** Whether there may be an entry of the name: a link that leads nowhere is one, and so is what cannot be told, as below a directory that a file took the place of. */
async function hasEntry(file: string, patience: FilePatience): Promise<boolean> {
  try {
    await patience.wait(() => lstat(file))
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

/** Whether two readings gave the same. */
export function sameContent(one: Content | undefined, other: Content | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return 'text' in one ? 'text' in other && one.text === other.text : 'fault' in other && one.fault === other.fault
}

/** Inode, size and time of the last change of a file. Undefined when there is none; empty when that cannot be told, so that the file is read. */
export async function signatureOf(file: string, patience: FilePatience): Promise<string | undefined> {
  try {
    const { ino, size, mtimeNs } = await patience.wait(() => stat(file, { bigint: true }))
    return `${ino}|${size}|${mtimeNs}`
  } catch (error) {
    return isGone(error) ? undefined : ''
  }
}

/** The signature under which a reading is remembered: empty after a failure, which is tried again however little the file changes. */
export function signatureAfter(content: Content | undefined, signature: string | undefined): string | undefined {
  return content && 'fault' in content ? '' : signature
}
