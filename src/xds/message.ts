/** Constructors of messages that recur in every resource. Every packed message is checked against Envoy's validation rules. */
import { create, type DescMessage, type MessageInitShape, type MessageShape, toBinary } from '@bufbuild/protobuf'
import { type Any, AnySchema, type Duration, DurationSchema } from '@bufbuild/protobuf/wkt'
import { checkMessage } from './resource-check.ts'

/** Packs a message into an `Any`. Throws {@link import('./resource-check.ts').InvalidResource} if it violates Envoy's validation rules. */
export function pack<Schema extends DescMessage>(schema: Schema, init: MessageInitShape<Schema>): Any {
  return packMessage(schema, create(schema, init))
}

/** Packs an existing message into an `Any`. Throws as {@link pack} does. */
export function packMessage<Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>): Any {
  checkMessage(schema, message)
  return create(AnySchema, { typeUrl: `type.googleapis.com/${schema.typeName}`, value: toBinary(schema, message) })
}

/**
 * Returns a `google.protobuf.Duration` of milliseconds, rounded toward zero to nanoseconds: rounding up could give 1,000,000,000
 * nanoseconds, which is invalid.
 */
export function durationOf(ms: number): Duration {
  const seconds = Math.trunc(ms / 1000)
  const nanos = Math.trunc((ms - seconds * 1000) * 1e6 + Math.sign(ms) * 1e-3)
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: Math.min(999_999_999, Math.max(-999_999_999, nanos)) })
}

/** Returns a socket address. */
export function socketAddress(address: string, port: number) {
  return { address: { case: 'socketAddress' as const, value: { address, portSpecifier: { case: 'portValue' as const, value: port } } } }
}

/** Returns the address of an endpoint from its notation in configuration: an IP address, a host name, or `unix://path`. */
export function endpointAddress(address: string, port: number) {
  return address.startsWith('unix://')
    ? { address: { case: 'pipe' as const, value: { path: address.slice('unix://'.length) } } }
    : socketAddress(address, port)
}

/** The config source "over the ADS stream". */
export const overAds = { configSourceSpecifier: { case: 'ads' as const, value: {} }, resourceApiVersion: 2 }
