/** WorkloadEntries of workloads that register themselves: their names, what they are made from, and what is written into them (docs/registration.md). */
import type { EntryPlace, RegisteringWorkload, ReportedHealth, WorkloadEntryData, WorkloadGroupData } from '../../protocols/messages/registration.ts'
import { isMapping, mapping, textOf } from '../config/shape.ts'
import { type MeshNames, meshNames } from '../names/mesh-names.ts'

type Mapping = Readonly<Record<string, unknown>>

/** The longest name of an object. */
const longestName = 253
/** The largest list of conditions that is written back, in characters of JSON. */
const longestConditions = 65_536
/** The longest reason in a condition, in characters. */
const longestReason = 1000

const validName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/

/** The annotations of registration in a mesh domain. */
export const registrationAnnotations = (domain: string) => ({
  group: `${domain}/autoRegistrationGroup`,
  controller: `${domain}/workloadController`,
  connectedAt: `${domain}/connectedAt`,
  disconnectedAt: `${domain}/disconnectedAt`,
  isChecked: `proxy.${domain}/health-checks-enabled`,
})

/** Returns the name of the entry of a workload, or undefined where that would be no name of an object. */
export function entryName({ workloadGroup, address, network }: RegisteringWorkload): string | undefined {
  const name = [workloadGroup, address.replaceAll(':', '-'), ...(network === '' ? [] : [network])].join('-')
  // The end of an IPv6 address may be empty, and the beginning of a name that was cut may be a character that no name begins with.
  const cut = name
    .slice(-longestName)
    .replace(/^[.-]+/, '')
    .replace(/-+$/, (dashes) => `${dashes}0`)
  return validName.test(cut) ? cut : undefined
}

/** What a replica writes into an entry that it keeps. `at`: the wall-clock time, for people. */
export interface Mark {
  readonly replica: string
  readonly at: string
}

/** Returns the object of a new entry. `checksHealth`: entries of workloads with a probe take traffic only while they are healthy. */
export function newEntry(
  workloadGroup: WorkloadGroupData,
  workload: RegisteringWorkload,
  name: string,
  mark: Mark,
  { domain, checksHealth }: { readonly domain: string; readonly checksHealth: boolean },
): Mapping {
  const { group, version, namespace, template, uid } = workloadGroup
  const keys = registrationAnnotations(domain)
  const labels = { ...mapping(template.labels), ...workloadGroup.labels, ...workload.labels }
  return {
    apiVersion: `${group}/${version}`,
    kind: 'WorkloadEntry',
    metadata: {
      ...{ name, namespace, labels },
      annotations: {
        ...workloadGroup.annotations,
        [keys.group]: workloadGroup.name,
        [keys.controller]: mark.replica,
        [keys.connectedAt]: mark.at,
        ...(checksHealth && workload.isProbed ? { [keys.isChecked]: 'true' } : {}),
      },
      ownerReferences: [{ apiVersion: `${group}/${version}`, kind: 'WorkloadGroup', name: workloadGroup.name, uid, controller: true }],
    },
    spec: {
      ...template,
      ...{ address: workload.address, labels },
      ...(workload.network === '' ? {} : { network: workload.network }),
      ...(workload.locality === '' ? {} : { locality: workload.locality }),
    },
  }
}

/** Returns the merge patch with which a replica takes an entry over. It is refused when the entry has changed meanwhile. */
export function takeOver({ resourceVersion, uid, foreignAnnotations, registeredFor }: WorkloadEntryData, mark: Mark, domain: string): Mapping {
  const keys = registrationAnnotations(domain)
  const annotations = {
    ...Object.fromEntries(foreignAnnotations.map((key) => [key, null])),
    ...{ [keys.group]: registeredFor, [keys.controller]: mark.replica, [keys.connectedAt]: mark.at, [keys.disconnectedAt]: null },
  }
  return { metadata: { resourceVersion, uid, annotations } }
}

/** Returns the merge patch with which a replica marks an entry of its own as disconnected, likewise. */
export function disconnection({ resourceVersion, uid }: WorkloadEntryData, at: string, domain: string): Mapping {
  const keys = registrationAnnotations(domain)
  return { metadata: { resourceVersion, uid, annotations: { [keys.connectedAt]: null, [keys.disconnectedAt]: at } } }
}

