/** Tells the analyzer what a source has read and what is in force does not say (`SeenEvent`; docs/analysis.md, Y4). There is one of a source. */
import type { FaultFound, SeenEvent } from '../../../protocols/messages/analysis.ts'
import type { SettingFaults } from '../../../src/config/mesh-texts.ts'
import type { DocumentFault, ParsedFile } from '../../../src/config/parse.ts'
import { placeOf } from '../../../src/config/places.ts'
import type { Peer, Replay } from '../../runtime/link.ts'
import { seenObject } from '../events/seen-events.ts'

/** The most faults, and warnings, of what was read together that are told. */
const mostTold = 50

/** What was told last, and the analyzer where it is linked. */
export class SeenReports {
  readonly #events = new Map<string, SeenEvent>()
  #analyzer: Peer<SeenEvent> | undefined
  #replay: Replay | undefined
  readonly #source: string
  #isComplete = false

  /** `source`: its name. */
  constructor(source: string) {
    this.#source = source
  }

  linked(peer: Peer): void {
    if (peer.kind !== 'analyzer') return
    this.#analyzer = peer as Peer<SeenEvent>
    this.#replay = peer.replay()
    for (const [key, event] of this.#events) this.#analyzer.tell(event, key)
    this.#finish()
  }

  unlinked(peer: Peer): void {
    if (peer.kind !== 'analyzer') return
    this.#analyzer = undefined
    this.#replay = undefined
  }

  /** Something was read, or is gone. */
  tell(event: SeenEvent): void {
    const { key, there } = seenObject(event)
    if (there) this.#events.set(key, event)
    else if (!this.#events.delete(key)) return
    this.#analyzer?.tell(event, key)
  }

  /** The documents of a file, or an object of a cluster, were read; undefined: they are gone. */
  read(name: string, parsed: Pick<ParsedFile, 'faults' | 'warnings'> | undefined): void {
    const found = (code: FaultFound['code'], faults: readonly DocumentFault[] = []) => faults.slice(0, mostTold).map((fault) => foundOf(code, fault))
    this.tell({
      type: 'FaultsSeen',
      name: `${this.#source} ${name}`,
      faults: [...found('IST0106', parsed?.faults), ...found('IST0133', parsed?.warnings)],
    })
  }

  /** The text of a setting was read, such as the mesh configuration. */
  setting(what: string, place: string, { faults, warnings }: SettingFaults): void {
    const found = (code: FaultFound['code'], reasons: readonly string[]) =>
      reasons.slice(0, mostTold).map((message) => ({ code, object: '', path: '', message, place: `${what} ${place}` }))
    this.tell({ type: 'FaultsSeen', name: `${this.#source} ${what}`, faults: [...found('IST0106', faults), ...found('IST0133', warnings)] })
  }

  /** Everything was told, so that what was told before and is not among it is gone. */
  complete(): void {
    this.#isComplete = true
    this.#finish()
  }

  #finish(): void {
    if (!this.#isComplete) return
    this.#replay?.finish()
    this.#replay = undefined
  }
}

const foundOf = (code: FaultFound['code'], { file, document, key = '', path, reason }: DocumentFault): FaultFound => ({
  ...{ code, object: key, path, message: reason, place: placeOf(file, document) },
})
