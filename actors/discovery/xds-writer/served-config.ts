/** A writer's copy of the configuration objects that are served to other control planes; it is there while somebody is served. */
import type { ListPiece } from '../../../protocols/messages/pages.ts'
import type { ServedChanges, ServedObject } from '../../../protocols/messages/served-config.ts'
import { kindOfKey } from '../../../src/config/kinds.ts'
import { kindToServe, type ServedResource, writeConfigResource } from '../../../src/xds/config-objects/config-resource.ts'
import { pause } from '../../runtime/timers.ts'

/** How long one question waits for changes; the pause after changes, so that those that come together are sent together; and after an error. */
const limits = { waitMs: 3000, changeMs: 50, errorMs: 500 }

/** Dependencies of {@link ServedConfig}. */
export interface ServedConfigParts {
  /** The domain of the mesh. */
  readonly domain: string
  /** Asks the main thread. */
  readonly ask: <Answer>(question: string, ...details: unknown[]) => Promise<Answer>
  /** Whether anybody is served. */
  readonly isNeeded: () => boolean
  /** Called when the objects have changed. */
  readonly changed: () => void
}

const none: ReadonlyMap<string, ServedResource> = new Map()

/** The objects, by kind and name. */
export class ServedConfig {
  readonly #parts: ServedConfigParts
  #kinds = new Map<string, Map<string, ServedResource>>()
  #keys = new Map<string, ServedResource>()
  #isFollowing = false
  /** Whether the objects are known: before, nothing can be said of any kind. */
  isKnown = false

  constructor(parts: ServedConfigParts) {
    this.#parts = parts
  }

  /** The objects of a kind, by `<namespace>/<name>`. */
  of(kind: string): ReadonlyMap<string, ServedResource> {
    return this.#kinds.get(kind) ?? none
  }

  /** Follows the objects as long as they are needed. */
  follow(): void {
    if (this.#isFollowing) return
    this.#isFollowing = true
    void this.#follow().finally(() => {
      this.#isFollowing = false
      this.isKnown = false
      this.#clear()
    })
  }

  async #follow(): Promise<void> {
    let cursor = ''
    while (this.#parts.isNeeded()) {
      try {
        const changes = await this.#parts.ask<ServedChanges>('servedChanges', cursor, limits.waitMs)
        if (changes.isGap) await this.#readAll()
        for (const object of changes.objects) this.#take(object)
        cursor = changes.cursor
        if (changes.isGap || changes.objects.length > 0) {
          this.#parts.changed()
          await pause(limits.changeMs)
        }
      } catch {
        // What was served stays until the push queue has the whole state again.
        await pause(limits.errorMs)
      }
    }
  }

  async #readAll(): Promise<void> {
    const objects: ServedObject[] = []
    let piece = await this.#parts.ask<ListPiece<ServedObject>>('servedObjects')
    objects.push(...piece.rows)
    while (piece.next !== undefined) {
      piece = await this.#parts.ask<ListPiece<ServedObject>>('servedObjects', piece.next)
      objects.push(...piece.rows)
    }
    this.#clear()
    for (const object of objects) this.#take(object)
    this.isKnown = true
  }

  #take({ key, object }: ServedObject): void {
    const kind = kindOfKey(key)
    const before = this.#keys.get(key)
    if (before) this.#kinds.get(kind)?.delete(before.name)
    this.#keys.delete(key)
    const served = object && kindToServe(object, this.#parts.domain)
    if (!object || !served) return
    const resource = writeConfigResource(object, served)
    this.#keys.set(key, resource)
    const ofKind = this.#kinds.get(kind)
    if (ofKind) ofKind.set(resource.name, resource)
    else this.#kinds.set(kind, new Map([[resource.name, resource]]))
  }

  #clear(): void {
    this.#kinds = new Map()
    this.#keys = new Map()
  }
}
