/** Finds pods and workloads that are not in the mesh as their namespace says, or whose Services do not fit. */

import type { Service } from '../../protocols/data.ts'
import type { Container, Workload } from '../../protocols/messages/analysis.ts'
import { labelRemarks } from '../inject/labels.ts'
import { injectedContainers } from '../names/mesh-names.ts'
import { analyzeAnnotations } from './annotations.ts'
import type { Tell } from './finding.ts'
import { isInjected, serves } from './references.ts'
import { templatePath } from './resources.ts'
import type { World } from './world.ts'

/** Tells what is wrong with a pod, or with a template of pods. */
export function analyzeWorkload(workload: Workload, world: World, tell: Tell): void {
  const { kind, namespace, labels, pod } = workload
  if (!pod || pod.hasEnded) return
  const isPod = kind === 'Pod'
  if (!isPod) analyzeAnnotations('Pod', pod.annotations, `${templatePath(kind)}.metadata`, world, tell)
  const at = isPod ? 'metadata' : `${templatePath(kind)}.metadata`
  for (const { key, reason } of labelRemarks('Pod', pod.labels, world.names)) tell('IST0133', `${at}.labels[${key}]`, reason)
  const proxy = pod.containers.find(({ name }) => (injectedContainers.proxy as readonly string[]).includes(name))
  const joins = proxy !== undefined || isInjected(namespace, labels, pod, world) === true
  if (isPod) checkSidecar(proxy, joins, pod.annotations, world, tell)
  if (!joins) return
  const services = world.servicesIn(namespace).filter((service) => serves(service, labels))
  if (!isPod) checkServices(workload, services, world.isRead('Service', namespace), tell)
}

function checkSidecar(proxy: Container | undefined, joins: boolean, annotations: Readonly<Record<string, string>>, world: World, tell: Tell): void {
  if (!joins) return
  if (!proxy)
    return tell(
      'IST0103',
      'spec.containers',
      'its namespace has injection and it has no sidecar, so it is not in the mesh: have its workload make it anew',
    )
  const { proxyImage } = world.mesh
  const asked = world.names.canonicalKeys(annotations)[`sidecar.${world.names.domain}/proxyImage`]
  if (proxyImage !== undefined && asked === undefined && proxy.image !== proxyImage)
    tell('IST0105', 'spec.containers', `its sidecar is ${proxy.image}, and injection gives ${proxyImage}: have its workload make it anew`)
}

function checkServices({ kind, pod, labels }: Workload, services: readonly Service[], areAll: boolean, tell: Tell): void {
  const at = `${templatePath(kind)}${Object.keys(labels).length > 0 ? '.metadata.labels' : ''}`
  const own = (pod?.containers ?? []).filter(({ name }) => !(injectedContainers.proxy as readonly string[]).includes(name))
  if (kind === 'Deployment' && areAll && services.length === 0 && own.some(({ ports }) => ports.length > 0))
    tell('IST0117', at, 'it has ports and no Service in force selects it, so nobody in the mesh can name it: add a Service')
  const declared = new Map<number, { readonly service: string; readonly protocol: string }>()
  for (const { name, ports } of services)
    for (const { number, targetPort, targetName, protocol } of ports) {
      if (targetName) continue
      const target = targetPort || number
      const first = declared.get(target)
      if (!first) declared.set(target, { service: name, protocol })
      else if (first.service !== name && first.protocol !== protocol)
        tell(
          'IST0116',
          at,
          `the Services ${first.service} and ${name} declare its port ${target} as ${first.protocol} and as ${protocol}, and its sidecar has one of them: declare the same`,
        )
    }
}
