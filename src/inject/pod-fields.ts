/** The fields of a pod, by which misspelt ones in the output of templates are found. `test/template/merge.test.ts` holds them to the orchestrator's types. */
import { isMapping } from '../config/shape.ts'
import { suggestion } from '../model/edit-distance.ts'

const pod: readonly string[] = ['apiVersion', 'kind', 'metadata', 'spec', 'status']

/** The fields of the specification of a pod. */
export const podSpecFields: readonly string[] = [
  ...['activeDeadlineSeconds', 'affinity', 'automountServiceAccountToken', 'containers', 'dnsConfig', 'dnsPolicy', 'enableServiceLinks'],
  ...['ephemeralContainers', 'evictionResponders', 'hostAliases', 'hostIPC', 'hostNetwork', 'hostPID', 'hostUsers', 'hostname', 'hostnameOverride'],
  ...['imagePullSecrets', 'initContainers', 'nodeName', 'nodeSelector', 'os', 'overhead', 'preemptionPolicy', 'priority', 'priorityClassName'],
  ...['readinessGates', 'resourceClaims', 'resources', 'restartPolicy', 'runtimeClassName', 'schedulerName', 'schedulingGates', 'schedulingGroup'],
  ...['securityContext', 'serviceAccount', 'serviceAccountName', 'setHostnameAsFQDN', 'shareProcessNamespace', 'subdomain'],
  ...['terminationGracePeriodSeconds', 'tolerations', 'topologySpreadConstraints', 'volumes'],
]

const known = { '': new Set(pod), spec: new Set(podSpecFields) } as const

/** The most unknown fields that are told of one output. */
const mostUnknown = 10

/** Says which fields of a part of a pod are unknown, at its top and in its specification. Directives of the merge begin with `$`. */
export function unknownPodFields(part: Readonly<Record<string, unknown>>): string[] {
  const at = (value: unknown, path: keyof typeof known): string[] =>
    isMapping(value)
      ? Object.keys(value)
          .filter((field) => !field.startsWith('$') && !known[path].has(field))
          .map((field) => {
            const near = field.length <= 64 ? suggestion(field, known[path]) : ''
            return `unknown field ${path === '' ? '' : `${path}.`}${field.slice(0, 100).toWellFormed()}${near}`
          })
      : []
  return [...at(part, ''), ...at(part.spec, 'spec')].slice(0, mostUnknown)
}
