/**
 * The roots that workloads verify their peers with, as the one resource of {@link trustBundleType}, which agents subscribe to for
 * themselves (docs/certificates.md, R17). All streams of a writer get the same.
 */
import { contentVersion, sumText } from '../slab/sums.ts'
import { elementHead, textField } from '../slab/wire.ts'
import { entryOf } from '../stream/entry.ts'
import { Group, type GroupParts, noneHidden } from '../stream/group.ts'
import { TypeState } from '../stream/type-state.ts'
import { trustBundleType } from '../type-urls.ts'

/** The name of the resource. */
const name = 'roots'

/** The roots of one writer. */
export class AnnouncedRoots {
  readonly #parts: GroupParts
  #roots = ''
  #state = new TypeState(trustBundleType, [])

  /** `parts` are those of the writer's catalog, so that serial numbers are unique. */
  constructor(parts: GroupParts) {
    this.#parts = parts
  }

  /** What streams that subscribe are sent: nothing before the first announcement. */
  get state(): TypeState {
    return this.#state
  }

  /** Replaces the roots (PEM). Returns whether they are others than before. */
  announce(roots: string): boolean {
    if (roots === this.#roots) return false
    this.#roots = roots
    const value = textField(1, roots)
    const bytes = Buffer.concat([elementHead(trustBundleType, value.length), value])
    const version = contentVersion(bytes)
    // Plans are cached by the id of a group, so other content has another group.
    const group = new Group(`${trustBundleType}|${version}`, this.#parts)
    const sum = this.#parts.sums.of(`${name}|${version}`)
    group.apply({ group: group.id, base: 0, sequence: 1, version: sumText(sum), changed: [{ name, version, slices: [] }], removed: [] }, (data) =>
      entryOf(data, [bytes]),
    )
    this.#state = new TypeState(trustBundleType, [group.visible(trustBundleType, noneHidden)])
    return true
  }
}
