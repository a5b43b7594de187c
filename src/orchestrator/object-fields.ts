/**
 * The fields of objects that the mesh reads, by their numbers in the orchestrator's protobuf encoding (`core/v1`, `discovery/v1` and `meta/v1`
 * of its API). A field that a cut of an object comes to need has to be added here; `test/orchestrator/registry.test.ts` compares both encodings.
 */
import { fields, type MessageFields } from './protobuf-messages.ts'

const owner = fields({ 1: ['kind', 'word'], 3: ['name', 'text'], 6: ['controller', 'bool'] })

const ofAll = {
  1: ['name', 'text'],
  3: ['namespace', 'word'],
  5: ['uid', 'text'],
  6: ['resourceVersion', 'text'],
  8: ['creationTimestamp', 'time'],
  11: ['labels', 'wordByKey'],
} as const
const metadata = fields({ ...ofAll, 12: ['annotations', 'wordByKey'] })
/** Annotations of pods, slices and nodes are not read, and can be long. */
const plainMetadata = fields(ofAll)
const ofPods = { ...ofAll, 9: ['deletionTimestamp', 'time'], 13: ['ownerReferences', 'list', owner] } as const
const podMetadata = fields(ofPods)

const containerPort = fields({ 1: ['name', 'word'], 3: ['containerPort', 'number'], 4: ['protocol', 'word'] })
const ofContainers = { 6: ['ports', 'list', containerPort], 24: ['restartPolicy', 'word'] } as const
const container = fields(ofContainers)
const podSpec = (containers: MessageFields) =>
  fields({
    2: ['containers', 'list', containers],
    8: ['serviceAccountName', 'word'],
    10: ['nodeName', 'word'],
    11: ['hostNetwork', 'bool'],
    20: ['initContainers', 'list', containers],
  })
const condition = fields({ 1: ['type', 'word'], 2: ['status', 'word'] })
const podIp = fields({ 1: ['ip', 'text'] })
const podStatus = fields({ 1: ['phase', 'word'], 2: ['conditions', 'list', condition], 6: ['podIP', 'text'], 12: ['podIPs', 'list', podIp] })

const servicePort = fields({
  1: ['name', 'word'],
  2: ['protocol', 'word'],
  3: ['port', 'number'],
  4: ['targetPort', 'numberOrText'],
  5: ['nodePort', 'number'],
  6: ['appProtocol', 'word'],
})
const serviceSpec = fields({
  1: ['ports', 'list', servicePort],
  2: ['selector', 'wordByKey'],
  3: ['clusterIP', 'text'],
  4: ['type', 'word'],
  5: ['externalIPs', 'list', 'text'],
  10: ['externalName', 'word'],
  18: ['clusterIPs', 'list', 'text'],
  23: ['trafficDistribution', 'word'],
})
const balancerIngress = fields({ 1: ['ip', 'text'], 2: ['hostname', 'word'] })
const serviceStatus = fields({ 1: ['loadBalancer', fields({ 1: ['ingress', 'list', balancerIngress] })] })

const target = fields({ 1: ['kind', 'word'], 2: ['namespace', 'word'], 3: ['name', 'text'] })
const endpointConditions = fields({ 1: ['ready', 'bool'], 2: ['serving', 'bool'], 3: ['terminating', 'bool'] })
const endpoint = fields({
  1: ['addresses', 'list', 'text'],
  2: ['conditions', endpointConditions],
  4: ['targetRef', target],
  6: ['nodeName', 'word'],
})
const slicePort = fields({ 1: ['name', 'word'], 3: ['port', 'number'] })

const nodeAddress = fields({ 1: ['type', 'word'], 2: ['address', 'word'] })

/** What is read of a Pod. */
export const podFields: MessageFields = fields({ 1: ['metadata', podMetadata], 2: ['spec', podSpec(container)], 3: ['status', podStatus] })
/** What is read of a Pod where analysis looks at its annotations and containers too. */
export const analyzedPodFields: MessageFields = fields({
  1: ['metadata', fields({ ...ofPods, 12: ['annotations', 'wordByKey'] })],
  2: ['spec', podSpec(fields({ ...ofContainers, 1: ['name', 'word'], 2: ['image', 'word'] }))],
  3: ['status', podStatus],
})
/** What is read of a Service. */
export const serviceFields: MessageFields = fields({ 1: ['metadata', metadata], 2: ['spec', serviceSpec], 3: ['status', serviceStatus] })
/** What is read of an EndpointSlice. */
export const sliceFields: MessageFields = fields({
  1: ['metadata', plainMetadata],
  2: ['endpoints', 'list', endpoint],
  3: ['ports', 'list', slicePort],
  4: ['addressType', 'word'],
})
/** What is read of a Node. */
export const nodeFields: MessageFields = fields({ 1: ['metadata', plainMetadata], 3: ['status', fields({ 5: ['addresses', 'list', nodeAddress] })] })
/** What is read of a Namespace. */
export const namespaceFields: MessageFields = fields({ 1: ['metadata', metadata] })
