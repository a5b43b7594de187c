/** Decides which authority is in force: one that is plugged in (docs/certificates.md, A1 to A6), or the process's own root. */
import { randomInt } from 'node:crypto'
import type { StreamsElsewhere } from '../../../protocols/messages/replicas.ts'
import { checkTrust } from '../../../src/ca/distrust.ts'
import { rootValidity, validityWithin } from '../../../src/ca/lifetime.ts'
import { chainExpiry } from '../../../src/ca/rotation.ts'
import type { AuthorityRecord } from '../../../src/ca/state.ts'
import type { Features } from '../../../src/config/features.ts'
import { secretNames } from '../../../src/names/secret-names.ts'
import { readClocks, wallClockMs } from '../../runtime/clock.ts'
import { FilesWatch } from '../../runtime/files-watch.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { MetricRegistry } from '../../runtime/metrics.ts'
import { logDropped } from './distrust.ts'
import { openFileStorage } from './file-storage.ts'
import { type InForce, isSameInForce, ownInForce, pluggedInForce } from './in-force.ts'
import { invalidAt, type PluggedInFiles, pluggedInPaths, pluggedInSecret, readPluggedIn } from './plugged-in.ts'
import { RootRotation } from './root-rotation.ts'
import { type SecretAccess, textsOf } from './secret-access.ts'
import { openSecretStorage } from './secret-storage.ts'
import type { SigningReference } from './sign-task.ts'
import type { Signing } from './signing.ts'
import type { CaStorage } from './storage.ts'

/** Dependencies and settings of {@link AuthoritySource}. */
export interface SourceParts {
  readonly features: Features
  readonly signing: Signing
  readonly log: Logger
  readonly metrics: MetricRegistry
  /** The Secrets that have the state; undefined: it is in `MESHD_CA_STATE_DIR`. */
  readonly secrets: SecretAccess | undefined
  /** The Secrets among which an authority may be plugged in, beside those; undefined: none. */
  readonly plugged?: SecretAccess | undefined
  /** Asks the other replicas for their streams. */
  readonly elsewhere: () => Promise<StreamsElsewhere>
  /** Called when the authority in force has changed. */
  changed(inForce: InForce): void
}

/** Provides the authority in force. */
export class AuthoritySource {
  readonly rotation: RootRotation
  readonly #parts: SourceParts
  readonly #storage: CaStorage
  readonly #files: FilesWatch
  #plugged: PluggedInFiles = { by: undefined, roots: [] }
  /** Whether the directory had files at the last read. */
  #hadFiles = false
  #inForce: InForce | undefined
  #isClosed = false

  /** Opens the storage and watches the files. Rejects with an Error that names what is unusable in the storage. */
  static async open(parts: SourceParts, trustDomain: Promise<string>): Promise<AuthoritySource> {
    const { elsewhere, features, log, metrics, secrets, signing } = parts
    const storage = secrets
      ? await openSecretStorage({ access: secrets, held: signing.held, log: log('ca'), now: wallClockMs })
      : await openFileStorage(features.MESHD_CA_STATE_DIR)
    let source: AuthoritySource | undefined
    const rotation = await RootRotation.open({
      storage,
      settings: {
        checkInterval: features.CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL,
        jitter: features.CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR,
        gracePercent: features.CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE,
        workloadLife: features.DEFAULT_WORKLOAD_CERT_TTL,
      },
      makeRoot: async (before) => makeRoot(parts, storage, await trustDomain, { before, now: source?.rotation.clock.now() ?? readClocks().wall }),
      changed: () => source?.refresh(),
      elsewhere: secrets && elsewhere,
      clocks: readClocks,
      random: () => randomInt(2 ** 32) / 2 ** 32,
      log,
      metrics,
    }).catch(async (error) => {
      await storage.close()
      throw error
    })
    source = new AuthoritySource(parts, storage, rotation)
    return source
  }

