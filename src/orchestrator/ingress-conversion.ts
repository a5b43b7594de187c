/** Converts the Ingresses of a cluster to Gateways and VirtualServices (docs/resources.md, I1 to I6). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { IngressSettings } from '../../protocols/messages/identity.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import type { HttpRoute, VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { configKey } from '../config/kinds.ts'
import { byAge } from '../model/order.ts'
import { gatewayLabels, ingressClasses, ingressServices } from '../names/mesh-names.ts'
import type { IngressClassObject, IngressObject, IngressRoute } from './ingress-objects.ts'

/** What does not change while a process runs. */
export interface IngressPlace {
  /** The mesh domain, and the domain of services. */
  readonly meshDomain: string
  readonly domain: string
  /** The namespace of the gateways that serve Ingresses. */
  readonly gateways: string
  readonly source: string
  readonly cluster: string
}

/** A backend that no port is known of, so that its requests are answered with 503. */
export interface LostBackend {
  readonly ingress: string
  readonly path: string
  readonly reason: string
}

/** Finds the number of a named port of a Service; undefined: the Service or the port does not exist. */
export type PortOf = (service: string, port: string) => number | undefined

/** Whether an Ingress is for this mesh: by its annotation, else by its class, else by the mode and the default class. */
export function isOurs(
  { annotatedClass, className }: Pick<IngressObject, 'annotatedClass' | 'className'>,
  { mode, className: own }: IngressSettings,
  classes: ReadonlyMap<string, IngressClassObject>,
): boolean {
  if (mode === 'OFF') return false
  if (annotatedClass !== undefined) return annotatedClass === own || (ingressClasses.includes(own) && ingressClasses.includes(annotatedClass))
  if (className !== undefined) return classes.get(className)?.isOurs ?? false
  return mode === 'DEFAULT' || [...classes.values()].some((each) => each.isOurs && each.isDefault)
}

/** The value of the label of the gateways that serve Ingresses. */
export const gatewayLabel = ({ selector, service }: IngressSettings): string =>
  selector !== '' ? selector : service === '' || ingressServices.includes(service) ? 'ingressgateway' : service

/** Converts Ingresses, of which it keeps the state. Keys of Ingresses are `<namespace>/<name>`. */
export class IngressConversion {
  readonly #place: IngressPlace
  readonly #portOf: PortOf
  readonly #ingresses = new Map<string, IngressObject>()
  readonly #classes = new Map<string, IngressClassObject>()
  #settings: IngressSettings | undefined
  /** The keys of the Ingresses that are for this mesh. */
  readonly #ours = new Set<string>()
  /** By host the keys of the Ingresses with routes of it. */
  readonly #byHost = new Map<string, Set<string>>()
  readonly #hostsOf = new Map<string, ReadonlySet<string>>()
  /** Whether a port that is meant by name may be another one. */
  #portsMayDiffer = false
  /** By Ingress and host what was made of it. */
  readonly #made = new Map<string, readonly ConfigObject[]>()
  /** The ports that were found by name, as text, by Ingress. */
  readonly #named = new Map<string, string>()
  readonly #dirtyHosts = new Set<string>()
  readonly #dirtyIngresses = new Set<string>()
  readonly #lost = new Map<string, readonly LostBackend[]>()

  constructor(place: IngressPlace, portOf: PortOf) {
    this.#place = place
    this.#portOf = portOf
  }

