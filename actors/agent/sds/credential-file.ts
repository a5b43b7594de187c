/** Files with tokens and roots, read each time they are needed: those who mount them exchange them. */
import { readFile, stat } from 'node:fs/promises'

/** Largest file in bytes. */
const fileBytes = 1_048_576

/** Reads a file. Rejects with an Error that names it when it cannot be read, is no regular file or is larger than 1 MiB. */
export async function readCredentialFile(path: string): Promise<string> {
  try {
    const found = await stat(path)
    if (!found.isFile()) throw new Error('is not a file')
    if (found.size > fileBytes) throw new Error(`has more than ${fileBytes} bytes`)
    return await readFile(path, 'utf8')
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`)
  }
}