  private constructor(parts: SourceParts, storage: CaStorage, rotation: RootRotation) {
    this.#parts = parts
    this.#storage = storage
    this.rotation = rotation
    const { log, features } = parts
    this.#files = new FilesWatch(pluggedInPaths(features.ROOT_CA_DIR), {
      read: () => this.#establish(),
      refused: (reason) => log('ca').error(this.#unusable(reason)),
      unwatchable: (directory, error) => log('ca').warn(`${directory} cannot be watched: ${error.message}; it is checked every ten seconds`),
    })
  }

  /** The authority in force; undefined until it is known. */
  get inForce(): InForce | undefined {
    return this.#inForce
  }

  /** The name of the authority in force in messages. */
  get described(): string {
    return this.#plugged.by ? this.#plugged.from : this.#storage.described
  }

  /** Where the state is stored. */
  get keptIn(): string {
    return this.#storage.described
  }

  /**
   * Why the state as it is stored ({@link CaStorage.fault}), or what is plugged in, cannot be used, and that an authority that was plugged in is not
   * there any more.
   */
  get faults(): readonly string[] {
    const { fault } = this.#files
    return [this.#storage.fault, fault && this.#unusable(fault), this.rotation.replaced].filter((each) => each !== undefined)
  }

  #unusable(reason: string): string {
    return `${reason}; ${this.#inForce ? 'the authority in force stays' : 'no certificate is signed'}`
  }

  /** Reads the files now. */
  read(): Promise<void> {
    return this.#files.read()
  }

  /** Determines the authority in force again. */
  refresh(): void {
    if (this.#isClosed) return
    const { state, clock } = this.rotation
    const former = this.rotation.formerRoots().map(({ certificate }) => certificate)
    const next = this.#plugged.by
      ? pluggedInForce(this.#plugged, former, state.distrusted)
      : ownInForce(state, this.#storage.keys, [...this.#plugged.roots, ...former], clock.now())
    if (!next || isSameInForce(this.#inForce, next)) return
    logDropped(this.rotation, this.#inForce?.trusted ?? [], next.trusted, this.#parts.log)
    this.#inForce = next
    this.#parts.changed(next)
  }

  /** Ends the watch of the files and closes the storage. No other authority comes into force any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#files.close()
    await this.rotation.close()
  }

  /**
   * Puts the authority of the files or of the storage in force. Rejects with the reason when it is unusable; then the previous one stays
   * in force.
   */
  async #establish(): Promise<void> {
    const { signing } = this.#parts
    const { found, key } = await this.#read()
    const before = this.#plugged
    const fault = found.by && this.#inForce && invalidAt(found, this.rotation.clock.now())
    if (fault !== undefined) throw new Error(`${found.from}: ${fault}`)
    if (found.by) checkTrust(found.chain.root, this.rotation.state.distrusted)
    // With the same certificate, the key must be read again if its file changed: it may be the same key or a wrong one.
    const isSame = found.by && before.by?.id === found.by.id && before.keyStamp === found.keyStamp
    const adopt = (by: SigningReference) =>
      signing.adopt(by, key).catch((error: Error) => {
        throw key === '' ? error : new Error(`${found.from}: ${error.message}`)
      })
    const adopted = found.by && !isSame ? await adopt(found.by) : undefined
    try {
      if (found.by) await this.rotation.usePlugged(found.roots)
      else if (before.by) throw new Error(`${before.from}: no longer contains ca-key.pem`)
      else await this.rotation.useOwn()
    } catch (error) {
      adopted?.drop()
      throw error
    }
    if (found.by && key !== '') signing.held.set('plugged-in', new Map([[found.by.id, key]]))
    adopted?.use()
    if (adopted && found.by && found.exposed !== undefined)
      this.#parts.log('ca').warn(`the key in ${found.from}: ${found.exposed}: whoever reads it can sign certificates of the mesh`)
    this.#plugged = found
    this.refresh()
  }

  /** Reads what is plugged in: the files, or without a key there the Secret, with its key. */
  async #read(): Promise<{ readonly found: PluggedInFiles; readonly key: string }> {
    const { features, secrets = this.#parts.plugged } = this.#parts
    const { from: before } = this.#plugged
    const files = await readPluggedIn(features.ROOT_CA_DIR, this.#hadFiles)
    if (!files.by && before === features.ROOT_CA_DIR) throw new Error(`${before}: no longer contains ca-key.pem`)
    this.#hadFiles = files.roots.length > 0
    if (files.by || !secrets) return { found: files, key: '' }
    const secret = await secrets.get(secretNames.pluggedIn)
    const from = secrets.described(secretNames.pluggedIn)
    if (!secret && before === from) throw new Error(`${from}: is not there any more`)
    const { found, key } = secret ? pluggedInSecret(textsOf(secret), from) : { found: files, key: '' }
    return { found: { ...found, roots: [...new Set([...found.roots, ...files.roots])] }, key }
  }
}

/**
 * Has a signer thread create a root at the Unix time `now` in milliseconds. If `before` is given, it cross-signs the new root's name and key, for at most its own lifetime
 * (docs/certificates.md, R7).
 */
export async function makeRoot(
  { signing, features }: { readonly signing: Pick<Signing, 'makeRoot'>; readonly features: Features },
  { keys: place }: CaStorage,
  organization: string,
  { before, now }: { readonly before: AuthorityRecord | undefined; readonly now: number },
): Promise<AuthorityRecord> {
  const { CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: bits, CITADEL_SELF_SIGNED_CA_CERT_TTL: life } = features
  const validity = rootValidity(life, now)
  const cross = before && {
    by: { id: before.id, certificate: before.certificate, key: place },
    validity: validityWithin(life, { wall: now, believed: now }, { notBefore: 0, notAfter: chainExpiry(before) }),
  }
  const made = await signing.makeRoot({ type: 'make-root', place, organization, bits, validity, ...(cross ? { cross } : {}) })
  // A client that trusts only the previous root reaches it from the cross-signature through the previous intermediates.
  const between = !cross || before.certificate === before.root ? '' : before.certificate + before.intermediates
  return { ...made, cross: made.cross + between, intermediates: '', root: made.certificate, origin: 'made' }
}
