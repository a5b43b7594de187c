/**
 * The checks that make a policy stricter than in an earlier release, or than in the reference. Each can be disabled by name
 * (`MESH_POLICY_OPT_OUTS`). The objects that a check affects are listed at `/debug/policyz` and in the log at start (docs/operation.md,
 * "Upgrades").
 */
import type { ConfigObject } from '../../protocols/data.ts'
import { contain } from '../model/faults.ts'
import { isIp, leadsToCaller } from './addresses.ts'
import { headerOutputs } from './header-outputs.ts'
import type { AuthorizationPolicySpec } from './kinds/authorization-policy.ts'
import type { RequestAuthenticationSpec } from './kinds/request-authentication.ts'
import type { ServiceEntrySpec } from './kinds/service-entry.ts'
import type { SidecarSpec } from './kinds/sidecar.ts'
import type { WorkloadEntrySpec } from './kinds/workload-entry.ts'
import { configKey, type KindName } from './kinds.ts'
import type { OptOuts, PolicyCheckName } from './opt-outs.ts'
import { ownPorts } from './own-ports.ts'
import { ruleChecks } from './rule-checks.ts'
import { isStandIn } from './stand-in.ts'

/** A check that makes policies stricter. */
export interface PolicyCheck {
  /** The stricter behaviour, as a sentence. */
  readonly stricter: string
  /** Kinds of the objects that the check may affect. Secrets are no configuration objects; {@link CheckedSecret} stands for one. */
  readonly kinds: readonly (KindName | 'Secret')[]
  /**
   * Returns the paths of the fields that the check treats differently than before, `spec.rules[0].to[0].operation.hosts[1]`; none when it
   * does not affect the object. The object may be invalid, so fields of the spec may be missing even if the kind requires them.
   */
  concerns(object: ConfigObject): string[]
}

const policyKinds: readonly KindName[] = ['AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication']

/** The table. Each check is disabled where it is implemented, by `optOuts` of a document's report or of the snapshot's settings. */
export const policyChecks: Readonly<Record<PolicyCheckName, PolicyCheck>> = {
  'endpoint-addresses': {
    stricter:
      'endpoints with loopback or link-local addresses are visible only to callers of their own namespace, and none leads to a port of the proxy or its agent there; services resolved by DNS do not use these ports',
    kinds: ['ServiceEntry', 'WorkloadEntry', 'Sidecar'],
    concerns: ({ kind, spec }) => {
      if (kind === 'WorkloadEntry') {
        const { address = '', ports } = spec as WorkloadEntrySpec
        if (leadsToCaller(address)) return ['spec.address']
        return isIp(address) ? [] : ownPortsIn(ports, 'spec.ports')
      }
      if (kind === 'ServiceEntry') return [...endpointAddresses(spec as ServiceEntrySpec, leadsToCaller), ...resolvedPorts(spec as ServiceEntrySpec)]
      return ((spec as SidecarSpec).ingress ?? []).flatMap(({ defaultEndpoint }, index) =>
        defaultEndpoint !== undefined && /:150\d\d$|\/(SDS|XDS)$/.test(defaultEndpoint) ? [`spec.ingress[${index}].defaultEndpoint`] : [],
      )
    },
  },
  'header-underscores': {
    stricter: 'requests lose headers whose names differ from those that policies set or judge only in hyphens and underscores',
    kinds: ['RequestAuthentication', 'AuthorizationPolicy'],
    concerns: ({ spec }) => {
      const { jwtRules, rules } = spec as RequestAuthenticationSpec & AuthorizationPolicySpec
      const outputs = (jwtRules ?? []).flatMap((rule, index) => (headerOutputs(rule).some(hasSpellings) ? [`spec.jwtRules[${index}]`] : []))
      const judged = (rules ?? []).flatMap(({ when }, rule) =>
        (when ?? []).flatMap(({ key }, index) =>
          key.startsWith('request.headers[') && hasSpellings(key) ? [`spec.rules[${rule}].when[${index}].key`] : [],
        ),
      )
      return [...outputs, ...judged]
    },
  },
  'file-readability': {
    stricter:
      'policies that are not valid YAML, whose kind or group is misspelled, or that are defined twice and differently deny everything that their strictest interpretation could deny',
    kinds: policyKinds,
    // The version is empty for stand-ins made of documents that could not be read, or of conflicting documents.
    concerns: ({ version }) => (version === '' ? ['metadata.name'] : []),
  },
  'own-namespace-instances': {
    stricter: 'the ports, protocols and labels of a workload follow from endpoints of services of its own namespace alone',
    kinds: ['ServiceEntry'],
    // External services have no workloads of the mesh as endpoints.
    concerns: ({ spec }) => ((spec as ServiceEntrySpec).location === 'MESH_INTERNAL' ? endpointAddresses(spec as ServiceEntrySpec, isIp) : []),
  },
  'policy-namespaces': {
    stricter: 'policies without a namespace, or with one that cannot be read, apply in all namespaces, in their strictest interpretation',
    kinds: policyKinds,
    concerns: ({ namespace }) => (namespace === '' ? ['metadata.namespace'] : []),
  },
  'secret-accounts': {
    stricter: 'a Secret with a private key goes to gateways of the service accounts that its annotation names, without the annotation to none',
    kinds: ['Secret'],
    concerns: ({ spec }) => {
      const { hasKey, serviceAccounts } = spec as CheckedSecret
      return hasKey && serviceAccounts === undefined ? ['metadata.annotations'] : []
    },
  },
  'undeclared-ports': {
    stricter: 'at workloads whose policies judge requests, ports without a declared protocol and ports of no service accept HTTP only',
    kinds: ['RequestAuthentication', 'AuthorizationPolicy'],
    concerns: ({ spec }) => {
      const { jwtRules, action } = spec as RequestAuthenticationSpec & AuthorizationPolicySpec
      return [...(jwtRules?.length ? ['spec.jwtRules'] : []), ...(action === 'CUSTOM' ? ['spec.action'] : [])]
    },
  },
  ...ruleChecks,
}

