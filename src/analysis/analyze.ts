/** Analyzes one object or resource: what is valid by itself and wrong, or without effect, beside what else there is (docs/analysis.md). */

import type { ConfigObject } from '../../protocols/data.ts'
import type { Resource, Workload } from '../../protocols/messages/analysis.ts'
import type { AuthorizationPolicySpec } from '../config/kinds/authorization-policy.ts'
import type { DestinationRuleSpec } from '../config/kinds/destination-rule.ts'
import type { EnvoyFilterSpec } from '../config/kinds/envoy-filter.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import type { PeerAuthenticationSpec } from '../config/kinds/peer-authentication.ts'
import type { RequestAuthenticationSpec } from '../config/kinds/request-authentication.ts'
import type { ServiceEntrySpec } from '../config/kinds/service-entry.ts'
import type { SidecarSpec } from '../config/kinds/sidecar.ts'
import type { VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { type KindName, kindId, kindOfKey, kinds, namespaceOfKey } from '../config/kinds.ts'
import { analyzeAnnotations } from './annotations.ts'
import { analyzeDeprecated } from './deprecated.ts'
import { analyzeDestinationRule } from './destination-rules.ts'
import { checkSelected } from './entries.ts'
import { analyzeExports, analyzeExportsOf } from './exports.ts'
import type { Tell } from './finding.ts'
import { analyzeGateway } from './gateways.ts'
import { analyzeIngress } from './ingresses.ts'
import type { MeshFacts } from './mesh-facts.ts'
import { analyzeInjection } from './namespaces.ts'
import { checkPatchMatches } from './patch-matches.ts'
import { analyzeAuthorizationPolicy, analyzePeerAuthentication, analyzeRequestAuthentication } from './policies.ts'
import { analyzeNamespace, analyzeSelector } from './selectors.ts'
import { analyzeServiceEntry } from './service-entries.ts'
import { analyzeService } from './services.ts'
import { analyzeSettings } from './settings.ts'
import { analyzeSidecar } from './sidecars.ts'
import { analyzeSingle } from './single-objects.ts'
import { analyzeVirtualService } from './virtual-services.ts'
import { analyzeWorkload } from './workloads.ts'
import type { World } from './world.ts'

/** Tells what is wrong with the object or resource that has a key. */
export function analyzeSubject(key: string, facts: MeshFacts, tell: Tell): void {
  const kind = kindOfKey(key)
  const subject = facts.subject(key)
  if (kind === 'MeshNetworks') return analyzeSettings(facts, tell)
  if (kind === 'Service') {
    const service = facts.serviceAt(namespaceOfKey(key), key.slice(key.lastIndexOf('/') + 1))
    if (service) analyzeService(service, facts, tell)
  }
  if (!subject) return
  if (kinds.has(kind)) return analyzeObject(subject as ConfigObject, facts, tell)
  analyzeAnnotations(subject.kind, subject.annotations, 'metadata', facts, tell)
  if (subject.kind === 'Namespace') analyzeInjection(subject as Resource, facts, tell)
  if (subject.kind === 'Service') analyzeExportsOf(subject as Resource, facts, tell)
  if ('backends' in subject && subject.backends) analyzeIngress(subject, subject.backends, facts, tell)
  if ('pod' in subject) analyzeWorkload(subject as Workload, facts, tell)
}

/** Tells what is wrong with an object of a kind of the mesh. */
function analyzeObject(object: ConfigObject, world: World, tell: Tell): void {
  analyzeSingle(object, world, tell)
  analyzeNamespace(object, world, tell)
  analyzeSelector(object, world, tell)
  analyzeAnnotations(object.kind, object.annotations, 'metadata', world, tell)
  analyzeDeprecated(object, tell)
  analyzeExports(object, world, tell)
  switch (kindId(object) as KindName) {
    case 'VirtualService':
      return analyzeVirtualService(object as ConfigObject<VirtualServiceSpec>, world, tell)
    case 'DestinationRule':
      return analyzeDestinationRule(object as ConfigObject<DestinationRuleSpec>, world, tell)
    case 'Gateway':
      return analyzeGateway(object as ConfigObject<GatewaySpec>, world, tell)
    case 'Sidecar':
      return analyzeSidecar(object as ConfigObject<SidecarSpec>, world, tell)
    case 'ServiceEntry':
      return analyzeServiceEntry(object as ConfigObject<ServiceEntrySpec>, world, tell)
    case 'WorkloadEntry':
    case 'WorkloadGroup':
      return checkSelected(object, world, tell)
    case 'EnvoyFilter':
      return checkPatchMatches(object as ConfigObject<EnvoyFilterSpec>, world, tell)
    case 'AuthorizationPolicy':
      return analyzeAuthorizationPolicy(object as ConfigObject<AuthorizationPolicySpec>, world, tell)
    case 'PeerAuthentication':
      return analyzePeerAuthentication(object as ConfigObject<PeerAuthenticationSpec>, world, tell)
    case 'RequestAuthentication':
      return analyzeRequestAuthentication(object as ConfigObject<RequestAuthenticationSpec>, world, tell)
  }
}
