/**
 * Tells what follows from the mesh configuration in force, whichever source it is of: the names of the mesh (`MeshNamesChanged`) to the
 * actors that verify identities, and the sources that it names to the supervisor. Nothing is told before every source that may give a mesh
 * configuration has said whether it does: the names of the default must not be taken for those of the mesh.
 */
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import { configSourcesNote } from '../../../protocols/messages/notes.ts'
import type { ConfigSource } from '../../../src/config/config-sources.ts'
import { type MeshConfig, namesOfMesh } from '../../../src/config/mesh-config.ts'
import type { Peer } from '../../runtime/link.ts'
import { orchestratorSource } from '../given-sources.ts'

/** The kinds of actors that are told the names; so is the watcher of the cluster, which Ingresses are for by the mesh configuration. */
const readerKinds: ReadonlySet<string> = new Set(['webhooks', 'xds-writer', 'authenticator', 'certificate-authority', 'mesh-certificates'])

/** A mesh configuration with the sources that it names, or otherwise those of the command. */
export type SettledMesh = MeshConfig & { readonly configSources: ConfigSource[] }

/** The mesh configuration in force, and who is told of it. */
export class MeshSettings {
  readonly #inForce: () => SettledMesh
  readonly #note: (name: string, value: unknown) => void
  /** The sources that have not said whether they give a mesh configuration. */
  readonly #silent: Set<string>
  readonly #readers = new Map<string, Peer<MeshNamesEvent>>()
  /** The names last told, as text. */
  #told = ''

  /** `sources`: the names of the actors that may give a mesh configuration. */
  constructor(sources: readonly string[], inForce: () => SettledMesh, note: (name: string, value: unknown) => void) {
    this.#silent = new Set(sources)
    this.#inForce = inForce
    this.#note = note
  }

  linked(peer: Peer): void {
    if (!readerKinds.has(peer.kind) && peer.name !== orchestratorSource) return
    const reader = peer as Peer<MeshNamesEvent>
    this.#readers.set(peer.name, reader)
    if (this.#silent.size === 0) reader.tell(namesOfMesh(this.#inForce()), 'names')
  }

  unlinked({ name }: Peer): void {
    this.#readers.delete(name)
  }

  /** A source has said what its mesh configuration is, or has told all that it has. */
  heard(source: string): void {
    if (this.#silent.delete(source) && this.#silent.size === 0) this.changed()
  }

  /** The mesh configuration in force may differ. */
  changed(): void {
    if (this.#silent.size > 0) return
    const mesh = this.#inForce()
    this.#note(configSourcesNote, mesh.configSources)
    const names = namesOfMesh(mesh)
    const text = JSON.stringify(names)
    if (text === this.#told) return
    this.#told = text
    for (const reader of this.#readers.values()) reader.tell(names, 'names')
  }
}
