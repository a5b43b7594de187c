/**
 * Stores the state of the certificate authority in Secrets, which replicas share (docs/certificates.md, K8 to K13): `mesh-ca-state` has
 * the state with the keys that it names, so that both change at once; `mesh-ca-secret` has the root that signs, for users and other tools.
 */
import type { KeptSecret } from '../../../protocols/messages/secret-calls.ts'
import { keptKeys } from '../../../src/ca/rotation.ts'
import { importedState, keyName, rootIn, rootTexts, signingRecord, stateName } from '../../../src/ca/secret-forms.ts'
import { type AuthorityState, emptyState } from '../../../src/ca/state.ts'
import { readStateText, stateText } from '../../../src/ca/stored-state.ts'
import { noteSecret, secretNames, secretTypes } from '../../../src/names/secret-names.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { every, pause, type Timer } from '../../runtime/timers.ts'
import type { HeldKeys } from './held-keys.ts'
import { newSecret, type SecretAccess, textsOf, withTexts } from './secret-access.ts'
import { SecretNotes } from './secret-notes.ts'
import { type CaStorage, type KeyPlace, StaleVersionError, type Stored } from './storage.ts'

/** Dependencies and settings of {@link openSecretStorage}. */
export interface SecretStorageParts {
  readonly access: SecretAccess
  /** Has the keys of the state, and the key of a root that was made last. */
  readonly held: HeldKeys
  readonly log: ScopedLogger
  /** Returns the wall clock, in Unix milliseconds. */
  readonly now: () => number
  /** Times that tests change. */
  readonly times?: Partial<StorageTimes>
  /** Whether the state has to be there already: then nothing is made or written when the storage is opened. */
  readonly isGuest?: boolean
}

/**
 * The interval at which it is looked whether another replica has written, and the delay before a change of the ledger is stored, which is
 * 0.5 ms longer for each holder; in milliseconds. So there are at most six writes a minute, and about 100 KB a second of 100,000 holders.
 */
interface StorageTimes {
  readonly followMs: number
  readonly ledgerMs: number
}

const usualTimes: StorageTimes = { followMs: 5000, ledgerMs: 10_000 }
/** The additional delay of the ledger for each holder, and what calls may take beside the times, in milliseconds. */
const [eachHolderMs, callsMs] = [0.5, 2000]
/** How often a write is tried again when other fields of the Secret were changed meanwhile, and the pause before that in milliseconds. */
const conflicts = { most: 8, pauseMs: 20 }
/**
 * After so many intervals without a look, as of a process that was stopped, the state may have gone on. If the Secret is missing then, it is written
 * again at the look after so many more, and before that by another replica, which knows more.
 */
const stale = { intervals: 3, looks: 2 }
/** Opens the storage, or makes it. Rejects with an Error that names the Secret, and the reason why it cannot be used. */
export async function openSecretStorage(parts: SecretStorageParts): Promise<CaStorage> {
  const storage = new SecretStorage(parts)
  await storage.open()
  return storage
}

/** The state as it is stored, with the Secret that has it. */
interface Found {
  readonly secret: KeptSecret
  readonly state: AuthorityState
  readonly version: number
  readonly keys: ReadonlyMap<string, string>
}

class SecretStorage implements CaStorage {
  readonly described: string
  readonly keys: KeyPlace = { kind: 'tasks' }
  readonly ledgerDelay: CaStorage['ledgerDelay']
  readonly settleMs: number
  readonly noteAt = (name: string): string => this.#parts.access.described(noteSecret(name))
  readonly #times: StorageTimes
  readonly #parts: SecretStorageParts
  readonly #notes: SecretNotes
  #last: Found | undefined
  #timer: Timer | undefined
  #queue: Promise<unknown> = Promise.resolve()
  /** What was last told about a Secret that cannot be read, and about `mesh-ca-secret`. */
  readonly #told = new Map<'state' | 'root', string>()
  /** The version at the last look. */
  #seen = 0
  /** When the Secret was looked for last, in monotonic milliseconds, and how many looks more it may be missing before it is written again. */
  #lookedAt = monotonicMs()
  #looksToWait = 0

