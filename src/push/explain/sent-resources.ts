/** The resources that a proxy was sent, decoded when they are looked at. */
import { type DescMessage, fromBinary, type MessageShape } from '@bufbuild/protobuf'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import type { RoutingInput } from '../../../protocols/messages/explain.ts'
import { resourceIn } from '../../xds/resource-element.ts'
import { listenerType } from '../../xds/type-urls.ts'

/** What is said of missing secrets that `tls.credentialName` of a kind names. An Envoy keeps what it has. */
export const missingText = (names: readonly string[], kind: 'Gateway' | 'DestinationRule'): string =>
  `${names.join(', ')} does not exist, or lacks what is needed, or the gateway may not read it (tls.credentialName of the ${kind}); one that was sent to the proxy before it was removed stays in use there`

/** The resources of a proxy by type and name. */
export class SentResources {
  readonly #resources: RoutingInput['resources']
  readonly #missingSecrets: readonly string[]
  /** What was looked at, by its element. */
  readonly #decoded = new Map<string, unknown>()

  /** `missingSecrets`: those that the proxy asks for and that do not exist for it. */
  constructor({ resources, missingSecrets }: Pick<RoutingInput, 'resources' | 'missingSecrets'>) {
    this.#resources = resources
    this.#missingSecrets = missingSecrets
  }

  /** Those of some secrets that do not exist for the proxy. */
  missing(secrets: readonly string[]): string[] {
    return [...new Set(secrets)].filter((name) => this.#missingSecrets.includes(name))
  }

  /** All listeners. */
  listeners(): Listener[] {
    return this.below(listenerType, '', ListenerSchema)
  }

  /** The names of a type. */
  names(typeUrl: string): string[] {
    return (this.#resources[typeUrl] ?? []).map(({ name }) => name)
  }

  /** The resource of a name; undefined: there is none. */
  named<Schema extends DescMessage>(typeUrl: string, name: string, schema: Schema): MessageShape<Schema> | undefined {
    const found = this.#resources[typeUrl]?.find((each) => each.name === name)
    return found && this.#message(found.element, schema)
  }

  /** The resources whose names begin with a text. */
  below<Schema extends DescMessage>(typeUrl: string, start: string, schema: Schema): MessageShape<Schema>[] {
    return (this.#resources[typeUrl] ?? []).filter(({ name }) => name.startsWith(start)).map(({ element }) => this.#message(element, schema))
  }

  #message<Schema extends DescMessage>(element: string, schema: Schema): MessageShape<Schema> {
    const made =
      (this.#decoded.get(element) as MessageShape<Schema> | undefined) ?? fromBinary(schema, resourceIn(Buffer.from(element, 'base64')).value)
    this.#decoded.set(element, made)
    return made
  }
}
