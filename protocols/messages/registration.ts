/**
 * The registration of workloads by their WorkloadGroup (docs/registration.md): what writers tell of connected workloads, what sources tell of
 * groups and entries, and the calls that create, mark and delete entries.
 */

/** A WorkloadGroup, as far as entries are made from it. */
export interface WorkloadGroupData {
  /** The API group as it is written (it may be the alias), and the version it was read with. */
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  /** `metadata` of the group's spec, which is for entries. */
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** `template` of its spec. */
  readonly template: Readonly<Record<string, unknown>>
}

/** A WorkloadEntry, as far as registration depends on it. */
export interface WorkloadEntryData {
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  /** The WorkloadGroup that it was registered for, in either spelling of the annotation; empty: it was not registered. */
  readonly registeredFor: string
  /** The replica that keeps it: from the annotation in the own spelling only; empty: none. */
  readonly controller: string
  readonly connectedAt: string
  /** Empty: its workload is connected. */
  readonly disconnectedAt: string
  /** Annotations of registration in the alias spelling, which are removed when a replica takes the entry over. */
  readonly foreignAnnotations: readonly string[]
  /** Whether it takes traffic only while it is healthy. */
  readonly isChecked: boolean
  /** All conditions of its status as JSON; empty where there is no list of them. */
  readonly conditions: string
}

/** Source of a cluster to registrar. `id`: `<plural>.<group> <namespace>/<name>`. */
export type RegistrationObjectEvent =
  | { readonly type: 'WorkloadGroupChanged'; readonly id: string; readonly workloadGroup: WorkloadGroupData | undefined }
  | { readonly type: 'WorkloadEntryChanged'; readonly id: string; readonly entry: WorkloadEntryData | undefined }

/** A workload that wants to be registered. */
export interface RegisteringWorkload {
  /** `AUTO_REGISTER_GROUP` of its node, and its namespace. */
  readonly workloadGroup: string
  readonly namespace: string
  /** The id of the node of its proxy, for messages. */
  readonly node: string
  readonly address: string
  readonly network: string
  readonly locality: string
  readonly labels: Readonly<Record<string, string>>
  /** Whether its proxy has a readiness probe, so that its health is reported. */
  readonly isProbed: boolean
  /** The workloads that its caller was authenticated as; undefined: nobody is authenticated (`XDS_AUTH` is off). */
  readonly callers: readonly { readonly namespace: string; readonly account: string }[] | undefined
}

/** The health of a workload as its agent reports it. */
export interface ReportedHealth {
  readonly isHealthy: boolean
  /** Why it is not healthy. */
  readonly message: string
}

/** Writer to registrar. A new link starts with all connections, in a replay. */
export type WorkloadEvent =
  | {
      readonly type: 'WorkloadConnected'
      readonly connection: string
      readonly workload: RegisteringWorkload
      /** What was reported last on this connection. */
      readonly health: ReportedHealth | undefined
    }
  | { readonly type: 'WorkloadDisconnected'; readonly connection: string }
  | { readonly type: 'WorkloadHealthReported'; readonly connection: string; readonly health: ReportedHealth }

/** Registrar to writer: end the stream of a workload that cannot be registered. */
export interface RegistrationRefused {
  readonly type: 'RegistrationRefused'
  readonly connection: string
  /** The status of gRPC with which it ends. */
  readonly code: number
  readonly reason: string
}

/** The place of a WorkloadEntry in the API. */
export interface EntryPlace {
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly name: string
}

/** Asks the main thread to create, change or delete a WorkloadEntry. */
export type EntryOrder = EntryPlace &
  (
    | { readonly verb: 'create'; readonly object: Readonly<Record<string, unknown>> }
    /** A merge patch, which names the version of the object that it is for. */
    | { readonly verb: 'patch'; readonly patch: Readonly<Record<string, unknown>> }
    /** A merge patch of the status, likewise. */
    | { readonly verb: 'health'; readonly patch: Readonly<Record<string, unknown>> }
    | { readonly verb: 'delete'; readonly uid: string; readonly resourceVersion: string }
  )

/** What came of it. */
export type EntryOutcome =
  /** `entry`: as it is now; undefined after its deletion. */
  | { readonly outcome: 'done'; readonly entry: WorkloadEntryData | undefined }
  /** There is no such object. */
  | { readonly outcome: 'gone' }
  /** The object is another one, or was changed meanwhile. */
  | { readonly outcome: 'conflict' }
  /** `concerns`: this object alone, which the server does not permit as it is, or all (it cannot be reached, or the role forbids it). */
  | { readonly outcome: 'failed'; readonly reason: string; readonly concerns: 'object' | 'all' }

/** Asks the main thread to renew the Lease of this replica, to delete those of dead ones, and to list all. */
export interface PresenceOrder {
  readonly dead: readonly { readonly name: string; readonly version: string }[]
}

/**
 * The Leases of all replicas: the name of each replica, and the version of its Lease; where it is asked by others, and its revision, if the Lease has
 * them.
 */
export type PresenceAnswer = readonly { readonly name: string; readonly version: string; readonly address?: string; readonly revision?: string }[]

/** Configuration of the registrar. */
export interface RegistrarConfig {
  /** The name of this replica, which differs with each start of the process. */
  readonly replica: string
  readonly domain: string
  readonly graceMs: number
  readonly checksHealth: boolean
  /** The most entries of the groups of one service account; 0: any number. */
  readonly mostEntries: number
  /** The number of writers, each of which tells of its connections. */
  readonly writers: number
}
