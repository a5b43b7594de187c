/** Listeners that crash Envoy although its validation rules accept them (docs/resources.md, F8). */
import type { SocketOption } from '../../../protocols/gen/envoy/config/core/v3/socket_option_pb.js'
import type { Listener } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'

/**
 * Returns the setting of a listener that is not bound to a port by which Envoy sets an option on its listening socket; undefined if there
 * is none, or if the listener is bound. Envoy sets such an option although there is no socket, and crashes. Unix sockets are always bound.
 */
export function optionWithoutSocket(listener: Listener): string | undefined {
  const { bindToPort, deprecatedV1, transparent, socketOptions } = listener
  if (bindToPort !== false && deprecatedV1?.bindToPort !== false) return undefined
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
