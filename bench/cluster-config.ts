/** The mesh objects of a cluster that is measured: custom resources in a mix as meshes have it. */

/** A custom resource, and the path of the API at which it is created. */
export interface MeshObject {
  readonly path: string
  readonly body: { readonly kind: string; readonly [field: string]: unknown }
}

/** The number of a service's namespace, and of all of them. */
export interface MeshPlaces {
  readonly services: number
  readonly namespaces: number
}

interface Family {
  readonly kind: string
  readonly group: string
  readonly plural: string
  /** How many of 300 objects are of this kind. */
  readonly share: number
  spec(index: number, places: MeshPlaces): object
}

const keys = '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'
/** Each object of a kind is about another service; the namespace of the object is that of the service. */
const serviceOf = (index: number, { services }: MeshPlaces): number => (index * 7) % services
const hostOf = (index: number, places: MeshPlaces): string => {
  const service = serviceOf(index, places)
  return `service-${service}.ns-${service % places.namespaces}.svc.cluster.local`
}
const selector = (index: number, places: MeshPlaces) => ({ matchLabels: { app: `service-${serviceOf(index, places)}` } })

const families: readonly Family[] = [
  {
    ...{ kind: 'VirtualService', group: 'networking', plural: 'virtualservices', share: 100 },
    spec: (index, places) => {
      const host = hostOf(index, places)
      const to = (subset: string, weight: number) => ({ destination: { host, subset }, weight })
      return {
        hosts: [host],
        http: [
          {
            ...{ match: [{ uri: { prefix: '/v2' } }], route: [to('v0', 90), to('v1', 10)], timeout: '5s' },
            retries: { attempts: 3, perTryTimeout: '2s' },
          },
          { route: [{ destination: { host } }] },
        ],
      }
    },
  },
  {
    ...{ kind: 'DestinationRule', group: 'networking', plural: 'destinationrules', share: 100 },
    spec: (index, places) => ({
      host: hostOf(index, places),
      trafficPolicy: { connectionPool: { tcp: { maxConnections: 100 } }, outlierDetection: { consecutive5xxErrors: 5, interval: '10s' } },
      subsets: ['v0', 'v1'].map((version) => ({ name: version, labels: { version } })),
    }),
  },
  {
    ...{ kind: 'AuthorizationPolicy', group: 'security', plural: 'authorizationpolicies', share: 50 },
    spec: (index, places) => ({
      // Every tenth is for all workloads of its namespace.
      ...(index % 10 === 0 ? {} : { selector: selector(index, places) }),
      action: 'ALLOW',
      rules: [
        {
          from: [{ source: { principals: [`cluster.local/ns/ns-${index % places.namespaces}/sa/default`] } }],
          to: [{ operation: { methods: ['GET', 'POST'], paths: ['/api/*'] } }],
        },
      ],
    }),
  },
  {
    ...{ kind: 'ServiceEntry', group: 'networking', plural: 'serviceentries', share: 20 },
    spec: (index) => ({
      ...{ hosts: [`api-${index}.example.com`], location: 'MESH_EXTERNAL', resolution: 'DNS' },
      ports: [{ number: 443, name: 'tls', protocol: 'TLS' }],
    }),
  },
  {
    ...{ kind: 'RequestAuthentication', group: 'security', plural: 'requestauthentications', share: 10 },
    spec: (index, places) => ({ selector: selector(index, places), jwtRules: [{ issuer: `https://issuer-${index}.example.com`, jwks: keys }] }),
  },
  {
    ...{ kind: 'PeerAuthentication', group: 'security', plural: 'peerauthentications', share: 10 },
    spec: (index, places) => ({ selector: selector(index, places), mtls: { mode: 'STRICT' } }),
  },
  {
    ...{ kind: 'Sidecar', group: 'networking', plural: 'sidecars', share: 10 },
    spec: (index, places) => ({
      workloadSelector: { labels: { app: `service-${serviceOf(index, places)}` } },
      egress: [{ hosts: ['./*', `*/${hostOf(index + 1, places)}`] }],
    }),
  },
]

/** All of them. */
const whole = families.reduce((sum, { share }) => sum + share, 0)

/** The paths at which the kinds of these objects are listed. */
export const meshPaths: readonly string[] = families.map(({ group, plural }) => `/apis/${group}.mesh.io/v1/${plural}`)

/** The plurals of these kinds. */
export const meshPlurals: readonly string[] = families.map(({ plural }) => plural)

/** Makes about so many objects for the services `service-0`, `service-1`, ... in the namespaces `ns-0`, `ns-1`, ... */
export function meshObjects(count: number, places: MeshPlaces): MeshObject[] {
  return families.flatMap(({ kind, group, plural, share, spec }) =>
    Array.from({ length: Math.round((count * share) / whole) }, (_, index): MeshObject => {
      const namespace = `ns-${serviceOf(index, places) % places.namespaces}`
      return {
        path: `/apis/${group}.mesh.io/v1/namespaces/${namespace}/${plural}`,
        body: {
          ...{ apiVersion: `${group}.mesh.io/v1`, kind },
          metadata: { name: `${plural}-${index}`, namespace, labels: { team: `team-${index % 7}` } },
          spec: spec(index, places),
        },
      }
    }),
  )
}
