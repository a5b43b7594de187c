/** Analyzes configuration: what is valid by itself and wrong, or without effect, beside what else there is (behaviour of discovery, 7.3). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { DestinationRuleSpec } from '../config/kinds/destination-rule.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import type { ServiceEntrySpec } from '../config/kinds/service-entry.ts'
import type { SidecarSpec } from '../config/kinds/sidecar.ts'
import type { VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { configKey, type KindName, kinds } from '../config/kinds.ts'
import { compare } from '../model/order.ts'
import { analyzeDestinationRule } from './destination-rules.ts'
import type { Finding, Tell } from './finding.ts'
import { analyzeGateway } from './gateways.ts'
import { analyzeAuthorizationPolicy } from './policies.ts'
import { References } from './references.ts'
import { analyzeNamespace, analyzeSelector } from './selectors.ts'
import { analyzeServiceEntry } from './service-entries.ts'
import { analyzeSidecar, analyzeSidecars } from './sidecars.ts'
import { analyzeHosts, analyzeVirtualService } from './virtual-services.ts'
import type { World } from './world.ts'

/** Returns all findings, sorted by object, path and code. */
export function analyze(world: World): Finding[] {
  const findings: Finding[] = []
  const tellOf = (object: ConfigObject): Tell => {
    const key = configKey(object)
    return (code, path, message) => void findings.push({ code, object: key, path, message })
  }
  const references = new References(world)
  for (const kind of kinds.values())
    for (const object of world.objects(kind.name)) {
      const tell = tellOf(object)
      analyzeNamespace(object, world, tell)
      analyzeSelector(object, world, references, tell)
      analyzeObject(kind.name, object, world, references, tell)
    }
  analyzeHosts(world, tellOf)
  analyzeSidecars(world, tellOf)
  return findings.sort((one, other) => compare(one.object, other.object) || compare(one.path, other.path) || compare(one.code, other.code))
}

/** Tells what is wrong with one object. */
function analyzeObject(kind: KindName, object: ConfigObject, world: World, references: References, tell: Tell): void {
  switch (kind) {
    case 'VirtualService':
      return analyzeVirtualService(object as ConfigObject<VirtualServiceSpec>, world, references, tell)
    case 'DestinationRule':
      return analyzeDestinationRule(object as ConfigObject<DestinationRuleSpec>, references, tell)
    case 'Gateway':
      return analyzeGateway(object as ConfigObject<GatewaySpec>, world, tell)
    case 'Sidecar':
      return analyzeSidecar(object as ConfigObject<SidecarSpec>, world, tell)
    case 'ServiceEntry':
      return analyzeServiceEntry(object as ConfigObject<ServiceEntrySpec>, tell)
    case 'AuthorizationPolicy':
      return analyzeAuthorizationPolicy(object, world, tell)
  }
}
