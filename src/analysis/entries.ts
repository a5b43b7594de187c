/** Finds entries that no service has, and services of entries that have none (docs/analysis.md, Y21). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { ServiceEntrySpec } from '../config/kinds/service-entry.ts'
import { labelsMatch } from '../model/match.ts'
import { entriesOf, selectingEntries } from './claims.ts'
import { entryWorkload } from './entry-workload.ts'
import type { Tell } from './finding.ts'
import { labelText, serves } from './references.ts'
import type { World } from './world.ts'

/** Tells a WorkloadEntry, or a WorkloadGroup, that no service of its namespace selects. One that registered itself is told at its group. */
export function checkSelected(object: ConfigObject, world: World, tell: Tell): void {
  const { namespace, annotations } = object
  const workload = entryWorkload(object)
  const hasRegistered = world.names.canonicalKeys(annotations)[`${world.names.domain}/autoRegistrationGroup`] !== undefined
  if (!workload || hasRegistered || !world.isRead('ServiceEntry', namespace) || !world.isRead('Service', namespace)) return
  const { labels } = workload
  if (world.servicesIn(namespace).some((service) => serves(service, labels))) return
  const entries = world.claimants(selectingEntries(namespace)) as readonly ConfigObject<ServiceEntrySpec>[]
  if (entries.some(({ spec }) => labelsMatch(spec.workloadSelector?.labels, labels))) return
  const has = Object.keys(labels).length === 0 ? 'no labels' : `the labels ${labelText(labels, world)}`
  tell(
    'MESH0015',
    'spec',
    `it has ${has}, and no ServiceEntry and no Service of the namespace ${namespace} selects it, so nobody reaches it as a service`,
  )
}

/** Tells a ServiceEntry of fixed endpoints that has none, and no other definition of its hosts in its namespace has some. */
export function checkFixed({ namespace, spec }: ConfigObject<ServiceEntrySpec>, world: World, tell: Tell): void {
  if (spec.resolution !== 'STATIC' || spec.endpoints?.length || spec.workloadSelector || !world.isRead('ServiceEntry')) return
  const hasOthers = spec.hosts.some(
    (host) =>
      world.services(host.toLowerCase()).some(({ provider }) => provider !== 'ServiceEntry') ||
      (world.claimants(entriesOf(host.toLowerCase())) as readonly ConfigObject<ServiceEntrySpec>[]).some(
        (other) => other.namespace === namespace && (other.spec.endpoints?.length || other.spec.workloadSelector),
      ),
  )
  if (!hasOthers)
    tell('MESH0014', 'spec.resolution', 'it is STATIC, and there are neither endpoints nor a workloadSelector, so its hosts have no endpoints')
}
