/**
 * Destinations of TCP connections, and the settings that the rules of these destinations make for connections (docs/resources.md, R11,
 * R19).
 */
import type { Service } from '../../../protocols/data.ts'
import type { Destination } from '../../config/shapes/hosts.ts'
import type { View } from '../../snapshot/view.ts'
import { policyFor } from '../clusters/traffic-policy.ts'
import { destinationCluster, destinationPort } from '../names.ts'

/** Limits of TCP connections, from `connectionPool.tcp`. */
export interface TcpLimits {
  /** A connection is closed after this time without a byte in either direction, in milliseconds; 0: never. */
  readonly idleTimeout?: number | undefined
  /** A connection is closed this time after it was opened, in milliseconds. */
  readonly maxConnectionDuration?: number | undefined
}

/** The settings that a DestinationRule makes for TCP connections to a service. */
export interface TcpSettings extends TcpLimits {
  /** Whether the source address of a connection selects its endpoint. */
  readonly hashesSource: boolean
}

/** A cluster and its weight. */
export interface TcpTarget {
  readonly cluster: string
  readonly weight: number
  readonly settings?: TcpSettings | undefined
}

/**
 * Returns the settings of the DestinationRule for TCP connections to a port of a service or subset (docs/resources.md, C5); undefined if
 * there is no rule.
 */
export function tcpSettings(view: View, service: Service, port: number, subsetName = ''): TcpSettings | undefined {
  const rule = view.tcpRuleFor(service)
  if (!rule) return undefined
  const subset = rule.subsets.find(({ name }) => name === subsetName)
  const { connectionPool, loadBalancer } = policyFor(rule, subset, port)
  const { idleTimeout, maxConnectionDuration } = connectionPool?.tcp ?? {}
  return { idleTimeout, maxConnectionDuration, hashesSource: loadBalancer?.consistentHash?.useSourceIp === true }
}

/** Returns the targets of a TCP or TLS route for connections to a port. */
export function tcpTargets(
  route: readonly { readonly destination: Destination; readonly weight?: number | undefined }[],
  port: number,
  view: View,
): TcpTarget[] {
  const find = (host: string) => view.service(host)
  return route.map(({ destination, weight }) => {
    const state = find(destination.host)
    return {
      cluster: destinationCluster(destination, port, find),
      weight: weight ?? 0,
      settings: state && tcpSettings(view, state.service, destinationPort(destination, port, find), destination.subset),
    }
  })
}
