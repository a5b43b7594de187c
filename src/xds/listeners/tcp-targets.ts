/** Where connections that are carried as bytes go, and what the rules of those destinations say of them (docs/resources.md, R11, R19). */
import type { Service } from '../../../protocols/data.ts'
import type { Destination } from '../../config/shapes/hosts.ts'
import type { View } from '../../snapshot/view.ts'
import { policyFor } from '../clusters/traffic-policy.ts'
import { destinationCluster, destinationPort } from '../names.ts'

/** Limits of connections that are carried as bytes, from `connectionPool.tcp`. */
export interface TcpLimits {
  /** A connection is closed after so many milliseconds without a byte in either direction; 0 means never. */
  readonly idleTimeout?: number | undefined
  /** A connection is closed so many milliseconds after it was opened. */
  readonly maxConnectionDuration?: number | undefined
}

/** What a rule says of connections that are carried as bytes to a service. */
export interface TcpSettings extends TcpLimits {
  /** Whether the address of the client decides which endpoint a connection goes to. */
  readonly hashesSource: boolean
}

/** A cluster and its share of connections. */
export interface TcpTarget {
  readonly cluster: string
  readonly weight: number
  readonly settings?: TcpSettings | undefined
}

/** What the rule of a service says of connections to one of its ports, or to a subset of it (docs/resources.md, C5); undefined where it says nothing. */
export function tcpSettings(view: View, service: Service, port: number, subsetName = ''): TcpSettings | undefined {
  const rule = view.byteRuleFor(service)
  if (!rule) return undefined
  const subset = rule.subsets.find(({ name }) => name === subsetName)
  const { connectionPool, loadBalancer } = policyFor(rule, subset, port)
  const { idleTimeout, maxConnectionDuration } = connectionPool?.tcp ?? {}
  return { idleTimeout, maxConnectionDuration, hashesSource: loadBalancer?.consistentHash?.useSourceIp === true }
}

/** The targets of a route of connections that come to a port. */
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
