/** Where the authority comes from: files that are plugged in (docs/certificates.md, A1 to A5), or a root of its own. Says what is in force. */
import { randomInt } from 'node:crypto'
import { rootValidity, validityWithin } from '../../../src/ca/lifetime.ts'
import { lastMoment } from '../../../src/ca/rotation.ts'
import type { AuthorityRecord } from '../../../src/ca/state.ts'
import type { Features } from '../../../src/config/features.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import { FilesWatch } from '../../runtime/files-watch.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Registry } from '../../runtime/metrics.ts'
import { openFileStorage } from './file-storage.ts'
import { type InForce, isSameInForce, ownInForce, pluggedInForce } from './in-force.ts'
import { type PluggedInFiles, pluggedInPaths, readPluggedIn } from './plugged-in.ts'
import { RootRotation } from './root-rotation.ts'
import type { Signing } from './signing.ts'
import type { CaStorage } from './storage.ts'

/** What it is made with. */
export interface SourceParts {
  readonly features: Features
  readonly signing: Signing
  readonly log: Logger
  readonly metrics: Registry
  /** Something else is in force. */
  changed(inForce: InForce): void
}

/** The source of what is in force. */
export class AuthoritySource {
  readonly rotation: RootRotation
  readonly #parts: SourceParts
  readonly #storage: CaStorage
  readonly #files: FilesWatch
  #plugged: PluggedInFiles = { by: undefined, roots: [] }
  #inForce: InForce | undefined

  /** Opens the storage, and watches the files. Rejects with an Error that names what cannot be used in the storage. */
  static async open(parts: SourceParts, trustDomain: Promise<string>): Promise<AuthoritySource> {
    const { features, log, metrics } = parts
    const storage = await openFileStorage(features.MESHD_CA_STATE_DIR)
    let source: AuthoritySource | undefined
    const rotation = await RootRotation.open({
      storage,
      settings: {
        checkInterval: features.CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL,
        jitter: features.CITADEL_ENABLE_JITTER_FOR_ROOT_CERT_ROTATOR,
        gracePercent: features.CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE,
        workloadLife: features.DEFAULT_WORKLOAD_CERT_TTL,
      },
      makeRoot: async (before) => makeRoot(parts, storage, await trustDomain, before),
      changed: () => source?.refresh(),
      now: wallClockMs,
      monotonic: monotonicMs,
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
      look: () => this.#establish(),
      refused: (reason) => log('ca').error(`${reason}; ${this.#inForce ? 'the authority in force stays' : 'no certificate is signed'}`),
      unwatchable: (directory, error) => log('ca').warn(`${directory} cannot be watched: ${error.message}; it is looked at every ten seconds`),
    })
  }

  /** What is in force; undefined until it is known. */
  get inForce(): InForce | undefined {
    return this.#inForce
  }

  /** How messages name what is in force. */
  get described(): string {
    return this.#plugged.by ? this.#parts.features.ROOT_CA_DIR : this.#storage.described
  }

  /** Where the state is kept. */
  get keptIn(): string {
    return this.#storage.described
  }

  /** Reads the files now. */
  look(): Promise<void> {
    return this.#files.look()
  }

  /** Works out anew what is in force. */
  refresh(): void {
    const former = this.rotation.formerRoots().map(({ certificate }) => certificate)
    const next = this.#plugged.by
      ? pluggedInForce(this.#plugged, former)
      : ownInForce(this.rotation.state, this.#storage.keys, [...this.#plugged.roots, ...former], wallClockMs())
    if (!next || isSameInForce(this.#inForce, next)) return
    this.#inForce = next
    this.#parts.changed(next)
  }

  async close(): Promise<void> {
    this.#files.close()
    await this.rotation.close()
  }

  /** Puts in force what the files and the storage hold now. Rejects with what is wrong with them; then what is in force stays. */
  async #establish(): Promise<void> {
    const { features, signing } = this.#parts
    const found = await readPluggedIn(features.ROOT_CA_DIR, wallClockMs())
    // The key of the same certificate may come in another file, or be another by mistake.
    const before = this.#plugged
    const isSame = found.by && before.by?.id === found.by.id && before.keyStamp === found.keyStamp
    const adopted = found.by && !isSame ? await signing.adopt(found.by) : undefined
    try {
      if (found.by) await this.rotation.usePlugged(found.roots)
      else if (before.by) throw new Error(`${features.ROOT_CA_DIR}: holds no ca-key.pem any more`)
      else await this.rotation.useOwn()
    } catch (error) {
      adopted?.drop()
      throw error
    }
    adopted?.use()
    if (adopted && found.by && found.exposed !== undefined)
      this.#parts.log('ca').warn(`the key in ${features.ROOT_CA_DIR}: ${found.exposed}: whoever reads it can sign certificates of the mesh`)
    this.#plugged = found
    this.refresh()
  }
}

/** Has a root made whose name and key `before` signs as well if it is given, for as long as that one lives (docs/certificates.md, R7). */
export async function makeRoot(
  { signing, features }: { readonly signing: Pick<Signing, 'makeRoot'>; readonly features: Features },
  { keys: place }: CaStorage,
  organization: string,
  before: AuthorityRecord | undefined,
): Promise<AuthorityRecord> {
  const now = wallClockMs()
  const { CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE: bits, CITADEL_SELF_SIGNED_CA_CERT_TTL: life } = features
  const validity = rootValidity(life, now)
  const cross = before && {
    by: { id: before.id, certificate: before.certificate, key: place },
    validity: validityWithin(life, now, { notBefore: 0, notAfter: lastMoment(before) }),
  }
  const made = await signing.makeRoot({ type: 'make-root', place, organization, bits, validity, ...(cross ? { cross } : {}) })
  // Whoever has only the root before gets to it from the signature through what leads there.
  const between = !cross || before.certificate === before.root ? '' : before.certificate + before.intermediates
  return { ...made, cross: made.cross + between, intermediates: '', root: made.certificate, origin: 'made' }
}
