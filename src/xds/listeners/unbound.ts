/** Listeners that are not bound to a port, and what of them ends Envoy although its validation rules accept it (docs/resources.md, F8, L21). */
import { create, toBinary } from '@bufbuild/protobuf'
import { type SocketOption, SocketOptionSchema } from '../../../protocols/gen/envoy/config/core/v3/socket_option_pb.js'
import type { Listener } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { fieldHead } from '../slab/wire.ts'

/** Whether Envoy opens no socket for the IP addresses of a listener. Unix sockets are always bound. */
const isUnbound = ({ bindToPort, deprecatedV1 }: Listener): boolean => bindToPort === false || deprecatedV1?.bindToPort === false

/**
 * Returns the setting of a listener that is not bound to a port by which Envoy sets an option on its listening socket; undefined if there
 * is none, or if the listener is bound. Envoy sets such an option although there is no socket, and crashes. Unix sockets are always bound.
 */
export function optionWithoutSocket(listener: Listener): string | undefined {
  if (!isUnbound(listener)) return undefined
  const { transparent, socketOptions } = listener
  const sockets = [
    { at: listener.address, field: 'socket_options', options: socketOptions },
    ...listener.additionalAddresses.map(({ address: at, socketOptions: own }, index) =>
      own
        ? { at, field: `additional_addresses[${index}].socket_options`, options: own.socketOptions }
        : { at, field: 'socket_options', options: socketOptions },
    ),
  ].flatMap(({ at, ...socket }) => (at?.address.case === 'socketAddress' ? { ...socket, protocol: at.address.value.protocol } : []))
  if (transparent && sockets.length > 0) return 'transparent'
  // Envoy sets options of its own on UDP sockets. From 1.40 on it refuses such a listener.
  if (sockets.some(({ protocol }) => Number(protocol) === udp)) return 'protocol: UDP'
  const found = sockets.map(({ field, options }) => ({ field, index: options.findIndex(isOfBoundSocket) })).find(({ index }) => index >= 0)
  return found && `${found.field}[${found.index}]`
}

/** `UDP` of `envoy.config.core.v3.SocketAddress.Protocol`. */
const udp = 1

/** `STATE_BOUND` of `envoy.config.core.v3.SocketOption.SocketState`. */
const bound = 1

const isOfBoundSocket = ({ state }: SocketOption): boolean => Number(state) === bound

/**
 * The socket option by which an encoded listener that is not bound differs from every one that is bound. Envoy sets it on no socket. When a
 * listener changes under its name, Envoy takes over its sockets if addresses and socket options are equal, whatever `bind_to_port` was: it
 * crashes when it listens at one that is not there, and leaves one open, and a client without an answer, that nobody needs any more. Where
 * `bind_to_port` changes between false and unset, it sees no change without the mark.
 */
const mark = create(SocketOptionSchema, { description: 'not bound', value: { case: 'intValue', value: 0n } })

const markBytes = toBinary(SocketOptionSchema, mark)

/** The mark as a field of `envoy.config.listener.v3.Listener`, `socket_options`. */
const markField = Buffer.concat([fieldHead(13, markBytes.length), markBytes])

const noField = Buffer.alloc(0)

/** Returns what an encoded listener ends with: the mark if it has an IP address without a socket. */
export function markOf(listener: Listener): Buffer {
  if (!isUnbound(listener)) return noField
  return [listener, ...listener.additionalAddresses].some(({ address }) => address?.address.case === 'socketAddress') ? markField : noField
}

/** Returns the path of a mark in a listener that is bound; undefined if there is none. */
export function markOfBound(listener: Listener): string | undefined {
  if (isUnbound(listener)) return undefined
  const index = listener.socketOptions.findIndex(({ description }) => description === mark.description)
  return index < 0 ? undefined : `socket_options[${index}].description`
}
