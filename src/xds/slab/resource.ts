/** Encoded resources: blocks of bytes that are written into shared memory once, and resources made of slices of them. */
import { hash as digest } from 'node:crypto'
import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { checkMessage } from '../resource-check.ts'
import { elementHead } from './wire.ts'

/** A 64-bit content hash as two unsigned halves. Hashes of parts add up to the hash of the whole. */
export type Hash = readonly [high: number, low: number]

export const zeroHash: Hash = [0, 0]

/** Content hash of bytes (the first 64 bits of SHA-1: no adversary chooses both resources it could confuse for its own). */
export function hashOf(bytes: Uint8Array): Hash {
  const full = digest('sha1', bytes, 'buffer')
  return [full.readUInt32BE(0), full.readUInt32BE(4)]
}

/** Sum of two hashes, each half modulo 2^32. */
export function addHash(one: Hash, other: Hash): Hash {
  return [(one[0] + other[0]) >>> 0, (one[1] + other[1]) >>> 0]
}

/** Difference of two hashes. */
export function subtractHash(one: Hash, other: Hash): Hash {
  return [(one[0] - other[0]) >>> 0, (one[1] - other[1]) >>> 0]
}

/** Sixteen hexadecimal digits. */
export function hashText(hash: Hash): string {
  return hash[0].toString(16).padStart(8, '0') + hash[1].toString(16).padStart(8, '0')
}

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
  readonly hash: Hash
  readonly slices: readonly Slice[]
}

/** Encodes a message as a resource of one slice. Throws InvalidResource when Envoy would refuse it. */
export function encodeResource<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>, name: string): Resource {
  checkMessage(schema, message)
  const value = toBinary(schema, message)
  const head = elementHead(`type.googleapis.com/${schema.typeName}`, value.length)
  const bytes = Buffer.concat([head, value])
  const block = new Block(bytes)
  return { name, hash: hashOf(bytes), slices: [{ block, offset: 0, length: bytes.length }] }
}
