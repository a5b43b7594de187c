/** Pods as templates see them: messages with the field names of Go, and maps whose keys have both spellings (docs/injection.md, N5). */
import { isMapping } from '../config/shape.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { fromJson, GoStringMap, GoStruct, type Value } from '../template/values.ts'

/** A message that knows the JSON that it was made from: `toYaml` and `structToJSON` write that one. */
export class JsonStruct extends GoStruct {
  readonly json: unknown

  constructor(type: string, fields: ReadonlyMap<string, Value>, json: unknown) {
    super(type, fields)
    this.json = json
  }

  override withFields(fields: ReadonlyMap<string, Value>): JsonStruct {
    return new JsonStruct(this.type, fields, this.json)
  }
}

/** Labels or annotations: a key that is mesh-owned is found in both spellings. What the map lists are the keys as they were given. */
class SpelledMap extends GoStringMap {
  readonly #names: MeshNames

  constructor(map: Readonly<Record<string, string>>, names: MeshNames) {
    super(Object.entries(map))
    this.#names = names
  }

  #given(key: string): string {
    // The constructor of Map asks before the names are there.
    if (super.has(key)) return key
    return this.#names.keySpellings(key).find((spelling) => super.has(spelling)) ?? key
  }

  override get(key: string): Value | undefined {
    return super.get(this.#given(key))
  }

  override has(key: string): boolean {
    return super.has(this.#given(key))
  }
}

/** Names of Go whose capitals do not follow from the JSON name. */
const capitals: Readonly<Record<string, string>> = {
  apiVersion: 'APIVersion',
  awsElasticBlockStore: 'AWSElasticBlockStore',
  cephfs: 'CephFS',
  csi: 'CSI',
  dnsConfig: 'DNSConfig',
  dnsPolicy: 'DNSPolicy',
  fc: 'FC',
  fsGroup: 'FSGroup',
  fsGroupChangePolicy: 'FSGroupChangePolicy',
  gcePersistentDisk: 'GCEPersistentDisk',
  grpc: 'GRPC',
  httpGet: 'HTTPGet',
  httpHeaders: 'HTTPHeaders',
  ip: 'IP',
  iscsi: 'ISCSI',
  nfs: 'NFS',
  rbd: 'RBD',
  seLinuxOptions: 'SELinuxOptions',
  tcpSocket: 'TCPSocket',
  tty: 'TTY',
  uid: 'UID',
}

const goName = (name: string): string => capitals[name] ?? name.slice(0, 1).toUpperCase() + name.slice(1)

/** The fields of messages that templates read although a pod does not have them: their zero values in Go. */
type Zero = 'text' | 'number' | 'flag' | 'list' | 'texts' | 'nil' | { readonly message: string } | { readonly each: string }

const messages: Readonly<Record<string, Readonly<Record<string, Zero>>>> = {
  ObjectMeta: {
    ...{ name: 'text', generateName: 'text', namespace: 'text', uid: 'text', resourceVersion: 'text', labels: 'texts', annotations: 'texts' },
    ownerReferences: { each: 'OwnerReference' },
  },
  OwnerReference: { apiVersion: 'text', kind: 'text', name: 'text', uid: 'text', controller: 'nil' },
  PodSpec: {
    ...{
      volumes: { each: 'Volume' },
      initContainers: { each: 'Container' },
      containers: { each: 'Container' },
      imagePullSecrets: { each: 'LocalObject' },
    },
    ...{ restartPolicy: 'text', dnsPolicy: 'text', nodeSelector: 'texts', serviceAccountName: 'text', serviceAccount: 'text', nodeName: 'text' },
    ...{ hostNetwork: 'flag', hostPID: 'flag', hostIPC: 'flag', hostname: 'text', subdomain: 'text', schedulerName: 'text', tolerations: 'list' },
    ...{ terminationGracePeriodSeconds: 'nil', activeDeadlineSeconds: 'nil', affinity: 'nil', dnsConfig: 'nil', automountServiceAccountToken: 'nil' },
    ...{
      securityContext: { message: 'PodSecurityContext' },
      hostAliases: 'list',
      priorityClassName: 'text',
      priority: 'nil',
      shareProcessNamespace: 'nil',
    },
  },
  PodSecurityContext: {
    ...{
      runAsUser: 'nil',
      runAsGroup: 'nil',
      runAsNonRoot: 'nil',
      fsGroup: 'nil',
      supplementalGroups: 'list',
      seLinuxOptions: 'nil',
      sysctls: 'list',
    },
    seccompProfile: 'nil',
  },
  Container: {
    ...{ name: 'text', image: 'text', command: 'list', args: 'list', workingDir: 'text', ports: { each: 'ContainerPort' }, env: { each: 'EnvVar' } },
    ...{ envFrom: 'list', resources: { message: 'Resources' }, volumeMounts: { each: 'VolumeMount' }, livenessProbe: { message: 'Probe' } },
    ...{ readinessProbe: { message: 'Probe' }, startupProbe: { message: 'Probe' }, lifecycle: 'nil', imagePullPolicy: 'text' },
    ...{ securityContext: { message: 'SecurityContext' }, stdin: 'flag', tty: 'flag', restartPolicy: 'nil' },
  },
  ContainerPort: { name: 'text', hostPort: 'number', containerPort: 'number', protocol: 'text', hostIP: 'text' },
  EnvVar: { name: 'text', value: 'text', valueFrom: 'nil' },
  Resources: { limits: 'nil', requests: 'nil' },
  VolumeMount: { name: 'text', readOnly: 'flag', mountPath: 'text', subPath: 'text' },
  Volume: { name: 'text', emptyDir: 'nil', configMap: 'nil', secret: 'nil', hostPath: 'nil', projected: 'nil', persistentVolumeClaim: 'nil' },
  LocalObject: { name: 'text' },
  Probe: {
    ...{
      httpGet: 'nil',
      tcpSocket: 'nil',
      exec: 'nil',
      grpc: 'nil',
      initialDelaySeconds: 'number',
      timeoutSeconds: 'number',
      periodSeconds: 'number',
    },
    ...{ successThreshold: 'number', failureThreshold: 'number' },
  },
  SecurityContext: {
    ...{ capabilities: 'nil', privileged: 'nil', runAsUser: 'nil', runAsGroup: 'nil', runAsNonRoot: 'nil', readOnlyRootFilesystem: 'nil' },
    ...{ allowPrivilegeEscalation: 'nil', seLinuxOptions: 'nil', seccompProfile: 'nil' },
  },
}

/** Returns JSON as a message of Go. Fields that the message is not known to have are added; those of messages within are, too. */
export function goMessage(type: string, json: unknown, names: MeshNames): Value {
  const given = isMapping(json) ? json : {}
  const known = messages[type] ?? {}
  const fields = new Map<string, Value>()
  for (const [name, zero] of Object.entries(known)) fields.set(goName(name), fieldValue(zero, given[name], names))
  for (const [name, value] of Object.entries(given)) if (!Object.hasOwn(known, name)) fields.set(goName(name), anyMessage(value))
  return new JsonStruct(`v1.${type}`, fields, given)
}

function fieldValue(zero: Zero, json: unknown, names: MeshNames): Value {
  if (typeof zero === 'object') {
    if ('message' in zero) return json === undefined || json === null ? null : goMessage(zero.message, json, names)
    return Array.isArray(json) ? json.map((item) => goMessage(zero.each, item, names)) : []
  }
  if (zero === 'texts') return new SpelledMap((isMapping(json) ? json : {}) as Record<string, string>, names)
  if (json !== undefined && json !== null) return anyMessage(json)
  const zeros = { text: '', number: 0, flag: false, list: [], nil: null } as const
  return zeros[zero]
}

/** Returns JSON whose mappings are messages: their fields have Go's names. */
function anyMessage(json: unknown): Value {
  if (Array.isArray(json)) return json.map(anyMessage)
  if (!isMapping(json)) return fromJson(json)
  return new JsonStruct('v1.Object', new Map(Object.entries(json).map(([name, value]) => [goName(name), anyMessage(value)])), json)
}
