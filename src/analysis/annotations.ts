/** Finds annotations of the mesh that do not exist, stand on the wrong object, are deprecated, may change, or have unusable values. */
import { annotationFault, checkedAnnotations } from '../inject/annotations.ts'
import { ofTools, ownName } from '../inject/labels.ts'
import { fieldText, readProxySettings } from '../inject/proxy-settings.ts'
import { suggestion } from '../model/edit-distance.ts'
import { codes, type Tell } from './finding.ts'
import type { World } from './world.ts'

interface Annotation {
  /** The kinds of objects for which it has an effect; undefined: any. */
  readonly on: readonly string[] | undefined
  /** What to use instead of a deprecated one. */
  readonly instead?: string
  readonly isAlpha?: true
}

const pod: Annotation = { on: ['Pod'] }
const alphaOfPod: Annotation = { on: ['Pod'], isAlpha: true }
const service: Annotation = { on: ['Service'] }
const entry: Annotation = { on: ['WorkloadEntry'] }
const any: Annotation = { on: undefined }
const proxyConfig = 'proxy.mesh.io/config'
const unread = 'nothing: it has no effect any more'

/** The annotations of the mesh, without the domain of their prefix: `sidecar./inject`, `/rev`. */
const annotations: ReadonlyMap<string, Annotation> = new Map<string, Annotation>([
  ...checkedAnnotations.map((name): [string, Annotation] => [name, name.startsWith('inject.') || name.includes('kubevirt') ? alphaOfPod : pod]),
  ...Object.entries({
    'sidecar./status': pod,
    'sidecar./discoveryAddress': { on: ['Pod'], instead: 'proxy.mesh.io/config with discoveryAddress' },
    'sidecar./controlPlaneAuthPolicy': { on: ['Pod'], instead: unread },
    'sidecar./extraStatTags': alphaOfPod,
    'sidecar./statsInclusionPrefixes': { on: ['Pod'], instead: 'proxy.mesh.io/config with proxyStatsMatcher' },
    'sidecar./statsInclusionSuffixes': { on: ['Pod'], instead: 'proxy.mesh.io/config with proxyStatsMatcher' },
    'sidecar./statsInclusionRegexps': { on: ['Pod'], instead: 'proxy.mesh.io/config with proxyStatsMatcher' },
    'sidecar./statsHistogramBuckets': alphaOfPod,
    'sidecar./statsCompression': alphaOfPod,
    'sidecar./nativeSidecar': pod,
    'traffic.sidecar./excludeInterfaces': alphaOfPod,
    'readiness.status.sidecar./applicationPorts': pod,
    'proxy./config': pod,
    'proxy./overrides': alphaOfPod,
    'proxy./health-checks-enabled': entry,
    '/autoRegistrationGroup': entry,
    '/workloadController': entry,
    '/connectedAt': entry,
    '/disconnectedAt': entry,
    'security./autoRegistration': entry,
    '/rev': any,
    '/dry-run': { on: ['AuthorizationPolicy'] },
    'security./dry-run': { on: ['AuthorizationPolicy'] },
    'networking./exportTo': service,
    'networking./traffic-distribution': { on: ['Service', 'Namespace'] },
    'networking./service-type': { on: ['Gateway'] },
    'networking./address-type': { on: ['Gateway'] },
    'traffic./nodeSelector': service,
    'security./service-accounts': service,
    'alpha./kubernetes-serviceaccounts': { on: ['Service'], isAlpha: true },
    'alpha./canonical-serviceaccounts': { on: ['Service'], isAlpha: true },
    'alpha./identity': { on: ['Pod'], instead: unread },
    'topology./controlPlaneClusters': { on: ['Namespace'], isAlpha: true },
    'galley./analyze-suppress': any,
  } satisfies Record<string, Annotation>),
])

/** Tells what is wrong with the annotations of an object of a kind; those of templates are annotations of Pods. `at`: the path of its metadata. */
export function analyzeAnnotations(kind: string, given: Readonly<Record<string, string>>, at: string, { names }: World, tell: Tell): void {
  for (const [key, value] of Object.entries(given)) {
    const canonical = names.canonicalKey(key)
    const name = ownName(canonical, names.domain)
    if (name === undefined || ofTools.has(name.slice(0, name.indexOf('/')))) continue
    const path = `${at}.annotations[${key}]`
    // A group that is written with the alias stays in what is suggested.
    const spelled = (other: string): string => names.keySpellings(other)[key === canonical ? 0 : 1] ?? other
    const known = annotations.get(name)
    if (!known) {
      const near = suggestion(
        key,
        [...annotations.keys()].map((each) => spelled(each.replace('/', `${names.domain}/`))),
      )
      tell('IST0108', path, `there is no such annotation, so it has no effect${near}`)
      continue
    }
    const { on, instead, isAlpha } = known
    if (on && !on.includes(kind)) tell('IST0107', path, `it has no effect on a ${kind}: it belongs on a ${on.join(' or ')}${forTemplate(kind, on)}`)
    if (instead !== undefined) tell('IST0135', path, `it is deprecated: use ${instead.replace(proxyConfig, spelled(`proxy.${names.domain}/config`))}`)
    if (isAlpha) tell('IST0136', path, 'it may change or go with any release')
    if (name === 'sidecar./inject' && !/^(y|yes|true|on|n|no|false|off|)$/i.test(value))
      tell('IST0125', path, `${JSON.stringify(value.slice(0, 100))} is neither true nor false, and counts as false`)
    const fault = annotationFault(key, value, names)
    if (fault !== undefined) tell('IST0125', path, `${JSON.stringify(value.slice(0, 100))} ${fault}`)
    if (name === 'proxy./config') checkProxySettings(value, path, tell)
    if (name === 'galley./analyze-suppress') checkCodes(value, path, tell)
  }
}

/** Tells settings of the proxy that cannot be used, and fields that are unknown or have no effect. */
function checkProxySettings(text: string, path: string, tell: Tell): void {
  const read = readProxySettings(text)
  if ('fault' in read) tell('IST0125', path, `${JSON.stringify(text.slice(0, 100))}: ${read.fault}`)
  else for (const remark of read.remarks) tell('IST0133', path, fieldText(remark))
}

/** Tells what is no code of findings, so that nothing is suppressed by it. Other tools have more codes that begin with `IST` than there are here. */
function checkCodes(value: string, path: string, tell: Tell): void {
  const isCode = (text: string) => text === '' || text === '*' || Object.hasOwn(codes, text) || /^IST\d{4}$/.test(text)
  const unknown = value
    .split(',')
    .map((each) => each.trim())
    .find((each) => !isCode(each))
  if (unknown === undefined) return
  tell('IST0125', path, `${JSON.stringify(unknown.slice(0, 100))} is no code of a finding${suggestion(unknown, Object.keys(codes))}`)
}

const templated = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job', 'CronJob'])
const forTemplate = (kind: string, on: readonly string[]): string => (templated.has(kind) && on.includes('Pod') ? ', in spec.template.metadata' : '')
