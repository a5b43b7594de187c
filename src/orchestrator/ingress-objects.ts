/**
 * Ingresses and IngressClasses (`networking.k8s.io/v1`), cut to what the mesh needs. The hosts, paths and certificates of an Ingress become
 * servers and routes of the mesh, which pass through the checks of Gateways and VirtualServices here: what is left can be used.
 */
import type { GatewayServer, GatewaySpec } from '../config/kinds/gateway.ts'
import type { HttpMatch, VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { parseConfigDocument } from '../config/parse.ts'
import { type Fault, mapping, textOf } from '../config/shape.ts'
import type { MeshNames } from '../names/mesh-names.ts'

/** An Ingress. */
export interface IngressObject {
  readonly namespace: string
  readonly name: string
  readonly createdAt: number
  readonly uid: string
  readonly resourceVersion: string
  /** The annotation `kubernetes.io/ingress.class`, and `spec.ingressClassName`; undefined without one. */
  readonly annotatedClass: string | undefined
  readonly className: string | undefined
  /** The servers of its certificates, and the one for requests in plain text. */
  readonly servers: readonly GatewayServer[]
  readonly routes: readonly IngressRoute[]
  /** The addresses in its status, in its order. */
  readonly addresses: readonly string[]
}

/** Requests of a host to a path, and where they go. */
export interface IngressRoute {
  /** `*` for every host. */
  readonly host: string
  readonly match: readonly HttpMatch[]
  /** The length of the path, without a last slash: of several that match, the longest counts; -1 for the default backend. */
  readonly length: number
  readonly isExact: boolean
  readonly service: string
  /** The port by number or by name. */
  readonly port: number | string
  /** The field of the backend. */
  readonly path: string
}

/** An IngressClass. */
export interface IngressClassObject {
  readonly name: string
  /** Whether its controller is the mesh. */
  readonly isOurs: boolean
  /** Whether Ingresses without a class have this one. */
  readonly isDefault: boolean
}

type Mapping = Readonly<Record<string, unknown>>

/** Cuts an IngressClass. Never throws for any value. */
export function cutIngressClass(value: Mapping, names: MeshNames): { readonly object: IngressClassObject; readonly faults: readonly Fault[] } {
  const metadata = mapping(value.metadata)
  const isOurs = names.canonicalKey(textOf(mapping(value.spec).controller)) === `${names.domain}/ingress-controller`
  const isDefault = mapping(metadata.annotations)['ingressclass.kubernetes.io/is-default-class'] === 'true'
  return { object: { name: textOf(metadata.name), isOurs, isDefault }, faults: [] }
}

/** Cuts an Ingress. Parts that cannot be used are left out, for the reasons in `faults`. Never throws for any value. */
export function cutIngress(value: Mapping, names: MeshNames): { readonly object: IngressObject; readonly faults: readonly Fault[] } {
  const reading = new IngressReading(value, names)
  return { object: reading.object(), faults: reading.faults }
}

/** Reads one Ingress. */
class IngressReading {
  readonly faults: Fault[] = []
  readonly #names: MeshNames
  readonly #metadata: Mapping
  readonly #spec: Mapping
  readonly #status: Mapping
  readonly #namespace: string
  readonly #name: string

  constructor(value: Mapping, names: MeshNames) {
    this.#names = names
    this.#metadata = mapping(value.metadata)
    this.#spec = mapping(value.spec)
    this.#status = mapping(value.status)
    this.#namespace = textOf(this.#metadata.namespace)
    this.#name = textOf(this.#metadata.name)
  }

  object(): IngressObject {
    const { creationTimestamp, uid, resourceVersion } = this.#metadata
    const created = Date.parse(textOf(creationTimestamp))
    const annotated = mapping(this.#metadata.annotations)['kubernetes.io/ingress.class']
    const { ingressClassName } = this.#spec
    const balancers = list(mapping(this.#status.loadBalancer).ingress).map(mapping)
    return {
      namespace: this.#namespace,
      name: this.#name,
      createdAt: Number.isNaN(created) ? 0 : created,
      uid: textOf(uid),
      resourceVersion: textOf(resourceVersion),
      annotatedClass: typeof annotated === 'string' ? annotated : undefined,
      className: typeof ingressClassName === 'string' ? ingressClassName : undefined,
      servers: this.#servers(),
      routes: this.#routes(),
      addresses: balancers.map(({ ip, hostname }) => textOf(ip) || textOf(hostname)),
    }
  }

  #fault(path: string, reason: string): undefined {
    this.faults.push({ path, reason })
    return undefined
  }

  #servers(): GatewayServer[] {
    const secured = list(this.#spec.tls).flatMap((item, index): GatewayServer[] => {
      const [tls, path] = [mapping(item), `spec.tls[${index}]`]
      if (textOf(tls.secretName) === '') {
        this.#fault(`${path}.secretName`, 'required, but missing')
        return []
      }
      const hosts = list(tls.hosts).length > 0 ? tls.hosts : ['*']
      const port = { number: 443, protocol: 'HTTPS', name: `https-443-ingress-${this.#name}-${this.#namespace}-${index}` }
      return this.#server({ port, hosts, tls: { mode: 'SIMPLE', credentialName: tls.secretName } }, path)
    })
    const port = { number: 80, protocol: 'HTTP', name: `http-80-ingress-${this.#name}-${this.#namespace}` }
    return [...secured, ...this.#server({ port, hosts: ['*'] }, 'spec')]
  }

  #server(server: Mapping, path: string): GatewayServer[] {
    return this.#parsed<GatewaySpec>('Gateway', { servers: [server] }, path)?.servers ?? []
  }

  #routes(): IngressRoute[] {
    const fallback = this.#spec.defaultBackend === undefined ? undefined : this.#backend(this.#spec.defaultBackend, 'spec.defaultBackend')
    const rules = list(this.#spec.rules).flatMap((item, index): IngressRoute[] => this.#rule(mapping(item), `spec.rules[${index}]`))
    const hosts = new Set(['*', ...rules.map(({ host }) => host)])
    const last = { match: [{ uri: { prefix: '/' } }], length: -1, isExact: false, path: 'spec.defaultBackend' }
    return [...rules, ...(fallback ? [...hosts].map((host) => ({ host, ...last, ...fallback })) : [])]
  }

  #rule(rule: Mapping, path: string): IngressRoute[] {
    const host = textOf(rule.host).toLowerCase() || '*'
    const checked = this.#parsed<VirtualServiceSpec>('VirtualService', virtualService(host, [{ uri: { prefix: '/' } }]), `${path}.host`)
    if (!checked) return []
    return list(mapping(rule.http).paths).flatMap((item, index): IngressRoute[] => {
      const at = `${path}.http.paths[${index}]`
      const given = mapping(item)
      const [backend, matched] = [this.#backend(given.backend, `${at}.backend`), this.#match(given, at)]
      if (!backend || !matched) return []
      const spec = this.#parsed<VirtualServiceSpec>('VirtualService', virtualService(host, matched.match), `${at}.path`)
      const match = spec?.http?.[0]?.match
      return match ? [{ host, match, length: matched.length, isExact: matched.isExact, ...backend, path: `${at}.backend` }] : []
    })
  }

  #match(given: Mapping, path: string): { match: Mapping[]; length: number; isExact: boolean } | undefined {
    const type = given.pathType ?? 'ImplementationSpecific'
    const value = textOf(given.path) || '/'
    if (type === 'Exact') return exact(value)
    if (type === 'Prefix') return elements(value)
    if (type !== 'ImplementationSpecific')
      return this.#fault(`${path}.pathType`, `expected Exact, Prefix or ImplementationSpecific, got ${JSON.stringify(type)?.slice(0, 100)}`)
    if (textOf(given.path) === '') return elements('/')
    if (value.endsWith('/*')) return elements(value.slice(0, -1))
    if (!value.endsWith('.*')) return exact(value)
    const prefix = value.slice(0, -2)
    return { match: [{ uri: { prefix: prefix === '' ? '/' : prefix } }], length: prefix.length, isExact: false }
  }

  #backend(value: unknown, path: string): Pick<IngressRoute, 'service' | 'port'> | undefined {
    const { service, resource } = mapping(value)
    if (resource !== undefined && resource !== null) return this.#fault(`${path}.resource`, 'backends other than Services cannot be used')
    const { name, port } = mapping(service)
    if (typeof name !== 'string' || name === '') return this.#fault(`${path}.service.name`, 'required, but missing')
    const { number, name: portName } = mapping(port)
    if (Number.isInteger(number) && (number as number) >= 1 && (number as number) <= 65_535) return { service: name, port: number as number }
    if (typeof portName === 'string' && portName !== '') return { service: name, port: portName }
    return this.#fault(`${path}.service.port`, 'a number from 1 to 65535 or a name is required')
  }

  /** Reads the spec of an object of the mesh; undefined with a fault of the Ingress if it is not valid. */
  #parsed<Spec>(kind: 'Gateway' | 'VirtualService', spec: Mapping, path: string): Spec | undefined {
    const document = { apiVersion: `networking.${this.#names.domain}/v1`, kind, metadata: { name: 'ingress', namespace: 'ingress' }, spec }
    const { objects, faults } = parseConfigDocument('Ingress', document, this.#names, {})
    for (const { reason } of faults.slice(0, 1)) this.#fault(path, reason)
    return faults.length > 0 ? undefined : (objects[0]?.spec as Spec | undefined)
  }
}

/** A VirtualService with one route, for its checks. */
const virtualService = (host: string, match: readonly Mapping[]): Mapping => ({
  hosts: [host],
  gateways: ['ingress/ingress'],
  http: [{ match, directResponse: { status: 503 } }],
})

const exact = (value: string) => ({ match: [{ uri: { exact: value } }], length: trimmed(value).length, isExact: true })

/** A prefix element by element: `/a` matches `/a`, `/a/` and `/a/b`, and not `/ab`. */
function elements(value: string) {
  const path = trimmed(value)
  const match = path === '' ? [{ uri: { prefix: '/' } }] : [{ uri: { exact: path } }, { uri: { prefix: `${path}/` } }]
  return { match, length: path.length, isExact: false }
}

const trimmed = (path: string): string => path.replace(/\/+$/, '')
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
