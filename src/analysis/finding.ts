/** What the analysis of configuration finds: something that is valid by itself and wrong, or without effect, beside what else there is. */

/** How serious a finding is: what is meant does not happen; it may not; for information. */
export type Level = 'error' | 'warning' | 'info'

/** A code: its name, its level, what it says, and what to do. The table of docs/analysis.md has the same rows. */
interface CodeRow {
  readonly name: string
  readonly level: Level
  readonly meaning: string
  readonly advice: string
}

/**
 * The codes of findings (docs/analysis.md). Users suppress and search findings by them. Codes that begin with `IST` have the meaning that other
 * tools for the same kinds give them.
 */
export const codes = {
  IST0001: row('InternalError', 'error', 'an object that could not be analyzed', 'report it with the object; other objects are analyzed'),
  IST0002: row('Deprecated', 'warning', 'a deprecated field or value', 'use the one that the message names'),
  IST0101: row(
    'ReferencedResourceNotFound',
    'error',
    'a host, port, subset, gateway, delegate, Secret, provider or namespace that is not there, or is there and invalid',
    'correct the name, or add what it names',
  ),
  IST0102: row(
    'NamespaceNotInjected',
    'info',
    'a namespace with configuration of the mesh and workloads that get no sidecar',
    'label the namespace, or label it mesh-injection=disabled if that is meant',
  ),
  IST0103: row('PodMissingProxy', 'warning', 'a pod without a sidecar in a namespace with injection', 'have its workload make it anew'),
  IST0104: row(
    'GatewayPortNotOnWorkload',
    'warning',
    'a port of a Gateway that no Service of its workloads has',
    'add the port to the Service, or change it in the Gateway',
  ),
  IST0105: row('ImageMismatch', 'warning', 'a pod whose sidecar has another image than injection gives', 'have its workload make it anew'),
  IST0106: row(
    'SchemaValidationError',
    'error',
    'an object, file or patch that cannot be used, a policy that two files define differently',
    'correct the field',
  ),
  IST0107: row('MisplacedAnnotation', 'warning', 'an annotation on an object of a kind for which it has no effect', 'move it'),
  IST0108: row('UnknownAnnotation', 'warning', 'an annotation of the mesh that does not exist', 'correct its name, or remove it'),
  IST0109: row(
    'ConflictingMeshGatewayVirtualServiceHosts',
    'error',
    'a host that several VirtualServices of the mesh have, where some namespace sees both',
    'put the routes into one VirtualService',
  ),
  IST0110: row('ConflictingSidecarWorkloadSelectors', 'error', 'Sidecars of a namespace that select the same workloads', 'keep one of them'),
  IST0111: row('MultipleSidecarsWithoutWorkloadSelectors', 'error', 'Sidecars of a namespace without a selector', 'keep one of them'),
  IST0112: row(
    'VirtualServiceDestinationPortSelectorRequired',
    'error',
    'a destination without a port, of a service with several',
    'set port.number',
  ),
  IST0113: row(
    'MTLSPolicyConflict',
    'error',
    'a DestinationRule whose TLS mode its workloads do not accept, by their PeerAuthentication',
    'set the mode to MESH_MUTUAL or leave tls out, or change the PeerAuthentication',
  ),
  IST0116: row(
    'DeploymentAssociatedToMultipleServices',
    'warning',
    'a workload port that several Services declare with different protocols',
    'declare the same protocol in all of them',
  ),
  IST0117: row('DeploymentRequiresServiceAssociated', 'warning', 'a workload with a sidecar and ports, and without a Service', 'add a Service'),
  IST0118: row(
    'PortNameIsNotUnderNamingConvention',
    'info',
    'a port of a Service that says no protocol, so that it is detected',
    'set appProtocol, or begin its name with the protocol, such as http-',
  ),
  IST0119: row(
    'JwtFailureDueToInvalidServicePortPrefix',
    'warning',
    'tokens that are required of workloads whose Services have no HTTP port',
    'declare the protocol HTTP for the port',
  ),
  IST0122: row('InvalidRegexp', 'warning', 'a regular expression that no path matches', 'begin it with / or .*'),
  IST0123: row('NamespaceMultipleInjectionLabels', 'warning', 'a namespace with the labels mesh-injection and mesh.io/rev', 'keep one of them'),
  IST0125: row('InvalidAnnotation', 'warning', 'an annotation whose value cannot be used', 'correct the value'),
  IST0126: row(
    'UnknownMeshNetworksServiceRegistry',
    'error',
    'a registry of the networks of the mesh that does not exist',
    'correct fromRegistry, or add the cluster',
  ),
  IST0127: row('NoMatchingWorkloadsFound', 'warning', 'a selector, subset or match that matches no workload', 'correct the labels'),
  IST0128: row(
    'NoServerCertificateVerificationDestinationLevel',
    'error',
    "TLS to a host that verifies nobody's certificate",
    'set caCertificates or credentialName',
  ),
  IST0129: row(
    'NoServerCertificateVerificationPortLevel',
    'warning',
    "TLS to a port that verifies nobody's certificate",
    'set caCertificates or credentialName',
  ),
  IST0130: row('VirtualServiceUnreachableRule', 'warning', 'a route that no request reaches, since one before it takes it', 'change the order'),
  IST0131: row('VirtualServiceIneffectiveMatch', 'info', 'a match that no request reaches, since one before it takes it', 'remove it'),
  IST0132: row(
    'VirtualServiceHostNotFoundInGateway',
    'warning',
    'a host that no server of the named Gateway has',
    'add the host to the Gateway, or correct it',
  ),
  IST0133: row(
    'SchemaWarning',
    'warning',
    'a field without effect, an unknown field or protocol, weights that are no percentages, tries longer than the request, a label for injection that is neither enabled nor disabled, a misspelt label of the mesh, an object that several files define',
    'correct or remove the field',
  ),
  IST0134: row(
    'ServiceEntryAddressesRequired',
    'warning',
    'a TCP port of a ServiceEntry without addresses',
    'set addresses, or the protocol TLS if clients name the host',
  ),
  IST0135: row('DeprecatedAnnotation', 'info', 'a deprecated annotation', 'remove it, or use the one that the message names'),
  IST0136: row('AlphaAnnotation', 'info', 'an annotation that may change with any release', 'look at the release notes before upgrades'),
  MESH0001: row('FileNotRead', 'warning', 'a file of a directory whose name does not end in .yaml, .yml or .json', 'rename it, or move it elsewhere'),
  MESH0002: row(
    'EndpointsNotReached',
    'warning',
    "endpoints at the caller's own machine, which proxies of other namespaces do not get",
    'give an address that means the same machine for every caller, or set exportTo to ["."]',
  ),
  MESH0003: row('UnknownEnvoyType', 'warning', 'an EnvoyFilter with a type that Envoy does not have', 'correct the type'),
  MESH0004: row(
    'HostClaimedTwice',
    'warning',
    'a host of two ServiceEntries or DestinationRules, or of one and a Service, of which some part does not count',
    'put them into one, or restrict exportTo',
  ),
  MESH0006: row(
    'GatewayPortConflict',
    'error',
    'servers of one or more Gateways of the same workloads that share a port and do not fit together, such as HTTP and HTTPS, or a host twice',
    'give them different ports or hosts',
  ),
  MESH0007: row('SelectedTwice', 'warning', 'a PeerAuthentication for the same workloads as an older one, which counts', 'keep one of them'),
  MESH0008: row(
    'PortNotOnWorkload',
    'warning',
    'a port of a Service or policy that no container of its workloads declares, where another port may be meant',
    'use the port of the workload, or declare it',
  ),
  MESH0009: row(
    'RoutesOfAnotherProtocol',
    'warning',
    'routes of a VirtualService at ports or servers whose connections do not take them, such as http routes at a TCP port, or tls routes where a Gateway terminates TLS',
    'write the routes of the protocol, or declare the other protocol',
  ),
  MESH0010: row(
    'KeysNotFetched',
    'warning',
    'keys of tokens that are not fetched: from an address that is not allowed, or of an issuer that is no URL',
    'set jwksUri to an address that may be fetched from, or jwks',
  ),
  MESH0011: row(
    'RuleNeverMatches',
    'error',
    'a rule of an AuthorizationPolicy, or a match of a VirtualService, that asks for what no request has, such as a principal in another form, a method in small letters, a path without a slash, an identity without mutual TLS, a path at a TCP port',
    'correct the value, or add what it needs',
  ),
  MESH0012: row(
    'HostOfNoService',
    'warning',
    'a host of a VirtualService of the mesh that only a Service could have and none has, or that is written without its domain',
    'correct the host, or add the Service',
  ),
  MESH0013: row(
    'HostNearlyOfService',
    'info',
    'a host of a VirtualService of the mesh that no service has and that differs in one label from that of a ServiceEntry',
    'correct the host, if that one is meant',
  ),
  MESH0014: row(
    'FixedEndpointsMissing',
    'warning',
    'a ServiceEntry with the resolution STATIC that has neither endpoints nor a selector',
    'add endpoints, or a workloadSelector',
  ),
  MESH0015: row(
    'EntryNotSelected',
    'info',
    'a WorkloadEntry or WorkloadGroup that no ServiceEntry and no Service selects',
    'correct its labels or a selector, unless it only calls others',
  ),
  MESH0016: row(
    'NotPassedOn',
    'info',
    'services that callers of other networks do not reach, because a gateway of the network does not pass them on',
    'add their hosts to the Gateway, or export them to the namespace of the gateway, unless they are meant for their own network',
  ),
  MESH0005: row('NotRead', 'warning', 'a kind of the cluster that could not be read, so that nothing is said about it', 'permit get and list of it'),
} as const satisfies Readonly<Record<string, CodeRow>>

