/** Reads files of tokens, roots and certificates. The files are read on each use, because they are replaced while the agent runs. */
import { createPrivateKey } from 'node:crypto'
import type { PairFiles, RootsSource } from '../../../protocols/messages/credentials.ts'
import { certificatesOf, pemOf, readPem } from '../../../src/identity/pem.ts'
import { inFile, readIfThere } from '../../runtime/bounded-file.ts'

/** A certificate chain, leaf first, and the private key of the leaf, both in PEM. */
export interface PairText {
  readonly chain: string
  readonly key: string
}

/**
 * Reads a file. Rejects with an Error that names the file when it is missing, cannot be read, is not a regular file or is larger than 1
 * MiB.
 */
async function readCredentialFile(path: string): Promise<string> {
  const text = await readIfThere(path)
  if (text === undefined) throw new Error(`${path}: there is no such file`)
  return text
}

/** Reads a bearer token and trims whitespace. Rejects with an Error that names the file when it contains no token. */
export async function readToken(file: string): Promise<string> {
  const token = (await readCredentialFile(file)).trim()
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Error(`${file}: holds no token`)
  return token
}

/**
 * Returns the roots that a server is verified with: those of the first of the files that exists and, unless the roots are pinned, those
 * that the certificate authority returned: `known`, or the file `learned` when `known` is not given. PEM; undefined for the roots of the
 * system. An unusable file is ignored when other roots are found. Rejects with an Error that names a file when no roots are found.
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

/** Reads files on each call. Resolves with undefined while a file is missing or empty. */
export type FilesReader<T> = () => Promise<T | undefined>

/**
 * Returns a reader of the certificates in a PEM file; other PEM blocks are ignored. The reader resolves with undefined when the file is
 * missing or empty, and rejects with an Error that names the file when it contains no certificate.
 */
export function authoritiesReader(path: string): FilesReader<string> {
  return readerOf([path], (text) => authoritiesIn(path, text))
}

/**
 * Returns a reader of certificates of authorities with their revocation lists, both in PEM. The reader resolves with undefined while either
 * file is missing or empty, and rejects with an Error that names the file that contains no certificate or no list.
 */
export function revocableReader(authorities: string, revocations: string): FilesReader<{ authorities: string; revocations: string }> {
  return readerOf([authorities, revocations], (roots, lists) => ({
    authorities: authoritiesIn(authorities, roots),
    revocations: inFile(revocations, () => revocationsIn(lists)),
  }))
}

function revocationsIn(text: string): string {
  const lists = readPem(text, (label) => label === 'X509 CRL')
  if (lists.length === 0) throw new Error('holds no revocation list in PEM')
  return lists.map(({ der }) => pemOf('X509 CRL', der)).join('')
}

const authoritiesIn = (path: string, text: string): string => inFile(path, () => certificatesOf(text).join(''))

/**
 * Returns a reader of a certificate chain with its key; from the chain's file only certificates are read. The reader resolves with
 * undefined while either file is missing or empty, and rejects with an Error that names the unusable file, also when the key does not
 * belong to the certificate.
 */
export function pairReader(files: PairFiles): FilesReader<PairText> {
  return readerOf([files.chain, files.key], (chain, key) => checkedPair(files, { chain, key }))
}

/** Reads the files of {@link pairReader} once. */
export function readPair(files: PairFiles): Promise<PairText | undefined> {
  return pairReader(files)()
}

/**
 * Returns a reader that calls `make` with the contents of all files and caches the result until a content changes, because parsing takes a
 * millisecond and the files are read every few seconds.
 */
function readerOf<T>(paths: readonly string[], make: (...texts: string[]) => T): FilesReader<T> {
  let last: { readonly texts: readonly string[]; readonly made: T } | undefined
  return async () => {
    const found = await Promise.all(paths.map((path) => readIfThere(path)))
    const texts = found.filter((text): text is string => text !== undefined && text !== '')
    if (texts.length < paths.length) return undefined
    if (!last || texts.some((text, index) => text !== last?.texts[index])) last = { texts, made: make(...texts) }
    return last.made
  }
}

function checkedPair(files: PairFiles, { chain, key }: PairText): PairText {
  const certificates = inFile(files.chain, () => certificatesOf(chain))
  const privateKey = inFile(files.key, () => {
    try {
      return createPrivateKey(key)
    } catch {
      // OpenSSL's error for an unreadable key does not help a user.
      throw new Error('holds no private key in PEM without a password')
    }
  })
  if (!certificates[0]?.checkPrivateKey(privateKey)) throw new Error(`${files.key}: is not the key of the certificate in ${files.chain}`)
  return { chain: certificates.join(''), key }
}
