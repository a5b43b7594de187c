/** Merges transport sockets of clusters and filter chains. */
import type { TransportSocket } from '../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import { mergePacked } from './merge.ts'

/**
 * Merges a socket into another (`envoy.config.core.v3.TransportSocket`): field by field if both have the same name and type, else the
 * socket is replaced.
 */
export function mergeSocket(into: TransportSocket, from: TransportSocket): void {
  const [target, source] = [into.configType.value, from.configType.value]
  if (into.name === from.name && target && source && mergePacked(target, source)) return
  into.name = from.name
  if (source) into.configType = from.configType
}
