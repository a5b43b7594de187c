/**
 * The authority files that `pilot-discovery ca` exports and imports: checked, and written all or none. Runs in the process of the
 * command.
 */
import { type KeyObject, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { AuthorityPage } from '../../../protocols/messages/authority-page.ts'
import { chainFault, findChain } from '../../../src/ca/chain.ts'
import { fingerprintOf, pemOf } from '../../../src/identity/pem.ts'
import { readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { syncDirectory, unfinished, writeNewFile } from '../../runtime/durable-file.ts'
import { readPrivateKey } from '../private-key-file.ts'
import { readKey } from './key-storage.ts'

/** Maximum size of a file that is read, in bytes. */
const largest = 1_048_576

/** Names of the files in the directory of a plugged-in authority (docs/certificates.md, A1). */
const names = { root: 'root-cert.pem', cert: 'ca-cert.pem', chain: 'cert-chain.pem', key: 'ca-key.pem' } as const

/**
 * Writes the certificates of an authority to a directory, with `withKey` also its private key, all with mode 0600. Returns the paths.
 * Throws an Error that names the file when one of the files exists or the key cannot be read.
 */
export function exportAuthority(page: AuthorityPage, directory: string, withKey: boolean, pluggedIn: string): string[] {
  const roots = page.roots.filter(({ uses }) => uses.includes('sent to workloads')).map(({ certificate }) => certificate)
  const files: [string, string][] = [
    [names.root, roots.join('')],
    [names.cert, page.signing.certificate],
  ]
  if (page.signing.chain !== '') files.push([names.chain, page.signing.chain])
  if (withKey) files.push([names.key, keyOf(page, pluggedIn).export({ type: 'pkcs8', format: 'pem' }) as string])
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return placeAll(directory, files, false)
}

function keyOf({ source, keptIn, signing }: AuthorityPage, pluggedIn: string): KeyObject {
  if (source === 'own') return readKey({ kind: 'directory', directory: join(keptIn, 'keys') }, fingerprintOf(signing.certificate))
  return readKeyFile(join(pluggedIn, names.key), signing.certificate)
}

/** Paths of the files to import; `chain` and `root` may be empty. */
export interface ImportedFiles {
  readonly cert: string
  readonly key: string
  readonly chain: string
  readonly root: string
}

/**
 * Checks the files of an authority and writes them to the directory of the plugged-in authority, over existing files only with `replace`.
 * Returns the paths. Throws an Error that names the file and the reason; then nothing was written.
 */
export function importAuthority(files: ImportedFiles, directory: string, replace: boolean, now: number): string[] {
  const certificate = read(files.cert)
  const roots = files.root === '' ? certificate : read(files.root)
  const chain = within(files.cert, () => {
    const found = findChain(certificate, files.chain === '' ? '' : read(files.chain), roots)
    const fault = chainFault(found, now)
    if (fault !== undefined) throw new Error(fault)
    return found
  })
  const signing = pemOf('CERTIFICATE', chain.signing.encoded)
  const key = readKeyFile(files.key, signing)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const written: [string, string][] = [
    [names.root, roots],
    [names.cert, signing],
    [names.chain, chain.intermediates],
    [names.key, key.export({ type: 'pkcs8', format: 'pem' }) as string],
  ]
  return placeAll(directory, written, replace)
}

/** Writes all files under temporary names and syncs them, then renames all of them. */
function placeAll(directory: string, files: readonly (readonly [name: string, content: string])[], replace: boolean): string[] {
  const paths = files.map(([name]) => resolve(directory, name))
  const there = paths.find((path) => existsSync(path))
  if (there !== undefined && !replace) throw new Error(`${there}: is there already`)
  try {
    for (const [index, [, content]] of files.entries()) {
      rmSync(`${paths[index]}${unfinished}`, { force: true })
      writeNewFile(`${paths[index]}${unfinished}`, content)
    }
    for (const path of paths) renameSync(`${path}${unfinished}`, path)
  } finally {
    for (const path of paths) rmSync(`${path}${unfinished}`, { force: true })
  }
  syncDirectory(directory)
  return paths
}

function readKeyFile(path: string, certificate: string): KeyObject {
  const key = within(path, () => readPrivateKey(path, 'given'))
  if (!new X509Certificate(certificate).checkPrivateKey(key)) throw new Error(`${path}: is not the key of the signing certificate`)
  return key
}

function read(path: string): string {
  return within(path, () => readBoundedFileSync(path, { most: largest }))
}

function within<T>(path: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    const { message } = error as Error
    throw new Error(message.startsWith(`${path}: `) ? message : `${path}: ${message}`)
  }
}
