/** Finds DestinationRules of hosts that are not there, subsets without workloads, and TLS that verifies nobody. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { DestinationRuleSpec, TrafficPolicy } from '../config/kinds/destination-rule.ts'
import { suggestion } from '../model/edit-distance.ts'
import { completeHost } from '../model/match.ts'
import type { Tell } from './finding.ts'
import type { References } from './references.ts'

/** Tells what is wrong with a DestinationRule. */
export function analyzeDestinationRule(object: ConfigObject<DestinationRuleSpec>, references: References, tell: Tell): void {
  const { namespace, spec } = object
  const host = completeHost(spec.host, namespace, references.domain)
  const services = references.servicesOf(host)
  if (services.length === 0 && !host.startsWith('*'))
    tell(
      'IST0101',
      'spec.host',
      `there is no service ${host}, so the rule has no effect${suggestion(spec.host, references.nearHosts(spec.host, namespace))}`,
    )
  for (const [index, { name, labels, trafficPolicy }] of (spec.subsets ?? []).entries()) {
    for (const { selector, namespace: owner } of services)
      if (labels && selector && references.someWorkload({ ...selector, ...labels }, owner) === false)
        tell('IST0127', `spec.subsets[${index}].labels`, `no workload of ${host} has these labels, so the subset ${name} has no endpoints`)
    checkTls(trafficPolicy, `spec.subsets[${index}].trafficPolicy`, tell)
  }
  checkTls(spec.trafficPolicy, 'spec.trafficPolicy', tell)
}

const originates = new Set(['SIMPLE', 'MUTUAL'])

function checkTls(policy: TrafficPolicy | undefined, at: string, tell: Tell): void {
  const isUnverified = (tls: TrafficPolicy['tls']) =>
    tls !== undefined && originates.has(tls.mode ?? '') && !tls.caCertificates && !tls.credentialName && !tls.insecureSkipVerify
  const reason = 'neither caCertificates nor credentialName says whose certificates count, so those of the system do: name them'
  if (isUnverified(policy?.tls)) tell('IST0128', `${at}.tls`, reason)
  for (const [index, port] of (policy?.portLevelSettings ?? []).entries())
    if (isUnverified(port.tls)) tell('IST0129', `${at}.portLevelSettings[${index}].tls`, reason)
}