  /** The Ingresses that are for this mesh, with their keys. */
  *ours(): Generator<readonly [string, IngressObject]> {
    for (const key of this.#ours) yield [key, this.#ingresses.get(key) as IngressObject]
  }

  /** The Ingress of a key. */
  ingress(key: string): IngressObject | undefined {
    return this.#ingresses.get(key)
  }

  /** The backends without a known port. */
  get lost(): readonly LostBackend[] {
    return [...this.#lost.values()].flat()
  }

  set(key: string, ingress: IngressObject | undefined): void {
    const before = this.#ingresses.get(key)
    // A new status changes nothing that follows from the Ingress.
    if (before && ingress && JSON.stringify(contentOf(before)) === JSON.stringify(contentOf(ingress))) return void this.#ingresses.set(key, ingress)
    this.#touch(key)
    if (ingress) this.#ingresses.set(key, ingress)
    else this.#ingresses.delete(key)
    this.#decide(key)
  }

  setClass(name: string, value: IngressClassObject | undefined): void {
    if (value) this.#classes.set(name, value)
    else this.#classes.delete(name)
    this.#decideAll()
  }

  setSettings(settings: IngressSettings): void {
    const label = this.#settings && gatewayLabel(this.#settings)
    this.#settings = settings
    if (label !== gatewayLabel(settings)) for (const key of this.#ours) this.#touch(key)
    this.#decideAll()
  }

  /** Services have changed. */
  servicesChanged(): void {
    this.#portsMayDiffer = true
  }

  /** Returns what has changed since the last call, by key: objects, or undefined for those that are gone. */
  take(): Map<string, ConfigObject | undefined> {
    if (this.#portsMayDiffer) this.#findPorts()
    this.#portsMayDiffer = false
    const before = new Map<string, ConfigObject>()
    const now = new Map<string, ConfigObject>()
    const remake = (made: string, objects: readonly ConfigObject[]) => {
      for (const object of this.#made.get(made) ?? []) before.set(configKey(object), object)
      for (const object of objects) now.set(configKey(object), object)
      if (objects.length > 0) this.#made.set(made, objects)
      else this.#made.delete(made)
    }
    for (const key of this.#dirtyIngresses) remake(`ingress ${key}`, this.#gatewaysOf(key))
    for (const host of this.#dirtyHosts) remake(`host ${host}`, this.#virtualServicesOf(host))
    this.#dirtyIngresses.clear()
    this.#dirtyHosts.clear()
    return new Map([...[...before.keys()].map((key) => [key, undefined] as const), ...now])
  }

  /** Returns all objects. */
  all(): ConfigObject[] {
    return [...this.#made.values()].flat()
  }

  #decideAll(): void {
    for (const key of this.#ingresses.keys()) this.#decide(key)
  }

  /** Decides whether an Ingress is for this mesh. */
  #decide(key: string): void {
    const ingress = this.#ingresses.get(key)
    const counts = ingress !== undefined && this.#settings !== undefined && isOurs(ingress, this.#settings, this.#classes)
    if (counts === this.#ours.has(key) && !this.#dirtyIngresses.has(key)) return
    this.#touch(key)
    for (const host of this.#hostsOf.get(key) ?? []) this.#byHost.get(host)?.delete(key)
    this.#hostsOf.delete(key)
    this.#ours.delete(key)
    this.#named.delete(key)
    this.#lost.delete(key)
    if (!counts) return
    this.#ours.add(key)
    const hosts = new Set(ingress.routes.map(({ host }) => host))
    for (const host of hosts) this.#byHost.set(host, (this.#byHost.get(host) ?? new Set()).add(key))
    this.#hostsOf.set(key, hosts)
    this.#portsMayDiffer = true
    this.#touch(key)
  }

  /** What was made of an Ingress has to be made again. */
  #touch(key: string): void {
    this.#dirtyIngresses.add(key)
    for (const { host } of this.#ingresses.get(key)?.routes ?? []) this.#dirtyHosts.add(host)
  }

  /** Finds Ingresses whose named ports are others than before. */
  #findPorts(): void {
    for (const key of this.#ours) {
      const ingress = this.#ingresses.get(key) as IngressObject
      const named = ingress.routes.filter(({ port }) => typeof port === 'string')
      if (named.length === 0) continue
      const lost = new Map<string, LostBackend>()
      const found = named.map(({ service, port, path }) => {
        const number = this.#portOf(`${ingress.namespace}/${service}`, port as string)
        const reason = `Service ${ingress.namespace}/${service} does not exist or has no port named ${JSON.stringify(port)}`
        if (number === undefined) lost.set(path, { ingress: key, path, reason })
        return number
      })
      const text = JSON.stringify(found)
      if (this.#named.get(key) === text) continue
      this.#named.set(key, text)
      if (lost.size > 0) this.#lost.set(key, [...lost.values()])
      else this.#lost.delete(key)
      this.#touch(key)
    }
  }

  /** One Gateway for each spelling of the label, so that gateways with either serve it. */
  #gatewaysOf(key: string): ConfigObject<GatewaySpec>[] {
    const ingress = this.#ingresses.get(key)
    if (!ingress || !this.#ours.has(key) || !this.#settings) return []
    const label = gatewayLabel(this.#settings)
    return gatewayLabels.map((name) => ({
      ...this.#object('Gateway', ingress, [key]),
      namespace: this.#place.gateways,
      name: gatewayName(ingress, name),
      spec: { servers: [...ingress.servers], selector: { [name]: label } },
    }))
  }

  #virtualServicesOf(host: string): ConfigObject<VirtualServiceSpec>[] {
    const keys = [...(this.#byHost.get(host) ?? [])]
    const ingresses = keys.map((key) => this.#ingresses.get(key) as IngressObject).sort(byAge)
    const [first] = ingresses
    if (!first) {
      this.#byHost.delete(host)
      return []
    }
    const routes = ingresses.flatMap((ingress) => ingress.routes.filter((route) => route.host === host).map((route) => ({ ingress, route })))
    // The sort is stable: of equal paths that of the oldest Ingress comes first.
    routes.sort((one, other) => other.route.length - one.route.length || Number(other.route.isExact) - Number(one.route.isExact))
    const gateways = ingresses.flatMap((ingress) => gatewayLabels.map((name) => `${this.#place.gateways}/${gatewayName(ingress, name)}`))
    // Without a dot of its own, so that the first one of the name ends it: no two hosts make the same name.
    const prefix = host.replaceAll('-', '--').replaceAll('.', '-')
    return [
      {
        ...this.#object(
          'VirtualService',
          first,
          ingresses.map(({ namespace, name }) => `${namespace}/${name}`),
        ),
        name: `${prefix}.${first.name}-mesh-autogenerated-orch-ingress`,
        spec: { hosts: [host], gateways, http: routes.map(({ ingress, route }) => this.#routeOf(ingress, route)), exportTo: ['*'] },
      },
    ]
  }

  #routeOf({ namespace }: IngressObject, { match, service, port }: IngressRoute): HttpRoute {
    const number = typeof port === 'number' ? port : this.#portOf(`${namespace}/${service}`, port)
    if (number === undefined) return { match: [...match], directResponse: { status: 503 } }
    return { match: [...match], route: [{ destination: { host: `${service}.${namespace}.svc.${this.#place.domain}`, port: { number } } }] }
  }

  #object(kind: string, { namespace, createdAt, uid }: IngressObject, keys: readonly string[]) {
    const { meshDomain, source, cluster } = this.#place
    const named = keys.slice(0, 5).join(', ') + (keys.length > 5 ? ` and ${keys.length - 5} more` : '')
    return {
      ...{ kind, group: `networking.${meshDomain}`, version: 'v1', namespace, labels: {}, annotations: {}, createdAt, generation: 1 },
      // What it says depends on more than the version of one Ingress: on others of the host, Services, the settings.
      ...{ source, cluster, uid, resourceVersion: '', place: `${keys.length > 1 ? 'Ingresses' : 'Ingress'} ${named} of cluster ${cluster}` },
    }
  }
}

const gatewayName = ({ namespace, name }: IngressObject, label: string): string => `${name}-${label}-autogenerated-orch-ingress-${namespace}`

/** What of an Ingress what follows from it depends on. */
const contentOf = ({ resourceVersion, addresses, ...content }: IngressObject) => content
