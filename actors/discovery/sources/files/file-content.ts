/** Reading configuration files: what one holds, whether it is gone, whether it may have changed. */
import { readFile, stat } from 'node:fs/promises'
import { fileLimits, tooLarge } from '../../../../src/config/parse.ts'
import { isGone } from '../../../runtime/directory-watch.ts'

/** What a file holds, or why that cannot be had; a file that is not there has neither. */
export type Content = { readonly text: string } | { readonly fault: string }

/** Reads a file. Undefined when there is none; what is no file (a pipe, say) is none. */
export async function readContent(file: string): Promise<Content | undefined> {
  try {
    const found = await stat(file)
    if (!found.isFile()) return undefined
    return found.size > fileLimits.bytes ? { fault: tooLarge } : { text: await readFile(file, 'utf8') }
  } catch (error) {
    return isGone(error) ? undefined : { fault: `cannot be read: ${(error as Error).message}` }
  }
}

/** Whether two readings gave the same. */
export function sameContent(one: Content | undefined, other: Content | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return 'text' in one ? 'text' in other && one.text === other.text : 'fault' in other && one.fault === other.fault
}

/** Inode, size and time of the last change of a file. Undefined when there is none; empty when that cannot be told, so that the file is read. */
export async function signatureOf(file: string): Promise<string | undefined> {
  try {
    const { ino, size, mtimeNs } = await stat(file, { bigint: true })
    return `${ino}|${size}|${mtimeNs}`
  } catch (error) {
    return isGone(error) ? undefined : ''
  }
}

/** The signature under which a reading is remembered: empty after a failure, which is tried again however little the file changes. */
export function signatureAfter(content: Content | undefined, signature: string | undefined): string | undefined {
  return content && 'fault' in content ? '' : signature
}
