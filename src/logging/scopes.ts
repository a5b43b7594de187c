/** The log scopes of both binaries (docs/reference.md): what is logged to each, or why nothing is. */

/** A log scope. One with `without` exists because the specification names it. */
export type Scope = { readonly about: string } | { readonly without: string }

const discovery = 'an agent has no such part'

/** Scopes of `pilot-discovery`. */
export const discoveryScopeTable = {
  ads: { about: 'connections of proxies, their streams and NACKs' },
  adsc: { without: 'what the client of other discovery servers says is in the scope mcp' },
  analysis: { about: 'mistakes in configuration that come and go (PILOT_ENABLE_ANALYSIS)' },
  authn: { about: 'tokens of workloads, and who they name' },
  authorization: { about: 'policies that cannot be enforced as they are written' },
  ca: { about: 'the certificate authority: its root, ledger and rotation' },
  cache: { about: 'Secrets of files' },
  default: { about: 'the process, its settings, actors, addresses and pages' },
  klog: { about: 'connections and requests to the API server of the orchestrator' },
  mcp: { about: 'the connection to other discovery servers, whose objects are used' },
  model: { about: 'faults of configuration that are found while resources are made, and conflicts' },
  orch: { about: 'the connection to the orchestrator, and objects of it that cannot be used' },
  pkica: { about: 'failures of signing' },
  processing: { about: 'what changes of configuration did, and pushes' },
  resource: { about: 'objects of files that are added, changed and removed' },
  rootcertrotator: { about: 'the check of the root and its rotation' },
  secretcontroller: { about: 'remote secrets, and the clusters that they name' },
  serverca: { about: 'certificates that were signed, and refused requests' },
  source: { about: 'configuration files, settings files, the lists of followed clusters and the Mock registry' },
  spiffe: { about: 'roots of other trust domains' },
  status: { about: 'reports of proxies on their state that cannot be used, and the status of configuration objects' },
  validation: { about: 'faults of documents, and fields without effect' },
  validationController: { about: 'the configuration of the validating webhook' },
  validationServer: { about: 'webhooks: their port, reviews that failed, and objects that were denied' },
  wle: { about: 'workloads that register themselves, and the health of workloads' },
} as const satisfies Record<string, Scope>

/** Scopes of `pilot-agent`. */
export const agentScopeTable = {
  ads: { without: discovery },
  adsc: { without: discovery },
  authn: { without: discovery },
  authorization: { without: discovery },
  ca: { without: discovery },
  cache: { about: 'secrets in files' },
  citadelclient: { about: 'requests for certificates' },
  cloudca: { without: 'the client of the provider CloudCA is that of citadelclient' },
  cloudcred: { about: 'tokens of the metadata server of a cloud machine' },
  default: { about: 'the process, its settings, actors and proxy' },
  dns: { about: 'the DNS server' },
  healthcheck: { about: 'probes of workload and proxy' },
  klog: { without: 'an agent has no orchestrator client' },
  mockcred: { without: 'there is no fetcher of made-up tokens' },
  model: { without: discovery },
  sds: { about: 'the SDS server: streams of the proxy and secrets' },
  spiffe: { without: discovery },
  stsclient: { about: 'exchanges of tokens' },
  stsserver: { about: 'requests for tokens' },
  token: { about: 'tokens that discovery makes for agents of its machine' },
  validation: { without: discovery },
  validationController: { without: discovery },
  wle: { without: discovery },
  xdsproxy: { about: 'the relay between proxy and discovery' },
} as const satisfies Record<string, Scope>
