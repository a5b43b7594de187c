/** Merging of transport sockets, in clusters and in filter chains. */
import type { TransportSocket } from '../../../protocols/gen/envoy/config/core/v3/base_pb.js'
import { mergePacked } from './merge.ts'

/** Merges a socket into another (`envoy.config.core.v3.TransportSocket`): within its configuration where both are of the same name and type, else it takes its place. */
export function mergeSocket(into: TransportSocket, from: TransportSocket): void {
  const [target, source] = [into.configType.value, from.configType.value]
  if (into.name === from.name && target && source && mergePacked(target, source)) return
  into.name = from.name
  if (source) into.configType = from.configType
}
