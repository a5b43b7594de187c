/** An authority that is plugged in as files or as a Secret (docs/certificates.md, A1 to A6): reads and checks its public part. */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Chain, chainFault, findChain } from '../../../src/ca/chain.ts'
import { authorityTexts, type SecretTexts } from '../../../src/ca/secret-forms.ts'
import { fingerprintOf, pemOf, readPem } from '../../../src/identity/pem.ts'
import { FileError, inFile, isGone, readIfThere } from '../../runtime/bounded-file.ts'
import { exposureOf } from '../../runtime/own-directory.ts'
import type { SigningReference } from './sign-task.ts'

/** A plugged-in authority, without its key. */
export interface PluggedIn {
  readonly by: SigningReference
  /** The directory, or the Secret, in messages. */
  readonly from: string
  /** Changes whenever the key file, or the key in the Secret, changes. */
  readonly keyStamp: string
  /** A message when other users can access the key file; otherwise undefined. */
  readonly exposed: string | undefined
  readonly chain: Chain
  /** The distributed roots, PEM each. */
  readonly roots: readonly string[]
}

/** The content of the directory or Secret: an authority, or only roots that are trusted in addition to the own root. */
export type PluggedInFiles =
  | PluggedIn
  | { readonly by: undefined; readonly from?: undefined; readonly keyStamp?: undefined; readonly roots: readonly string[] }

/** The conventional file names of plugged-in authorities. */
const names = { key: 'ca-key.pem', signing: 'ca-cert.pem', chain: 'cert-chain.pem', roots: 'root-cert.pem' } as const

/** Paths of the files, whether or not they exist. */
export const pluggedInPaths = (directory: string): readonly string[] => Object.values(names).map((name) => join(directory, name))

/** Whether a directory contains the key of an authority. */
export const isPluggedIn = async (directory: string): Promise<boolean> => (await statusOf(join(directory, names.key))) !== undefined

/**
 * Reads and checks a directory. Rejects with an Error that names the file and the reason. Whether the certificates are valid at present is
 * not checked: {@link invalidAt}. `wasThere`: it had files before; then a directory that is away, such as an unmounted one, is an error, and
 * not an empty one.
 */
export async function readPluggedIn(directory: string, wasThere = false): Promise<PluggedInFiles> {
  const at = (name: keyof typeof names) => join(directory, names[name])
  const roots = rootsOf(at('roots'), await readIfThere(at('roots')))
  const keyFile = await statusOf(at('key'))
  if (keyFile === undefined && roots.length === 0 && wasThere && !(await statusOf(directory))) throw new Error(`${directory}: is not there any more`)
  if (keyFile === undefined) return { by: undefined, roots }
  const [signing, chain] = [await readIfThere(at('signing')), (await readIfThere(at('chain'))) ?? '']
  if (signing === undefined) throw new Error(`${at('signing')}: is not there, but ${at('key')} is`)
  if (roots.length === 0) throw new Error(`${at('roots')}: is not there, but ${at('key')} is`)
  const found = inFile(at('signing'), () => findChain(signing, chain, roots.join('')))
  const certificate = pemOf('CERTIFICATE', found.signing.encoded)
  return {
    by: { id: fingerprintOf(certificate), certificate, key: { kind: 'file', path: at('key') } },
    from: directory,
    keyStamp: stampOf(keyFile),
    exposed: exposureOf(keyFile),
    chain: found,
    roots,
  }
}

/**
 * Checks the values of a Secret `cacerts`, which `from` names. Returns them with the private key, which the caller passes to the signer
 * threads. Throws an Error that names the value and the reason.
 */
export function pluggedInSecret(data: SecretTexts, from: string): { readonly found: PluggedInFiles; readonly key: string } {
  const { signing, key, chain, roots: given, names: parts } = authorityTexts(data)
  const roots = rootsOf(`${from}: ${parts.roots}`, given === '' ? undefined : given)
  if (key === undefined) return { found: { by: undefined, roots }, key: '' }
  if (signing === '') throw new Error(`${from}: ${parts.signing}: is missing, but ${parts.key} is there`)
  if (roots.length === 0) throw new Error(`${from}: ${parts.roots}: is missing, but ${parts.key} is there`)
  const found = inFile(`${from}: ${parts.signing}`, () => findChain(signing, chain, roots.join('')))
  const certificate = pemOf('CERTIFICATE', found.signing.encoded)
  const by: SigningReference = { id: fingerprintOf(certificate), certificate, key: { kind: 'tasks' } }
  const keyStamp = createHash('sha256').update(key).digest('hex')
  return { found: { by, from, keyStamp, exposed: undefined, chain: found, roots }, key }
}

/** Why a plugged-in authority cannot be used at the Unix time `now` in milliseconds; undefined when its chain is valid then. */
export function invalidAt({ by, chain }: PluggedInFiles & { readonly chain?: Chain }, now: number): string | undefined {
  return by && chain && chainFault(chain, now)
}

function rootsOf(path: string, text: string | undefined): readonly string[] {
  if (text === undefined) return []
  const roots = inFile(path, () =>
    readPem(text)
      .filter(({ label }) => label === 'CERTIFICATE')
      .map(({ der }) => pemOf('CERTIFICATE', der)),
  )
  for (const root of roots) inFile(path, () => fingerprintOf(root))
  if (roots.length === 0) throw new Error(`${path}: holds no certificate in PEM`)
  return roots
}

const stampOf = ({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string => [dev, ino, size, mtimeMs, ctimeMs].join()

/** Undefined when the file does not exist. */
async function statusOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path)
  } catch (error) {
    if (isGone(error)) return undefined
    throw FileError.of(path, error)
  }
}