  constructor(parts: SecretStorageParts) {
    this.#parts = parts
    this.#notes = new SecretNotes(parts.access)
    this.#times = { ...usualTimes, ...parts.times }
    this.ledgerDelay = { least: this.#times.ledgerMs, each: eachHolderMs }
    this.settleMs = this.#times.followMs + this.#times.ledgerMs + callsMs
    this.described = parts.access.described(secretNames.state)
  }

  /** Reads the state. If there is none, the root of a Secret that users and other tools know becomes the first one, or there is no root yet. */
  async open(): Promise<void> {
    const found = await this.#find()
    if (this.#parts.isGuest) {
      if (!found)
        throw new Error(`${this.described}: is not there: no authority keeps its state in this namespace; "pilot-discovery discovery" makes it`)
      return
    }
    if (!found) await this.#begin()
    await this.#showRoot()
  }

  read(): Promise<Stored> {
    return this.#inTurn(async () => stored(await this.#found()))
  }

  write(state: AuthorityState, version: string): Promise<string> {
    return this.#inTurn(async () => {
      for (let turn = 0; turn < conflicts.most; turn++) {
        const before = await this.#found()
        if (String(before.version) !== version)
          throw new StaleVersionError(`${this.described}: has version ${before.version} instead of ${version}: another replica wrote it`)
        if (await this.#put(before.secret, state, before.version + 1, before.keys)) {
          await this.#showRoot()
          return String(before.version + 1)
        }
        await pause(conflicts.pauseMs)
      }
      throw new Error(`${this.described}: is changed by others all the time`)
    })
  }

  readNote(name: string): Promise<string | undefined> {
    return this.#notes.read(name)
  }

  writeNote(name: string, pieces: Iterable<string>, others?: (text: string) => void): Promise<void> {
    return this.#notes.write(name, pieces, others)
  }

  /** Leaves the keys as they are when another replica has written the state: its keys are not known here yet. */
  keepKeys(ids: readonly string[]): Promise<void> {
    return this.#inTurn(async () => {
      const known = this.#last
      const { secret, state, version, keys } = await this.#found()
      if (version !== known?.version || [...keys.keys()].every((id) => ids.includes(id))) return
      const kept = new Map([...keys].filter(([id]) => ids.includes(id)))
      await this.#put(secret, state, version, kept)
    })
  }

  get fault(): string | undefined {
    return this.#told.get('state')
  }

  follow(changed: () => void): void {
    let isLooking = false
    this.#timer = every(this.#times.followMs, () => {
      if (isLooking) return
      isLooking = true
      void this.#inTurn(() => this.#look(changed)).finally(() => {
        isLooking = false
      })
    }).unref()
  }

  async close(): Promise<void> {
    this.#timer?.cancel()
    await this.#queue
  }

  async #look(changed: () => void): Promise<void> {
    const { log } = this.#parts
    try {
      const found = await this.#found()
      if (this.#told.delete('state')) log.info(`${this.described} can be read again`)
      if (found.version !== this.#seen) {
        this.#seen = found.version
        changed()
      }
      await this.#showRoot()
    } catch (error) {
      this.#tell('state', `${(error as Error).message}; the authority in force stays`)
    }
  }

  /** The state. If the Secret was removed while the authority runs, it is written again with what it had. */
  async #found(): Promise<Found> {
    const known = this.#last
    const found = await this.#find()
    if (this.#mayBeStale(found !== undefined))
      throw new Error(`${this.described}: was removed while this replica did not look: another one may know more, and writes it again`)
    if (found) return found
    if (!known) throw new Error(`${this.described}: is missing`)
    this.#parts.log.warn(`${this.described} was removed while the authority uses it, and is written again`)
    if (!(await this.#put(newSecret(secretNames.state, secretTypes.state), known.state, known.version, known.keys)))
      throw new Error(`${this.described}: was written by another replica at the same time`)
    return this.#last as Found
  }

  /** Counts a look. Returns whether the Secret is missing, and this replica has looked too seldom before to write it again now. */
  #mayBeStale(isThere: boolean): boolean {
    const isLate = monotonicMs() - this.#lookedAt > stale.intervals * this.#times.followMs
    this.#lookedAt = monotonicMs()
    this.#looksToWait = isThere ? 0 : isLate ? stale.looks : Math.max(0, this.#looksToWait - 1)
    return this.#looksToWait > 0
  }

  /** Reads the state; undefined when there is no such Secret. Rejects when that cannot be told, or when it is damaged. */
  async #find(): Promise<Found | undefined> {
    const secret = await this.#parts.access.get(secretNames.state)
    if (!secret) return undefined
    if (this.#last?.secret.resourceVersion === secret.resourceVersion) return this.#last
    return this.#use(secret)
  }

  #use(secret: KeptSecret): Found {
    const texts = textsOf(secret)
    try {
      const text = texts[stateName]
      if (text === undefined) throw new Error(`${stateName}: is missing`)
      const { state, version } = readText(text)
      const keys = new Map(Object.entries(texts).flatMap(([name, value]) => (/^[0-9a-f]{64}\.pem$/.test(name) ? [[name.slice(0, 64), value]] : [])))
      const missing = state.authorities.find(({ id }) => !keys.has(id))
      if (missing) throw new Error(`${keyName(missing.id)}: is missing`)
      this.#last = { secret, state, version, keys }
      this.#parts.held.set('own', keys)
      return this.#last
    } catch (error) {
      const advice = this.#last
        ? 'restore it, or remove it, and it is written again as it was'
        : `restore it, or remove it: a replica that runs writes it again as it was; if none does, it begins with the root of ${secretNames.root}, or with a new one without that`
      throw new Error(`${this.described}: is damaged and stays as it is: ${(error as Error).message}; ${advice}`)
    }
  }

  /** Writes the state with its keys. Returns whether nobody else was faster. */
  async #put(secret: KeptSecret, state: AuthorityState, version: number, keys: ReadonlyMap<string, string>): Promise<boolean> {
    const all = new Map(keys)
    for (const id of keptKeys(state)) {
      const key = this.#parts.held.get(id)
      if (!all.has(id) && key !== undefined) all.set(id, key)
    }
    const missing = state.authorities.find(({ id }) => !all.has(id))
    if (missing) throw new Error(`${this.described}: the key of ${missing.id} is not known, and a state without it is not stored`)
    const texts = { [stateName]: stateText(state, version), ...Object.fromEntries([...all].map(([id, key]) => [keyName(id), key])) }
    const written = await this.#parts.access.write(withTexts(secret, texts))
    if (!written) return false
    this.#last = { secret: written, state, version, keys: all }
    this.#parts.held.set('own', all)
    return true
  }

  async #begin(): Promise<void> {
    const { access, log, now } = this.#parts
    const fresh = newSecret(secretNames.state, secretTypes.state)
    let made = { state: emptyState, keys: new Map<string, string>() }
    for (const name of [secretNames.root, secretNames.formerRoot]) {
      const given = await access.get(name)
      if (!given) continue
      if (name === secretNames.root && (await this.#isWrittenAgain())) return
      try {
        const { state, id, key } = importedState(textsOf(given), now())
        made = { state, keys: new Map([[id, key]]) }
      } catch (error) {
        throw new Error(`${access.described(name)}: ${(error as Error).message}; restore it, or remove it to begin with a new root`)
      }
      log.info(`the root of ${access.described(name)} is taken over as the first one`)
      break
    }
    // A replica that was faster has made the state, which counts.
    if (!(await this.#put(fresh, made.state, 1, made.keys)) && !(await this.#find())) throw new Error(`${this.described}: was removed as it was made`)
  }

  /** Gives replicas that run the time to write the state again of which the root was shown. Returns whether one has. */
  async #isWrittenAgain(): Promise<boolean> {
    await pause(stale.looks * this.#times.followMs)
    return (await this.#find()) !== undefined
  }

  /**
   * Writes the root that signs where users and other tools look for it, unless it is there, or the Secret there has content that is not of this
   * state. A failure is told, and tried again at the next look.
   */
  async #showRoot(): Promise<void> {
    const { access } = this.#parts
    const { state, keys } = this.#last as Found
    const record = signingRecord(state)
    const key = record && keys.get(record.id)
    if (!record || key === undefined) return
    const described = access.described(secretNames.root)
    try {
      const found = await access.get(secretNames.root)
      const wanted = withTexts(found ?? newSecret(secretNames.root, secretTypes.root), rootTexts(record, key))
      const shown = found && rootIn(textsOf(found))
      if (found && JSON.stringify(sorted(found)) === JSON.stringify(sorted(wanted))) return void this.#told.delete('root')
      if (found && !(shown !== undefined && [...keptKeys(state), ...keys.keys()].includes(shown)))
        return this.#tell('root', `${described} has another content than the root that signs and stays as it is: ${this.described} counts`)
      await access.write(wanted)
      this.#told.delete('root')
    } catch (error) {
      this.#tell('root', `${described} is not written, and tried again: ${(error as Error).message}`)
    }
  }

  #tell(what: 'state' | 'root', line: string): void {
    if (this.#told.get(what) === line) return
    this.#told.set(what, line)
    this.#parts.log.error(line)
  }

  /** Runs steps one after the other. */
  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(step)
    this.#queue = done.catch(() => undefined)
    return done
  }
}

/** Reads the state. Throws an Error that names the value of the Secret. */
function readText(text: string): ReturnType<typeof readStateText> {
  try {
    return readStateText(text)
  } catch (error) {
    throw new Error(`${stateName}: ${(error as Error).message}`)
  }
}

const stored = ({ state, version }: Found): Stored => ({ state, version: String(version) })

const sorted = ({ data }: KeptSecret): readonly (readonly [string, string])[] => Object.entries(data).sort(([one], [other]) => (one < other ? -1 : 1))