/** Whether the status of an entry says this health. A healthy one has no reason. */
export function saysHealth(entry: WorkloadEntryData, health: ReportedHealth): boolean {
  const own = conditionsOf(entry).find(isHealthCondition)
  return own?.status === statusOf(health) && (health.isHealthy || own.message === reasonOf(health))
}

/** Returns the merge patch that makes the status of an entry say a health; undefined: its conditions are too many to write back. */
export function healthPatch(entry: WorkloadEntryData, health: ReportedHealth, at: string): Mapping | undefined {
  if (entry.conditions.length > longestConditions) return undefined
  const all = conditionsOf(entry)
  const before = all.find(isHealthCondition)
  const status = statusOf(health)
  const since = before?.status === status && typeof before.lastTransitionTime === 'string' ? before.lastTransitionTime : at
  const own = { type: 'Healthy', status, message: reasonOf(health), lastProbeTime: at, lastTransitionTime: since }
  const conditions = [...all.filter((each) => !isHealthCondition(each)), own]
  return { metadata: { resourceVersion: entry.resourceVersion, uid: entry.uid }, status: { conditions } }
}

const statusOf = ({ isHealthy }: ReportedHealth): string => (isHealthy ? 'True' : 'False')

const reasonOf = ({ isHealthy, message }: ReportedHealth): string => (isHealthy ? '' : message.slice(0, longestReason).toWellFormed())

const isHealthCondition = (condition: Mapping): boolean => condition.type === 'Healthy'

function conditionsOf({ conditions }: WorkloadEntryData): readonly Mapping[] {
  const list: unknown = conditions === '' ? [] : JSON.parse(conditions)
  return Array.isArray(list) ? list.filter(isMapping) : []
}

/** Cuts a WorkloadEntry of the API to what registration depends on. Undefined for what is no object. */
export function entryData(value: Mapping, { group, version }: Pick<EntryPlace, 'group' | 'version'>, domain: string): WorkloadEntryData | undefined {
  const { namespace, name, uid, resourceVersion, annotations } = mapping(value.metadata)
  if (![namespace, name, uid, resourceVersion].every((part) => typeof part === 'string' && part !== '')) return undefined
  const names = meshNames(domain)
  const given = textsOf(annotations)
  const own = names.canonicalKeys(given)
  const keys = registrationAnnotations(domain)
  const { conditions } = mapping(value.status)
  return {
    ...{ group, version, namespace: textOf(namespace), name: textOf(name), uid: textOf(uid), resourceVersion: textOf(resourceVersion) },
    registeredFor: own[keys.group] ?? '',
    controller: given[keys.controller] ?? '',
    connectedAt: given[keys.connectedAt] ?? '',
    disconnectedAt: given[keys.disconnectedAt] ?? '',
    foreignAnnotations: foreignKeys(given, names),
    isChecked: own[keys.isChecked] === 'true',
    conditions: Array.isArray(conditions) ? JSON.stringify(conditions) : '',
  }
}

function foreignKeys(given: Readonly<Record<string, string>>, names: MeshNames): readonly string[] {
  const { group, controller, connectedAt, disconnectedAt } = registrationAnnotations(names.domain)
  return [group, controller, connectedAt, disconnectedAt]
    .flatMap((key) => names.keySpellings(key).slice(1))
    .filter((key) => Object.hasOwn(given, key))
}

/** Cuts a WorkloadGroup of the API, whose spec was read already, likewise. */
export function groupData(value: Mapping, spec: Mapping, { group, version }: Pick<EntryPlace, 'group' | 'version'>): WorkloadGroupData | undefined {
  const { namespace, name, uid } = mapping(value.metadata)
  if (![namespace, name, uid].every((part) => typeof part === 'string' && part !== '')) return undefined
  const given = mapping(spec.metadata)
  return {
    ...{ group, version, namespace: textOf(namespace), name: textOf(name), uid: textOf(uid) },
    ...{ labels: textsOf(given.labels), annotations: textsOf(given.annotations), template: mapping(spec.template) },
  }
}

const textsOf = (value: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(mapping(value)).filter((each): each is [string, string] => typeof each[1] === 'string'))
