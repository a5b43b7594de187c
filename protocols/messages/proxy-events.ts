/**
 * What happens to the streams of proxies, for clients that watch it (the generator `event`, docs/xds-protocol.md, "Streams about the
 * service"): the writers report it to the actor `distribution`, and only while somebody watches.
 */

/** A proxy has connected, is gone, or has refused a response. */
export type ProxyEventKind = 'connect' | 'disconnect' | 'nack'

/** An event of a proxy. */
export interface ProxyEvent {
  readonly kind: ProxyEventKind
  /** The namespace of the proxy, which decides who may see the event. */
  readonly namespace: string
  /** The id of its node. */
  readonly nodeId: string
  /** What watchers are sent: an encoded `envoy.config.core.v3.Node`; of a refusal the `envoy.service.discovery.v3.DiscoveryRequest`. */
  readonly message: Uint8Array
}

/** Writer to distribution. The next one is sent when this one was taken. An empty one confirms that the writer reports from now on. */
export interface ProxyEventsReported {
  readonly type: 'ProxyEventsReported'
  readonly events: readonly ProxyEvent[]
  /** Whether events before these were lost because the last report was not taken in time. */
  readonly isGap: boolean
}

/** Distribution to writer: report events from now on, or no longer. `isLate`: other writers report already, so all proxies are reported. */
export interface ReportProxyEvents {
  readonly type: 'ReportProxyEvents'
  readonly isWanted: boolean
  readonly isLate: boolean
}

/** Distribution to writer: the last report of events was taken. */
export interface ProxyEventsTaken {
  readonly type: 'ProxyEventsTaken'
}

/** The events of the proxies of all replicas after a cursor. */
export interface EventsOfAll extends ProxyEventsAnswer {
  /** The replicas whose events are in this answer, and in those that begin at its cursor; empty where other replicas are not asked. */
  readonly followed: readonly string[]
  /** The replicas that the cursor was of and that do not answer any more, with the reasons; empty: there are none. */
  readonly lost: string
}

/** An event as replicas tell it to each other: its message in base64. */
export type SharedEvent = Omit<ProxyEvent, 'message'> & { readonly message: string }

/** What a replica answers another one about the events of its proxies. */
export interface SharedEvents extends Omit<ProxyEventsAnswer, 'events'> {
  readonly events: readonly SharedEvent[]
}

/** The events after a cursor. */
export interface ProxyEventsAnswer {
  readonly events: readonly ProxyEvent[]
  /** To ask on from. */
  readonly cursor: string
  /** Whether events after the cursor are missing. */
  readonly isGap: boolean
}
