/** Encoded resources: blocks of bytes that are written into shared memory once, and resources made of slices of them. */
import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { checkMessage } from '../resource-check.ts'
import { contentVersion } from './sums.ts'
import { elementHead } from './wire.ts'

/** The slab of a block that nobody used any more. */
export const lost = -1

/** Whether a resource still has its bytes; one that was dropped must be made again. */
export function isUsable(resource: Resource): boolean {
  return resource.slices.every(({ block }) => block.slab !== lost)
}

/** Bytes that stand once in shared memory. Placed by the slab store when a resource that uses them is first published. */
export class Block {
  /** The bytes until they are placed. */
  bytes: Uint8Array | undefined
  readonly length: number
  /** Slab it stands in; 0 = not placed yet, {@link lost} = placed once, then dropped: its bytes are gone. */
  slab = 0
  offset = 0
  /** Published resources that use it. */
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

/** One encoded resource: its slices, written one after another, are a list element of a discovery response. */
export interface Resource {
  readonly name: string
  /** Equal for equal content, 32 hexadecimal digits: the version that proxies are told. */
  readonly version: string
  readonly slices: readonly Slice[]
}

/** Encodes a message as a resource of one slice. Throws InvalidResource when Envoy would refuse it. */
export function encodeResource<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>, name: string): Resource {
  checkMessage(schema, message)
  const value = toBinary(schema, message)
  const head = elementHead(`type.googleapis.com/${schema.typeName}`, value.length)
  const bytes = Buffer.concat([head, value])
  const block = new Block(bytes)
  return { name, version: contentVersion(bytes), slices: [{ block, offset: 0, length: bytes.length }] }
}
