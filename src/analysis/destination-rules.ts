/** Finds DestinationRules of hosts that are not there, subsets without workloads, and TLS that nobody verifies or accepts. */
import type { ConfigObject, Service } from '../../protocols/data.ts'
import type { DestinationRuleSpec, TrafficPolicy } from '../config/kinds/destination-rule.ts'
import { completeHost } from '../model/match.ts'
import { rulesOf } from './claims.ts'
import { checkRuleSecrets } from './credentials.ts'
import type { Tell } from './finding.ts'
import { hostSuggestion } from './near-hosts.ts'
import { peerMode } from './peer-modes.ts'
import { isAbsent, isInjected, mayMeet, selectorOf, servicesOf, someWorkload } from './references.ts'
import type { World } from './world.ts'

type Rule = ConfigObject<DestinationRuleSpec>

/** Tells what is wrong with a DestinationRule. */
export function analyzeDestinationRule(object: Rule, world: World, tell: Tell): void {
  const { namespace, spec } = object
  const host = completeHost(spec.host, namespace, world.domain)
  const services = servicesOf(host, world)
  if (services.length === 0 && !host.startsWith('*') && isAbsent(host, world))
    tell('IST0101', 'spec.host', `there is no service ${host}, so the rule has no effect`, () => hostSuggestion(spec.host, namespace, world))
  for (const [index, { name, labels, trafficPolicy }] of (spec.subsets ?? []).entries()) {
    for (const { selector, namespace: owner } of services)
      if (labels && Object.keys(labels).length > 0 && selector && someWorkload({ ...selector, ...labels }, owner, world) === false)
        tell('IST0127', `spec.subsets[${index}].labels`, `no workload of ${host} has these labels, so the subset ${name} has no endpoints`)
    checkTls(trafficPolicy, `spec.subsets[${index}].trafficPolicy`, tell)
    checkPortLevels(trafficPolicy, `spec.subsets[${index}].trafficPolicy`, services, tell)
  }
  checkTls(spec.trafficPolicy, 'spec.trafficPolicy', tell)
  checkPortLevels(spec.trafficPolicy, 'spec.trafficPolicy', services, tell)
  checkRuleSecrets(object, world, tell)
  for (const service of services) checkPeers(object, service, world, tell)
  checkOthers(object, host, world, tell)
}

/** Tells settings of a port that none of the services has. */
function checkPortLevels(policy: TrafficPolicy | undefined, at: string, services: readonly Service[], tell: Tell): void {
  const ports = new Set(services.flatMap((service) => service.ports.map(({ number }) => number)))
  for (const [index, { port }] of (policy?.portLevelSettings ?? []).entries())
    if (port?.number !== undefined && ports.size > 0 && !ports.has(port.number))
      tell(
        'IST0101',
        `${at}.portLevelSettings[${index}].port.number`,
        `the service has no port ${port.number}, only ${[...ports].join(', ')}, so these settings have no effect`,
      )
}

const originates = new Set(['SIMPLE', 'MUTUAL'])

function checkTls(policy: TrafficPolicy | undefined, at: string, tell: Tell): void {
  const isUnverified = (tls: TrafficPolicy['tls']) =>
    tls !== undefined && originates.has(tls.mode ?? '') && !tls.caCertificates && !tls.credentialName && !tls.insecureSkipVerify
  const reason = 'neither caCertificates nor credentialName says whose certificates count, so that of every server is accepted: name them'
  if (isUnverified(policy?.tls)) tell('IST0128', `${at}.tls`, reason)
  for (const [index, port] of (policy?.portLevelSettings ?? []).entries())
    if (isUnverified(port.tls)) tell('IST0129', `${at}.portLevelSettings[${index}].tls`, reason)
}

/** Tells a TLS mode that the workloads of a service refuse. Told only where all of these are known to have a sidecar. */
function checkPeers({ spec }: Rule, service: Service, world: World, tell: Tell): void {
  const mode = spec.trafficPolicy?.tls?.mode
  const selector = selectorOf(service)
  if (mode === undefined || !selector || service.external) return
  const workloads = world.workloads(selector, service.namespace)
  if (!workloads?.length || workloads.some(({ labels, pod }) => isInjected(service.namespace, labels, pod, world) !== true)) return
  const [first] = workloads
  if (!world.isRead('PeerAuthentication')) return
  const peers = peerMode(service.namespace, first?.labels ?? {}, world)
  if (!peers) return
  const where = `the PeerAuthentication ${peers.policy.namespace}/${peers.policy.name}`
  if (mode !== 'MESH_MUTUAL' && peers.mode === 'STRICT')
    tell(
      'IST0113',
      'spec.trafficPolicy.tls.mode',
      `connections are made with ${mode}, and ${where} accepts those with mutual TLS only: use MESH_MUTUAL`,
    )
  if (mode === 'MESH_MUTUAL' && peers.mode === 'DISABLE')
    tell('IST0113', 'spec.trafficPolicy.tls.mode', `connections are made with mutual TLS, and ${where} disables it: use DISABLE, or leave tls out`)
}

/** Tells what another rule of the same namespace for the same host makes void: only the oldest one's policy, and subset of a name, count. */
function checkOthers(object: Rule, host: string, world: World, tell: Tell): void {
  const rules = (world.claimants(rulesOf(host)) as readonly Rule[]).filter(
    (other) => other.namespace === object.namespace && (other === object || mayMeet(object, other, ['*'])),
  )
  const earlier = rules.slice(0, Math.max(rules.indexOf(object), 0))
  const withPolicy = earlier.find(({ spec }) => spec.trafficPolicy)
  if (object.spec.trafficPolicy && withPolicy)
    tell(
      'MESH0004',
      'spec.trafficPolicy',
      `the DestinationRule ${withPolicy.namespace}/${withPolicy.name} has a policy for ${host} too: put them into one`,
    )
  for (const [index, { name }] of (object.spec.subsets ?? []).entries()) {
    const isRepeated = object.spec.subsets?.slice(0, index).some((subset) => subset.name === name)
    if (isRepeated) tell('MESH0004', `spec.subsets[${index}].name`, `the rule has a subset ${name} before this one, and that one counts: rename one`)
    const other = isRepeated ? undefined : earlier.find(({ spec }) => spec.subsets?.some((subset) => subset.name === name))
    if (other)
      tell(
        'MESH0004',
        `spec.subsets[${index}].name`,
        `the DestinationRule ${other.namespace}/${other.name} has a subset ${name} of ${host} too: rename one`,
      )
  }
}
