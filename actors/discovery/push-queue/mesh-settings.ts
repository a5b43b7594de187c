/**
 * Tells what follows from the mesh configuration in force, whichever source it is of: the names of the mesh (`MeshNamesChanged`) to the
 * actors that verify identities, all of it to the webhooks (`MeshSettingsChanged`), and the sources that it names to the supervisor. Nothing is told before every source that may give a mesh
 * configuration has said whether it does: the names of the default must not be taken for those of the mesh.
 */
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import type { MeshSettingsEvent } from '../../../protocols/messages/injection.ts'
import { configSourcesNote } from '../../../protocols/messages/notes.ts'
import type { ConfigSource } from '../../../src/config/config-sources.ts'
import { type MeshConfig, namesOfMesh } from '../../../src/config/mesh-config.ts'
import { count } from '../../../src/model/counts.ts'
import type { Peer } from '../../runtime/link.ts'
import { orchestratorSource } from '../given/sources.ts'

/** The kinds of actors that are told the names; so is the watcher of the cluster, which Ingresses are for by the mesh configuration. */
const readerKinds: ReadonlySet<string> = new Set(['webhooks', 'xds-writer', 'authenticator', 'certificate-authority', 'mesh-certificates'])

/** A mesh configuration with the sources that it names, or otherwise those of the command. */
export type SettledMesh = MeshConfig & { readonly configSources: ConfigSource[] }

/** What {@link MeshSettings} are made of. */
export interface MeshSettingsParts {
  /** The names of the actors that may give a mesh configuration. */
  readonly sources: readonly string[]
  readonly inForce: () => SettledMesh
  readonly note: (name: string, value: unknown) => void
  /** Called once for each thing that has no effect in this service, while it is in force. */
  readonly warn: (line: string) => void
  /** Whether there is a cluster. */
  readonly hasCluster: boolean
}

/** The mesh configuration in force, and who is told of it. */
export class MeshSettings {
  readonly #parts: MeshSettingsParts
  /** The sources that have not said whether they give a mesh configuration. */
  readonly #silent: Set<string>
  readonly #readers = new Map<string, Peer<MeshNamesEvent>>()
  /** The webhooks, which are told the whole configuration too. */
  #webhooks: Peer<MeshSettingsEvent> | undefined
  /** The names and the configuration last told, as text. */
  #told = ''
  #toldMesh = ''
  #hasIdleCertificates = false

  constructor(parts: MeshSettingsParts) {
    this.#parts = parts
    this.#silent = new Set(parts.sources)
  }

  linked(peer: Peer): void {
    if (!readerKinds.has(peer.kind) && peer.name !== orchestratorSource) return
    const reader = peer as Peer<MeshNamesEvent>
    this.#readers.set(peer.name, reader)
    if (peer.kind === 'webhooks') this.#webhooks = peer as Peer<MeshSettingsEvent>
    if (this.#silent.size > 0) return
    reader.tell(namesOfMesh(this.#parts.inForce()), 'names')
    this.#webhooks?.tell({ type: 'MeshSettingsChanged', mesh: this.#parts.inForce() }, 'mesh')
  }

  unlinked({ name, kind }: Peer): void {
    this.#readers.delete(name)
    if (kind === 'webhooks') this.#webhooks = undefined
  }

  /** A source has said what its mesh configuration is, or has told all that it has. */
  heard(source: string): void {
    if (this.#silent.delete(source) && this.#silent.size === 0) this.changed()
  }

  /** The mesh configuration in force may differ. */
  changed(): void {
    if (this.#silent.size > 0) return
    const mesh = this.#parts.inForce()
    this.#parts.note(configSourcesNote, mesh.configSources)
    this.#sayIdle(mesh)
    const all = JSON.stringify(mesh)
    if (all !== this.#toldMesh) this.#webhooks?.tell({ type: 'MeshSettingsChanged', mesh }, 'mesh')
    this.#toldMesh = all
    const names = namesOfMesh(mesh)
    const text = JSON.stringify(names)
    if (text === this.#told) return
    this.#told = text
    for (const reader of this.#readers.values()) reader.tell(names, 'names')
  }

  /** Secrets can be kept in a cluster only (docs/certificates.md, M1). */
  #sayIdle({ certificates = [] }: SettledMesh): void {
    const isIdle = certificates.length > 0 && !this.#parts.hasCluster
    if (isIdle && !this.#hasIdleCertificates)
      this.#parts.warn(
        `mesh configuration: field certificates has no effect: there is no cluster in whose Secrets ${count(certificates.length, 'certificate')} could be kept (--orchconfig)`,
      )
    this.#hasIdleCertificates = isIdle
  }
}