function row(name: string, level: 'error', meaning: string, advice: string): CodeRow & { level: 'error' }
function row(name: string, level: 'warning', meaning: string, advice: string): CodeRow & { level: 'warning' }
function row(name: string, level: 'info', meaning: string, advice: string): CodeRow & { level: 'info' }
function row(name: string, level: Level, meaning: string, advice: string): CodeRow {
  return { name, level, meaning, advice }
}

/** The code of a finding. */
export type Code = keyof typeof codes

/** One finding. */
export interface Finding {
  readonly code: Code
  /** The key of the object: `<Kind>/<namespace>/<name>` ({@link import('../config/kinds.ts').configKey}). */
  readonly object: string
  /** Where in the object, `spec.http[0].route[1].destination.host`; empty: the whole of it. */
  readonly path: string
  /** A sentence without its full stop: what is wrong, what follows, and what to do. */
  readonly message: string
}

/** Takes findings of one object. `near`: the end of the message that suggests a name, which is worked out for the first findings only. */
export type Tell = (code: Code, path: string, message: string, near?: () => string) => void

/** The findings of one object: of each code so many, and so many with a suggestion, which costs a comparison with every name that there is. */
const bounds = { alike: 50, suggestions: 10 }

/** Collects the findings of one object. However many mistakes it has, they take little room and time. */
export class Findings {
  readonly #object: string
  readonly #found: Finding[] = []
  readonly #counts = new Map<Code, number>()
  #suggestions = 0

  /** `object`: the key of the object. */
  constructor(object: string) {
    this.#object = object
  }

  readonly tell: Tell = (code, path, message, near) => {
    const count = (this.#counts.get(code) ?? 0) + 1
    this.#counts.set(code, count)
    if (count > bounds.alike) return
    const end = near && ++this.#suggestions <= bounds.suggestions ? near() : ''
    this.#found.push({ code, object: this.#object, path, message: message + end })
  }

  /** Returns all of them; of a code with more than are told, the last one has their number. */
  all(): Finding[] {
    const rest = [...this.#counts].flatMap(([code, count]): Finding[] => {
      const more = count - bounds.alike
      return more > 0 ? [{ code, object: this.#object, path: '', message: `${more} more of this code in the object are not listed` }] : []
    })
    return [...this.#found, ...rest]
  }
}
