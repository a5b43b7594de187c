/**
 * Stores the state of the certificate authority in a directory (docs/certificates.md, "Where it is kept"): `state.json`, one file per
 * private key in `keys/`, and notes. The directory is accessible to its user only, and used by one process at a time.
 */
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type AuthorityState, emptyState } from '../../../src/ca/state.ts'
import { readStateText, stateText } from '../../../src/ca/stored-state.ts'
import { inFile, readIfThere } from '../../runtime/bounded-file.ts'
import { replaceFile, syncDirectory, unfinished } from '../../runtime/durable-file.ts'
import { checkOwnFile, ownDirectory } from '../../runtime/own-directory.ts'
import { DirectoryLock } from './directory-lock.ts'
import { type CaStorage, type KeyPlace, StaleVersionError, type Stored } from './storage.ts'

/** Maximum size of a state and of a note, in bytes. */
const largest = { state: 1_048_576, note: 67_108_864 }

/** Size of the chunks in which a note is written, in characters: each takes about half a millisecond. */
const pieceBytes = 65_536

/** Delay before changes of the ledger are stored, in milliseconds: a minimum, and an amount per holder. */
const ledgerDelay = { least: 250, each: 0.5 }

/** Opens or creates the directory and takes its lock. Rejects with an Error that names the directory or file and the reason. */
export async function openFileStorage(directory: string): Promise<FileStorage> {
  const root = resolve(directory)
  const keys = join(root, 'keys')
  for (const path of [root, keys]) ownDirectory(path)
  const lock = await DirectoryLock.take(root)
  try {
    for (const path of [root, keys])
      for (const name of readdirSync(path)) if (name.endsWith(unfinished) && !name.startsWith('lock.')) rmSync(join(path, name), { force: true })
    for (const name of readdirSync(keys)) if (name.endsWith('.pem')) inFile(join(keys, name), () => checkOwnFile(lstatSync(join(keys, name))))
    return await FileStorage.open(root, keys, lock)
  } catch (error) {
    lock.release()
    throw error
  }
}

/** The storage in a directory. */
export class FileStorage implements CaStorage {
  readonly described: string
  readonly keys: KeyPlace & { readonly kind: 'directory' }
  readonly ledgerDelay = ledgerDelay
  readonly settleMs = 0
  readonly #directory: string
  readonly #path: string
  readonly #lock: DirectoryLock

  private constructor(directory: string, keys: string, lock: DirectoryLock) {
    this.described = directory
    this.keys = { kind: 'directory', directory: keys }
    this.#directory = directory
    this.#path = join(directory, 'state.json')
    this.#lock = lock
  }

  /**
   * The first `state.json` records that there is no root yet. If it is missing although there are keys, it was lost, and must not be
   * replaced by an empty one.
   */
  static async open(directory: string, keys: string, lock: DirectoryLock): Promise<FileStorage> {
    const storage = new FileStorage(directory, keys, lock)
    if ((await storage.#read()) !== undefined) return storage
    if (readdirSync(keys).length > 0)
      throw new Error(`${storage.#path}: is missing, but ${keys} holds keys: restore it, or move the whole directory away to begin with a new root`)
    storage.#write(emptyState, 1)
    return storage
  }

  async read(): Promise<Stored> {
    const stored = await this.#read()
    if (!stored) throw new Error(`${this.#path}: is missing since the start`)
    return stored
  }

  async write(state: AuthorityState, version: string): Promise<string> {
    const before = (await this.read()).version
    if (before !== version) throw new StaleVersionError(`${this.#path}: has version ${before} instead of ${version}: somebody else wrote it`)
    const next = Number(version) + 1
    this.#write(state, next)
    return String(next)
  }

  readonly noteAt = (name: string): string => this.#note(name)

  async readNote(name: string): Promise<string | undefined> {
    return readIfThere(this.#note(name), { most: largest.note, refusesLinks: true })
  }

  async writeNote(name: string, pieces: Iterable<string>): Promise<void> {
    this.#lock.check()
    const path = this.#note(name)
    const file = await open(`${path}${unfinished}`, 'w', 0o600)
    try {
      let waiting = ''
      for (const piece of pieces) {
        waiting += piece
        if (waiting.length < pieceBytes) continue
        await file.writeFile(waiting)
        waiting = ''
      }
      await file.writeFile(waiting)
    } finally {
      await file.close()
    }
    await rename(`${path}${unfinished}`, path)
  }

  async keepKeys(ids: readonly string[]): Promise<void> {
    this.#lock.check()
    const kept = new Set(ids.map((id) => `${id}.pem`))
    for (const name of readdirSync(this.keys.directory))
      if (!kept.has(name)) rmSync(join(this.keys.directory, name), { force: true, recursive: true })
    syncDirectory(this.keys.directory)
  }

  async close(): Promise<void> {
    this.#lock.release()
  }

  #note(name: string): string {
    return join(this.#directory, `${name}.json`)
  }

  #write(state: AuthorityState, version: number): void {
    this.#lock.check()
    replaceFile(this.#path, stateText(state, version))
  }

  async #read(): Promise<Stored | undefined> {
    const text = await readIfThere(this.#path, { most: largest.state, refusesLinks: true })
    if (text === undefined) return undefined
    try {
      const { state, version } = readStateText(text)
      return { state, version: String(version) }
    } catch (error) {
      throw new Error(
        `${this.#path}: is damaged and stays as it is: ${(error as Error).message}; restore it, or move the whole directory away to begin with a new root`,
      )
    }
  }
}
