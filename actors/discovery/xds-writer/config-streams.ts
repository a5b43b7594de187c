/**
 * Discovery streams of other control planes, which are served configuration objects (the generator `api`; docs/xds-protocol.md,
 * "Configuration objects").
 */
import { mayRead } from '../../../src/identity/access.ts'
import { count } from '../../../src/model/counts.ts'
import { status } from '../../../src/model/status-codes.ts'
import { isAliasGroup, type MeshNames } from '../../../src/names/mesh-names.ts'
import { configGenerator, elementOf, resourceTypes, type ServedResource, servedKindOf } from '../../../src/xds/config-objects/config-resource.ts'
import { messageFrame } from '../../../src/xds/stream/frames.ts'
import { encodeResponse } from '../../../src/xds/stream/response.ts'
import type { CallStatus } from '../../rpc/call.ts'
import type { Connection } from './connection.ts'
import type { SecuredPort } from './secured-port.ts'
import { ServedConfig } from './served-config.ts'
import { type StatusAccess, unconditional } from './status-access.ts'

/** Maximum number of these streams on a writer, and of types on each. */
const most = { streams: 16, types: 64 }
/** The size of a delta response from which the rest follows in another one, in bytes. */
const responseBytes = 524_288

/** Dependencies of {@link ConfigStreams}. */
export interface ConfigStreamParts {
  readonly access: StatusAccess
  readonly names: MeshNames
  /** The names of the mesh by which identities are judged; undefined until they are known. */
  readonly meshNames: () => SecuredPort['names']
  /** Asks the main thread. */
  readonly ask: <Answer>(question: string, ...details: unknown[]) => Promise<Answer>
  readonly nonce: () => string
  readonly version: () => string
  /** Logs a line about a client. The number of lines of one kind is limited. */
  readonly warn: (kind: string, line: string) => void
}

/** A request, as far as these streams use it. */
export interface ConfigRequest {
  readonly typeUrl: string
  readonly nonce: string
  readonly error: { readonly code: number; readonly message: string } | undefined
  /** In delta the objects that the client has from an earlier stream, with their versions. */
  readonly initialVersions?: Iterable<readonly [name: string, version: string]>
}

/** A type on a stream. */
interface ConfigWatch {
  readonly typeUrl: string
  /** The kind; undefined for a type of which there is nothing. */
  readonly kind: string | undefined
  /** The versions of the objects that the client has, by name. */
  sent: Map<string, string>
  /** The nonce of the last response; empty when it was answered, or there was none. */
  awaited: string
  /** Whether the client was told that it has everything. */
  isWhole: boolean
}

/** The streams of one writer. */
export class ConfigStreams {
  readonly #parts: ConfigStreamParts
  readonly #streams = new Map<Connection, Map<string, ConfigWatch>>()
  /** The streams whose callers may be served. */
  readonly #admitted = new Set<Connection>()
  readonly #config: ServedConfig

