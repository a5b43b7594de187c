/** The annotations of pods that injection follows, each with its check (docs/injection.md, N4). */
import { isIpOrCidr } from '../config/addresses.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { InjectionError } from './pod.ts'

/** Returns why the value of an annotation cannot be used; undefined when it can. */
type Check = (value: string) => string | undefined

const pattern =
  (form: RegExp, what: string): Check =>
  (value) =>
    form.test(value) ? undefined : `is not ${what}`

const items = (value: string): string[] => value.split(',').map((item) => item.trim())

/** A list of items with commas. Empty text has none. */
const listOf =
  (isItem: (item: string) => boolean, what: string, isWildcard = false): Check =>
  (value) => {
    if (value.trim() === '' || (isWildcard && value.trim() === '*')) return undefined
    const wrong = items(value).find((item) => !isItem(item))
    if (wrong === undefined) return undefined
    return wrong === value ? `is not ${what}` : `${JSON.stringify(wrong.slice(0, 60))} is not ${what}`
  }

const isNumber = (text: string, least: number, most: number): boolean => /^\d{1,10}$/.test(text) && Number(text) >= least && Number(text) <= most
const isPort = (item: string): boolean => isNumber(item, 1, 65_535)
const number =
  (least: number, most: number): Check =>
  (value) =>
    isNumber(value, least, most) ? undefined : `is not a whole number from ${least} to ${most}`

const ports = (isWildcard = false): Check => listOf(isPort, 'a port from 1 to 65535', isWildcard)
const ranges = (isWildcard = false): Check => listOf((item) => item.includes('/') && isIpOrCidr(item), 'a range such as 10.0.0.0/8', isWildcard)
const boolean = pattern(/^(1|t|T|TRUE|true|True|0|f|F|FALSE|false|False)$/, 'true or false')
const quantity = pattern(
  /^\+?(\d{1,15}(\.\d{0,9})?|\.\d{1,9})(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?\d{1,2})?$/,
  'a quantity such as 100m or 128Mi',
)
const level = '(trace|debug|info|warn|warning|error|critical|off|none|fatal)'
const objectName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/
const labelName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** A JSON mapping from names of volumes to mappings. */
const volumes: Check = (value) => {
  let parsed: unknown
  try {
    parsed = JSON.parse(value)
  } catch {
    return 'is not JSON'
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return 'is not a JSON object by names of volumes'
  for (const [name, volume] of Object.entries(parsed)) {
    if (!labelName.test(name)) return `${JSON.stringify(name.slice(0, 60))} is not the name of a volume`
    if (typeof volume !== 'object' || volume === null || Array.isArray(volume)) return `${JSON.stringify(name)} is not an object`
  }
  return undefined
}

const anything: Check = () => undefined

/** The checks by the annotation, without the domain of its prefix. */
const checks: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  'sidecar.': {
    inject: anything,
    interceptionMode: pattern(/^(REDIRECT|TPROXY|NONE)$/, 'REDIRECT, TPROXY or NONE'),
    proxyImage: pattern(/^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}$/, 'the name of an image'),
    proxyCPU: quantity,
    proxyCPULimit: quantity,
    proxyMemory: quantity,
    proxyMemoryLimit: quantity,
    logLevel: pattern(new RegExp(`^${level}$`), 'a level such as debug, info or warning'),
    componentLogLevel: pattern(new RegExp(`^[A-Za-z0-9_.]+:${level}(,[A-Za-z0-9_.]+:${level})*$`), 'a list such as misc:error,http:debug'),
    agentLogLevel: pattern(new RegExp(`^([A-Za-z0-9_.-]+:)?${level}(,[A-Za-z0-9_.-]+:${level})*$`), 'a list such as default:info,ca:debug'),
    bootstrapOverride: pattern(objectName, 'the name of a ConfigMap'),
    userVolume: volumes,
    userVolumeMount: volumes,
    capNetBindService: boolean,
    rewriteAppHTTPProbers: boolean,
    enableCoreDump: boolean,
  },
  'traffic.sidecar.': {
    includeOutboundIPRanges: ranges(true),
    excludeOutboundIPRanges: ranges(),
    includeInboundPorts: ports(true),
    excludeInboundPorts: ports(),
    includeOutboundPorts: ports(),
    excludeOutboundPorts: ports(),
    kubevirtInterfaces: listOf((item) => /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}$/.test(item), 'the name of an interface'),
  },
  'status.sidecar.': { port: number(0, 65_535) },
  'readiness.status.sidecar.': {
    initialDelaySeconds: number(0, 2_147_483_647),
    periodSeconds: number(1, 2_147_483_647),
    failureThreshold: number(1, 2_147_483_647),
  },
  'inject.': { templates: listOf((item) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/.test(item), 'the name of a template') },
  'prometheus.': { 'merge-metrics': boolean },
}

const table: ReadonlyMap<string, Check> = new Map(
  Object.entries(checks).flatMap(([prefix, group]) => Object.entries(group).map(([name, check]) => [`${prefix}/${name}`, check] as const)),
)

/** The annotations of the table, without the domain of their prefix: `sidecar./inject`. For documents and tests. */
export const checkedAnnotations: readonly string[] = [...table.keys()]

/** Returns the key of an annotation or label in the mesh form: `meshKey(names, 'sidecar', 'inject')` -> `sidecar.mesh.io/inject`. */
export const meshKey = (names: MeshNames, prefix: string, name: string): string => `${prefix === '' ? '' : `${prefix}.`}${names.domain}/${name}`

/**
 * Checks the annotations of a pod that are in the table, in both spellings. Throws an {@link InjectionError} that names all annotations that
 * cannot be used, with their values and the reasons.
 */
export function checkAnnotations(annotations: Readonly<Record<string, string>>, names: MeshNames): void {
  const faults: string[] = []
  for (const [key, value] of Object.entries(annotations)) {
    const reason = annotationFault(key, value, names)
    if (reason !== undefined) faults.push(`annotation ${key}: ${JSON.stringify(value.slice(0, 100))}: ${reason}`)
  }
  if (faults.length > 0) throw new InjectionError(faults.join('; '))
}

/** Returns why the value of an annotation of the table, in either spelling, cannot be used; undefined when it can, and for other annotations. */
export function annotationFault(key: string, value: string, names: MeshNames): string | undefined {
  const canonical = names.canonicalKey(key)
  const slash = canonical.indexOf('/')
  const owner = canonical.slice(0, Math.max(slash, 0))
  if (!owner.endsWith(`.${names.domain}`)) return undefined
  const check = table.get(owner.slice(0, -names.domain.length) + canonical.slice(slash))
  return value.length > 65_536 ? 'is longer than 65536 characters' : check?.(value)
}

/** The key of an annotation or label as it is written in a map, the mesh form first; the mesh form where there is none. */
export const writtenKey = (map: Readonly<Record<string, string>> | undefined, key: string, names: MeshNames): string =>
  names.keySpellings(key).find((spelling) => map && Object.hasOwn(map, spelling)) ?? key

/** The value of an annotation or label in either spelling, the mesh form first; undefined where there is none. */
export function givenIn(map: Readonly<Record<string, string>> | undefined, key: string, names: MeshNames): string | undefined {
  for (const spelling of names.keySpellings(key)) if (map && Object.hasOwn(map, spelling)) return map[spelling]
  return undefined
}

/** Whether the value of a boolean annotation is true. */
export const isOn = (value: string): boolean => /^(1|t|true)$/i.test(value)