/** What the checks look at of a Secret, as the spec of an object of this kind. */
export interface CheckedSecret {
  readonly hasKey: boolean
  /** The service accounts that its annotation names; undefined without one. */
  readonly serviceAccounts: readonly string[] | undefined
}

/** Returns the object that stands for a Secret in {@link checkedPolicies}. */
export function checkedSecret(
  { namespace, name, place }: Pick<ConfigObject, 'namespace' | 'name' | 'place'>,
  spec: CheckedSecret,
): ConfigObject<CheckedSecret> {
  const origin = { source: '', cluster: '', uid: '', resourceVersion: '', place }
  return { kind: 'Secret', group: '', version: 'v1', namespace, name, labels: {}, annotations: {}, createdAt: 0, generation: 0, spec, ...origin }
}

const hasSpellings = (name: string): boolean => /[-_]/.test(name)

/**
 * Returns the paths of the endpoint addresses of an entry that are concerned. The endpoints of an entry without any may be its hosts,
 * resolved by DNS.
 */
function endpointAddresses({ hosts, endpoints, resolution }: ServiceEntrySpec, isConcerned: (address: string) => boolean): string[] {
  const paths = (list: readonly (string | undefined)[], path: (index: number) => string) =>
    list.flatMap((address, index) => (address !== undefined && isConcerned(address) ? [path(index)] : []))
  if (endpoints?.length)
    return paths(
      endpoints.map(({ address }) => address),
      (index) => `spec.endpoints[${index}].address`,
    )
  return resolution?.startsWith('DNS') ? paths(hosts, (index) => `spec.hosts[${index}]`) : []
}

/** Returns the paths of the ports of proxy or agent that an entry resolved by DNS names. */
function resolvedPorts({ ports, endpoints, resolution }: ServiceEntrySpec): string[] {
  if (!resolution?.startsWith('DNS')) return []
  const isOwn = (port: number | undefined) => port !== undefined && ownPorts.has(port)
  const declared = (ports ?? []).flatMap(({ number, targetPort }, index) =>
    isOwn(targetPort || number) ? [`spec.ports[${index}].${targetPort ? 'targetPort' : 'number'}`] : [],
  )
  return [...declared, ...(endpoints ?? []).flatMap((endpoint, index) => ownPortsIn(endpoint.ports, `spec.endpoints[${index}].ports`))]
}

/** Returns the paths of those ports of an endpoint that are ports of proxy or agent. */
function ownPortsIn(ports: Readonly<Record<string, number>> | undefined, path: string): string[] {
  return Object.entries(ports ?? {}).flatMap(([name, port]) => (ownPorts.has(port) ? [`${path}.${name}`] : []))
}

/** Returns a warning for each disabled check. */
export function optOutWarnings(optOuts: OptOuts): string[] {
  return Object.entries<PolicyCheck>(policyChecks)
    .filter(([name]) => optOuts.has(name as PolicyCheckName))
    .map(([name, { stricter }]) => `policy check ${name} is disabled (MESH_POLICY_OPT_OUTS), so this does not hold: ${stricter}`)
}

/** The objects that a check affects. */
export interface CheckedPolicies {
  readonly check: string
  readonly stricter: string
  readonly optedOut: boolean
  readonly objects: readonly {
    readonly kind: string
    readonly namespace: string
    readonly name: string
    readonly place: string
    readonly fields: readonly string[]
  }[]
}

/** Applies each check to all objects, including invalid ones. */
export function checkedPolicies(
  objects: readonly ConfigObject[],
  optOuts: ReadonlySet<string>,
  checks: Readonly<Record<string, PolicyCheck>> = policyChecks,
): CheckedPolicies[] {
  return Object.entries(checks).map(([check, { stricter, kinds, concerns }]) => ({
    check,
    stricter,
    optedOut: optOuts.has(check),
    objects: objects
      .filter(({ kind }) => (kinds as readonly string[]).includes(kind))
      .map((object) => {
        const { kind, namespace, name, place } = object
        const read = isStandIn(object) ? { ...object, spec: object.spec.given ?? {} } : object
        // An invalid spec may have any structure.
        const fields = contain(
          () => concerns(read),
          () => [],
        )
        return { kind, namespace, name, place, fields }
      })
      .filter(({ fields }) => fields.length > 0),
  }))
}

/** The maximum number of objects that a log line names. */
const named = 5

/** Returns a log line for each check that affects objects. */
export function checkedPolicyLines(checked: readonly CheckedPolicies[]): string[] {
  return checked.flatMap(({ check, stricter, optedOut, objects }) => {
    if (objects.length === 0) return []
    const first = objects.slice(0, named).map(({ place, fields, ...object }) => `${configKey(object)} (${place}: ${shortened(fields)})`)
    const more = objects.length > named ? ` and ${objects.length - named} more` : ''
    const state = optedOut ? 'is disabled' : 'is in force'
    return `policy check ${check} ${state} and concerns ${first.join(', ')}${more}: ${stricter}; /debug/policyz lists all of them, MESH_POLICY_OPT_OUTS=${check} disables the check`
  })
}

/** Formats the first fields of an object, and the number of further ones. */
const shortened = (fields: readonly string[]): string =>
  `${fields.slice(0, 3).join(', ')}${fields.length > 3 ? ` and ${fields.length - 3} more` : ''}`