  constructor(parts: ConfigStreamParts) {
    this.#parts = parts
    this.#config = new ServedConfig({
      domain: parts.names.domain,
      ask: parts.ask,
      isNeeded: () => this.#admitted.size > 0,
      changed: () => {
        for (const connection of this.#admitted) this.#send(connection)
      },
    })
  }

  /** Takes a request of a stream whose node names this generator. Returns false for all other streams. */
  takes(connection: Connection, request: ConfigRequest): boolean {
    if (connection.node?.metadata.GENERATOR !== configGenerator) return false
    let watches = this.#streams.get(connection)
    if (!watches) {
      if (this.#streams.size >= most.streams) {
        connection.stream.end(status.resourceExhausted, `${count(most.streams, 'control plane')} are served by this writer already`)
        return true
      }
      watches = new Map()
      this.#streams.set(connection, watches)
      connection.stream.onClose(() => {
        this.#streams.delete(connection)
        this.#admitted.delete(connection)
      })
      void this.#admit(connection)
    }
    this.#take(connection, watches, request)
    if (this.#admitted.has(connection)) this.#send(connection)
    return true
  }

  async #admit(connection: Connection): Promise<void> {
    const refusal = await this.#refusal(connection)
    if (!this.#streams.has(connection)) return
    if (refusal) {
      const { stream } = connection
      this.#parts.warn(`config|${stream.peer}`, `configuration objects refused to ${stream.peer}: ${refusal.message}`)
      return stream.end(refusal.code, refusal.message)
    }
    this.#admitted.add(connection)
    this.#config.follow()
    this.#send(connection)
  }

  async #refusal({ stream }: Connection): Promise<CallStatus | undefined> {
    const secured = 'configuration objects are served on the secured port only, to identities of the root namespace'
    if (!stream.isSecure) return { code: status.unauthenticated, message: secured }
    const caller = await this.#parts.access.callerOf(stream)
    if (caller === unconditional) return { code: status.unauthenticated, message: secured }
    if ('code' in caller) return caller
    const names = this.#parts.meshNames()
    if (!names) return { code: status.unavailable, message: 'the names of the mesh are not known yet' }
    if (mayRead(caller, undefined, names)) return undefined
    const who = caller.identities.slice(0, 4).join(', ')
    return { code: status.permissionDenied, message: `${who} may not read configuration objects: identities of the root namespace may` }
  }

  #take({ stream, session }: Connection, watches: Map<string, ConfigWatch>, { typeUrl, nonce, error, initialVersions }: ConfigRequest): void {
    const watch = watches.get(typeUrl)
    if (error && watch)
      this.#parts.warn(`config refused|${stream.peer}`, `${stream.peer} refused objects of ${typeUrl}: ${error.message.replace(/\s+/g, ' ')}`)
    // A request with the last nonce is an answer. One without a nonce begins the type anew, or in delta changes a subscription, which has no names.
    if (watch && (nonce !== '' || session.delta)) {
      if (nonce === watch.awaited) watch.awaited = ''
      return
    }
    if (!watch && watches.size >= most.types) return stream.end(status.invalidArgument, `more than ${count(most.types, 'type')}`)
    const kind = servedKindOf(typeUrl, this.#parts.names)?.name
    watches.set(typeUrl, { typeUrl, kind, sent: new Map(initialVersions), awaited: '', isWhole: false })
  }

  /** Sends a client what it has not: of each type one response, until that is answered. */
  #send(connection: Connection): void {
    if (!this.#config.isKnown) return
    for (const watch of this.#streams.get(connection)?.values() ?? []) if (watch.awaited === '') this.#sendType(connection, watch)
  }

  #sendType({ stream, session }: Connection, watch: ConfigWatch): void {
    const { typeUrl, sent } = watch
    const objects = watch.kind === undefined ? new Map<string, ServedResource>() : this.#config.of(watch.kind)
    const changed = [...objects.values()].filter(({ name, version }) => sent.get(name) !== version)
    const removed = [...sent.keys()].filter((name) => !objects.has(name))
    if (watch.isWhole && changed.length + removed.length === 0) return
    const { now, isWhole } = session.delta ? firstOf(changed) : { now: [...objects.values()], isWhole: true }
    watch.isWhole = isWhole
    watch.awaited = this.#parts.nonce()
    const messageType = isAliasGroup(typeUrl.split('/')[0] ?? '') ? resourceTypes.alias : resourceTypes.mesh
    const resources = now.map((each) => ({ name: each.name, version: each.version, element: elementOf(each, messageType) }))
    const version = isWhole ? this.#parts.version() : ''
    const response = encodeResponse(session.delta, { typeUrl, version, nonce: watch.awaited, resources, removed: session.delta ? removed : [] })
    for (const name of removed) sent.delete(name)
    for (const { name, version: ofObject } of now) sent.set(name, ofObject)
    stream.write([messageFrame(response)], () => undefined)
  }
}

/** The first objects, as many as one response has, and whether these are all. */
function firstOf(objects: readonly ServedResource[]): { readonly now: readonly ServedResource[]; readonly isWhole: boolean } {
  let bytes = 0
  const end = objects.findIndex(({ value }) => (bytes += value.length) > responseBytes)
  const now = end < 0 ? objects : objects.slice(0, end + 1)
  return { now, isWhole: now.length === objects.length }
}
