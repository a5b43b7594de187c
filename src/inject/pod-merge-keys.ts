/**
 * How the lists of a Pod are merged (the orchestrator's strategic merge): the field that tells elements apart. A list that is not here is
 * replaced as a whole. `test/template/merge.test.ts` holds this table to the orchestrator's types.
 */

/** How a field is merged. */
export interface MergedField {
  /** For lists of objects: the field that tells elements apart. */
  readonly key?: string
  /** For lists of scalars: whether elements are added to those that are there. */
  readonly isMerged?: boolean
  /** The fields of the object, or of each element. */
  readonly fields?: MergedFields
}

/** Fields by name; those that are not here have no merged lists in them. */
export type MergedFields = ReadonlyMap<string, MergedField>

const fields = (given: Readonly<Record<string, MergedField>>): MergedFields => new Map(Object.entries(given))

const meta = fields({ ownerReferences: { key: 'uid' }, finalizers: { isMerged: true } })

const container = fields({
  ports: { key: 'containerPort' },
  env: { key: 'name' },
  volumeMounts: { key: 'mountPath' },
  volumeDevices: { key: 'devicePath' },
})

const volume = fields({ ephemeral: { fields: fields({ volumeClaimTemplate: { fields: fields({ metadata: { fields: meta } }) } }) } })

const spec = fields({
  containers: { key: 'name', fields: container },
  initContainers: { key: 'name', fields: container },
  ephemeralContainers: { key: 'name', fields: container },
  volumes: { key: 'name', fields: volume },
  imagePullSecrets: { key: 'name' },
  hostAliases: { key: 'ip' },
  topologySpreadConstraints: { key: 'topologyKey' },
  schedulingGates: { key: 'name' },
  resourceClaims: { key: 'name' },
  evictionResponders: { key: 'name' },
})

const status = fields({
  conditions: { key: 'type' },
  hostIPs: { key: 'ip' },
  podIPs: { key: 'ip' },
  resourceClaimStatuses: { key: 'name' },
  nodeAllocatableResourceClaimStatuses: { key: 'resourceClaimName', fields: fields({ mapping: { key: 'name' }, overhead: { key: 'name' } }) },
})

/** The merged fields of a Pod. */
export const podFields: MergedFields = fields({ metadata: { fields: meta }, spec: { fields: spec }, status: { fields: status } })
