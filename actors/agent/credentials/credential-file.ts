/** Files with tokens, roots and certificates, read each time they are needed: those who mount them exchange them. */
import { createPrivateKey } from 'node:crypto'
import type { PairFiles, RootsSource } from '../../../protocols/messages/credentials.ts'
import { certificatesOf } from '../../../src/identity/pem.ts'
import { readBoundedFile } from '../../runtime/bounded-file.ts'

/** Largest file in bytes. */
const fileBytes = 1_048_576

/** A certificate chain, leaf first, with the key of the leaf; both PEM. */
export interface PairText {
  readonly chain: string
  readonly key: string
}

/** Reads a file. Rejects with an Error that names it when it cannot be read, is no regular file or is larger than 1 MiB. */
async function readCredentialFile(path: string): Promise<string> {
  const text = await readIfThere(path)
  if (text === undefined) throw new Error(`${path}: there is no such file`)
  return text
}

/** Reads a file; undefined when there is none. Rejects with an Error that names it when it cannot be read, is no regular file or is larger than 1 MiB. */
export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readBoundedFile(path, { most: fileBytes })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new Error(`${path}: ${message}`)
  }
}

/** Reads a bearer token; space around it is left out. Rejects with an Error that names the file when it holds no token. */
export async function readToken(file: string): Promise<string> {
  const token = (await readCredentialFile(file)).trim()
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error(`${file}: holds no token`)
  return token
}

/**
 * The roots that a server is verified with at present: those of the first file that is there and, unless these are pinned, those that were
 * learned of the certificate authority; `known` in place of the file of the latter. PEM; undefined for the roots of the system. Rejects with an Error
 * that names the file when there are no roots at all: a file that cannot be used does no harm while others are known.
 */
export async function readRoots({ files, isPinned, learned }: RootsSource, known?: string): Promise<readonly string[] | undefined> {
  if (files === undefined) return undefined
  const faults: Error[] = []
  const found: string[] = []
  const take = async (path: string): Promise<boolean> => {
    try {
      const text = await readIfThere(path)
      if (text === undefined) return false
      found.push(authoritiesIn(path, text))
    } catch (error) {
      faults.push(error as Error)
    }
    return true
  }
  for (const file of files) if (await take(file)) break
  if (known !== undefined && !isPinned) found.push(known)
  else if (learned !== undefined) await take(learned)
  if (found.length === 0) throw faults[0] ?? new Error(`${files.join(' and ')}: there is no such file`)
  return found
}

/** Reads files again and again. */
export type FilesReader<T> = () => Promise<T | undefined>

/** Reads the certificates of a file, PEM; whatever else it holds is left out. The reader gives undefined when there is no such file, or it is empty, and rejects with an Error that names it when it holds none. */
export function authoritiesReader(path: string): FilesReader<string> {
  return readerOf([path], (text) => authoritiesIn(path, text))
}

const authoritiesIn = (path: string, text: string): string => within(path, () => certificatesOf(text).join(''))

/** Reads a certificate with its key, of the first file the certificates alone. The reader gives undefined while either file is missing or empty, and rejects with an Error that names the file which cannot be used, or when the key is another's. */
export function pairReader(files: PairFiles): FilesReader<PairText> {
  return readerOf([files.chain, files.key], (chain, key) => checkedPair(files, { chain, key }))
}

/** Reads once what {@link pairReader} reads. */
export function readPair(files: PairFiles): Promise<PairText | undefined> {
  return pairReader(files)()
}

/** What is made of the content of files; of content that did not change it is not made again, since it takes a millisecond and files are looked at every few seconds. */
function readerOf<T>(paths: readonly string[], make: (...texts: string[]) => T): FilesReader<T> {
  let last: { readonly texts: readonly string[]; readonly made: T } | undefined
  return async () => {
    const found = await Promise.all(paths.map(readIfThere))
    const texts = found.filter((text): text is string => text !== undefined && text !== '')
    if (texts.length < paths.length) return undefined
    if (!last || texts.some((text, index) => text !== last?.texts[index])) last = { texts, made: make(...texts) }
    return last.made
  }
}

function checkedPair(files: PairFiles, { chain, key }: PairText): PairText {
  const certificates = within(files.chain, () => certificatesOf(chain))
  const privateKey = within(files.key, () => {
    try {
      return createPrivateKey(key)
    } catch {
      // What OpenSSL says of a key that it cannot read says nothing to a user.
      throw new Error('holds no private key in PEM without a password')
    }
  })
  if (!certificates[0]?.checkPrivateKey(privateKey)) throw new Error(`${files.key}: is not the key of the certificate in ${files.chain}`)
  return { chain: certificates.join(''), key }
}

function within<T>(path: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`)
  }
}
