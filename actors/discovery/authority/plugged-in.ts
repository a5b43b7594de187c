/** An authority that is plugged in as files (docs/certificates.md, A1 to A4): reads and checks their public part. */
import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Chain, chainFault, findChain } from '../../../src/ca/chain.ts'
import { fingerprintOf, pemOf, readPem } from '../../../src/identity/pem.ts'
import { FileError, inFile, isGone, readIfThere } from '../../runtime/bounded-file.ts'
import { exposureOf } from '../../runtime/own-directory.ts'
import type { SigningReference } from './sign-task.ts'

/** A plugged-in authority, without its key. */
export interface PluggedIn {
  readonly by: SigningReference
  /** Changes whenever the key file changes. */
  readonly keyStamp: string
  /** A message when other users can access the key file; otherwise undefined. */
  readonly exposed: string | undefined
  readonly chain: Chain
  /** The distributed roots, PEM each. */
  readonly roots: readonly string[]
}

/** The content of the directory: an authority, or only roots that are trusted in addition to the own root. */
export type PluggedInFiles = PluggedIn | { readonly by: undefined; readonly keyStamp?: undefined; readonly roots: readonly string[] }

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
    keyStamp: stampOf(keyFile),
    exposed: exposureOf(keyFile),
    chain: found,
    roots,
  }
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
