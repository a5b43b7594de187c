/**
 * The authority files that `pilot-discovery ca` exports and imports: checked, and written all or none. Runs in the process of the
 * command.
 */
import { type KeyObject, X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { AuthorityStatus } from '../../../protocols/messages/authority-status.ts'
import { chainFault, findChain } from '../../../src/ca/chain.ts'
import type { AuthorityFiles } from '../../../src/cli/ca.ts'
import { fingerprintOf, pemOf } from '../../../src/identity/pem.ts'
import { FileError } from '../../runtime/bounded-file.ts'
import { syncDirectory, unfinished, writeNewFile } from '../../runtime/durable-file.ts'
import { readPrivateKey } from '../own-keys/private-key-file.ts'
import { readKey } from './key-storage.ts'
import { readCertificatesFile, readKeyStore, trustStoreOf } from './key-store-files.ts'

/** Names of the files in the directory of a plugged-in authority (docs/certificates.md, A1). */
const names = { root: 'root-cert.pem', cert: 'ca-cert.pem', chain: 'cert-chain.pem', key: 'ca-key.pem' } as const

/**
 * Writes the certificates of an authority to a directory, with `withKey` also its private key, all with mode 0600. Returns the paths.
 * Throws an Error that names the file when one of the files exists or the key cannot be read.
 */
export function exportAuthority(status: AuthorityStatus, directory: string, withKey: boolean, pluggedIn: string): string[] {
  const files: [string, string][] = [
    [names.root, sentRoots(status).join('')],
    [names.cert, status.signing.certificate],
  ]
  if (status.signing.chain !== '') files.push([names.chain, status.signing.chain])
  if (withKey) files.push([names.key, keyOf(status, pluggedIn).export({ type: 'pkcs8', format: 'pem' }) as string])
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return placeAll(directory, files, false)
}

/**
 * Writes the roots that are sent to workloads to one file, PKCS #12 or PKCS #7 by the end of its name ({@link trustStoreOf}), with mode 0600.
 * Resolves with its path. Rejects with an Error that names the file or flag when the file exists or a flag is wrong.
 */
export async function exportTrustStore(status: AuthorityStatus, path: string, passwordFile: string): Promise<string[]> {
  const content = await trustStoreOf(path, sentRoots(status), passwordFile)
  const directory = dirname(path)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  return placeAll(directory, [[basename(path), content]], false)
}

function sentRoots({ roots }: AuthorityStatus): string[] {
  return roots.filter(({ uses }) => uses.includes('sent to workloads')).map(({ certificate }) => certificate)
}

function keyOf({ source, keptIn, signing }: AuthorityStatus, pluggedIn: string): KeyObject {
  if (source === 'own' && !existsSync(keptIn)) throw new Error(`the private key is not in a directory: ${keptIn} holds it`)
  if (source === 'own') return readKey({ kind: 'directory', directory: join(keptIn, 'keys') }, fingerprintOf(signing.certificate))
  return readKeyFile(join(pluggedIn, names.key), signing.certificate)
}

/** An authority to import, before its chain is checked. Certificates are PEM. */
interface Given {
  /** The file with the signing certificate. */
  readonly path: string
  readonly certificate: string
  readonly others: string
  readonly roots: string
  /** Whether all roots are written. Otherwise only the one at the end of the chain is. */
  readonly keepsRoots: boolean
  /** Returns the private key of the signing certificate (PEM), or throws an Error that names its file. */
  keyFor(signing: string): KeyObject
}

/**
 * Checks the files of an authority and writes them to the directory of the plugged-in authority, over existing files only with `replace`.
 * Resolves with the paths. Rejects with an Error that names the file and the reason; then nothing was written.
 */
export async function importAuthority(files: AuthorityFiles, directory: string, replace: boolean, now: number): Promise<string[]> {
  const { path, certificate, others, roots, keepsRoots, keyFor } = files.pkcs12 === '' ? await givenAsPem(files) : await givenAsKeyStore(files)
  const chain = await within(path, () => {
    const found = findChain(certificate, others, roots)
    const fault = chainFault(found, now)
    if (fault !== undefined) throw new Error(fault)
    return found
  })
  const signing = pemOf('CERTIFICATE', chain.signing.encoded)
  const key = keyFor(signing)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const written: [string, string][] = [
    [names.root, keepsRoots ? roots : chain.root],
    [names.cert, signing],
    [names.chain, chain.intermediates],
    [names.key, key.export({ type: 'pkcs8', format: 'pem' }) as string],
  ]
  return placeAll(directory, written, replace)
}

async function givenAsPem({ cert, key, chain, root }: AuthorityFiles): Promise<Given> {
  const certificate = await readCertificates(cert)
  return {
    path: cert,
    certificate,
    others: chain === '' ? '' : await readCertificates(chain),
    roots: root === '' ? certificate : await readCertificates(root),
    keepsRoots: true,
    keyFor: (signing) => readKeyFile(key, signing),
  }
}

/** Without a file of roots, the root is one of the key store. Others there are not trusted by the import. */
async function givenAsKeyStore({ pkcs12, passwordFile, root }: AuthorityFiles): Promise<Given> {
  const stored = await within(pkcs12, () => readKeyStore(pkcs12, passwordFile))
  if (root === '' && stored.roots === '') throw new Error(`${pkcs12}: it holds no root, which --root has to name then`)
  return {
    path: pkcs12,
    certificate: stored.certificate,
    others: stored.others,
    roots: root === '' ? stored.roots : await readCertificates(root),
    keepsRoots: root !== '',
    keyFor: () => stored.key,
  }
}

/** Writes all files under temporary names and syncs them, then renames all of them. */
function placeAll(directory: string, files: readonly (readonly [name: string, content: string | Buffer])[], replace: boolean): string[] {
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
  const key = readPrivateKey(path, 'given')
  if (!new X509Certificate(certificate).checkPrivateKey(key)) throw new Error(`${path}: is not the key of the signing certificate`)
  return key
}

const readCertificates = (path: string): Promise<string> => within(path, () => readCertificatesFile(path))

async function within<T>(path: string, make: () => T | Promise<T>): Promise<T> {
  try {
    return await make()
  } catch (error) {
    throw FileError.of(path, error)
  }
}
