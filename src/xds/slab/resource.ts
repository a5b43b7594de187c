/** Encoded resources: blocks of bytes that are written to shared memory once, and resources that consist of slices of blocks. */
import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf'
import type { Listener } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { markOf } from '../listeners/unbound.ts'
import { checkMessage } from '../resource-check.ts'
import { listenerType } from '../type-urls.ts'
import { contentVersion } from './sums.ts'
import { elementHead } from './wire.ts'

/** The value of {@link Block.slab} after the last use of a placed block ended. */
export const lost = -1

/** Whether the bytes of a resource still exist. A resource whose bytes were freed must be encoded again. */
export function isUsable(resource: Resource): boolean {
  return resource.slices.every(({ block }) => block.slab !== lost)
}

/** Bytes that are held in shared memory once. The slab store places a block when a resource that uses it is first published. */
export class Block {
  /** The bytes until they are placed; undefined afterwards. */
  bytes: Uint8Array | undefined
  readonly length: number
  /** The number of the slab that holds the block; 0: not placed yet, {@link lost}: placed once and freed since. */
  slab = 0
  offset = 0
  /** The number of uses by published resources. */
  uses = 0

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.length = bytes.length
  }
}

/** A part of a block. */
export interface Slice {
  readonly block: Block
  readonly offset: number
  readonly length: number
}

/** An encoded resource: its slices, concatenated, are one element of `resources` in a discovery response. */
export interface Resource {
  readonly name: string
  /** 32 hexadecimal digits, equal for equal content. Sent to proxies as the version of the resource. */
  readonly version: string
  readonly slices: readonly Slice[]
}

/** A resource of one block. Its slice is created on each read, because most resources are of this kind and most are idle. */
export class WholeResource implements Resource {
  readonly name: string
  readonly version: string
  readonly #block: Block

  constructor(name: string, version: string, bytes: Uint8Array) {
    this.name = name
    this.version = version
    this.#block = new Block(bytes)
  }

  get slices(): readonly Slice[] {
    return [{ block: this.#block, offset: 0, length: this.#block.length }]
  }
}

/**
 * Encodes a message as a resource of one slice. A listener that is not bound is marked as such (docs/resources.md, L21). Throws
 * InvalidResource if the message violates Envoy's validation rules.
 */
export function encodeResource<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>, name: string): Resource {
  checkMessage(schema, message)
  const typeUrl = `type.googleapis.com/${schema.typeName}`
  const value = [toBinary(schema, message), ...(typeUrl === listenerType ? [markOf(message as unknown as Listener)] : [])]
  const head = elementHead(
    typeUrl,
    value.reduce((sum, { length }) => sum + length, 0),
  )
  const bytes = Buffer.concat([head, ...value])
  return new WholeResource(name, contentVersion(bytes), bytes)
}
