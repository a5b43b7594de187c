/** A mistake for each code of analysis, as documents of files or objects of a cluster (docs/analysis.md). */
import type { Code } from '../../src/analysis/finding.ts'

/** Documents: an object of the mesh, and objects of a cluster. */
export const mesh = (kind: string, path: string, spec: string, more = '', group = 'networking') => {
  const [namespace, name] = path.split('/')
  return `apiVersion: ${group}.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}${more}}\nspec: ${spec}`
}
const namespace = (name: string, labels: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}, labels: ${labels}}`
export const service = (path: string, ports: string, selector = '{app: web}', more = '') => {
  const [owner, name] = path.split('/')
  return `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: ${owner}${more}}\nspec: {selector: ${selector}, ports: [${ports}]}`
}
const http = '{name: http, port: 80}'
export const workload = (
  kind: string,
  path: string,
  metadata: string,
  spec = 'containers: [{name: app, image: app, ports: [{containerPort: 80}]}]',
) => {
  const [owner, name] = path.split('/')
  if (kind === 'Pod') return `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: ${owner}, ${metadata}}\nspec: {${spec}}`
  return `apiVersion: apps/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${owner}}\nspec: {template: {metadata: {${metadata}}, spec: {${spec}}}}`
}
const configMap = (name: string, key: string, text: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}, namespace: mesh-system}\ndata: {${key}: ${JSON.stringify(text)}}`
const authorizer = (name: string, port = 80) =>
  configMap('mesh', 'mesh', `extensionProviders: [{name: asker, envoyExtAuthzGrpc: {service: ${name}, port: ${port}}}]`)
const gatewayOfNetwork = (name: string) =>
  configMap('mesh', 'meshNetworks', `networks: {net: {gateways: [{registryServiceName: ${name}, port: 80}]}}`)
const injected = namespace('shop', '{mesh-injection: enabled}')
const labels = 'labels: {app: web}'
const proxied = (image: string) => `containers: [{name: app, image: app}, {name: mesh-proxy, image: ${image}}]`
export const route = (http: string) => mesh('VirtualService', 'shop/v', `{hosts: [web], http: [${http}]}`)
export const toWeb = 'route: [{destination: {host: web}}]'
const entry = (path: string, rest: string) => mesh('ServiceEntry', path, `{hosts: [a.example], ports: [{number: 80, name: http}], ${rest}}`)
export const patch = (type: string) =>
  mesh(
    'EnvoyFilter',
    'shop/f',
    `{configPatches: [{applyTo: HTTP_FILTER, patch: {operation: INSERT_FIRST, value: {name: x, typed_config: {"@type": type.googleapis.com/${type}}}}}]}`,
  )

/** A mistake. */
export interface Example {
  readonly wrong: readonly string[]
  /** Where it is told. */
  readonly at: string
  /** The same without the mistake. */
  readonly right: readonly string[]
}

const strict = mesh('PeerAuthentication', 'shop/p', '{mtls: {mode: STRICT}}', '', 'security')
const tokens = mesh(
  'RequestAuthentication',
  'shop/t',
  '{selector: {matchLabels: {app: web}}, jwtRules: [{issuer: a, jwksUri: "https://a.example/keys"}]}',
  '',
  'security',
)
const plain = mesh('DestinationRule', 'shop/d', '{host: web, trafficPolicy: {tls: {mode: DISABLE}}}')
const gateway = (port: number) =>
  mesh('Gateway', 'shop/g', `{selector: {app: web}, servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: ["*"]}]}`)
const webPod = workload('Pod', 'shop/web', labels, proxied('mesh/pilot-agent'))
const annotated = (text: string) => workload('Deployment', 'shop/web', `${labels}, annotations: {${text}}`)
const web = service('shop/web', http)
const custom = mesh('AuthorizationPolicy', 'shop/p', '{action: CUSTOM, provider: {name: asker}, rules: [{}]}', '', 'security')
const secured = (protocol: string, tls: string) =>
  mesh('Gateway', 'shop/g', `{servers: [{port: {number: 443, name: s, protocol: ${protocol}}, hosts: [a.example], tls: {${tls}}}]}`)
const outside = (routes: string) => mesh('VirtualService', 'shop/o', `{hosts: [a.example], gateways: [g], ${routes}}`)
const keys = (from: string) => mesh('RequestAuthentication', 'shop/k', `{jwtRules: [{issuer: a, ${from}}]}`, '', 'security')
const admits = (rule: string) => mesh('AuthorizationPolicy', 'shop/a', `{selector: {matchLabels: {app: web}}, rules: [{${rule}}]}`, '', 'security')
const peers = (mode: string) => mesh('PeerAuthentication', 'shop/p', `{mtls: {mode: ${mode}}}`, '', 'security')
const at = (text: string) => `IST${text}`

/** The gateways of two networks, of which one has a workload, and passes everything on that its namespace sees. */
const passing = [
  ...['eastwest', 'far'].map((name) =>
    service(`shop/${name}`, '{name: tls, port: 15443}', `{app: ${name}}, externalIPs: [192.0.2.1]`, `, labels: {topology.mesh.io/network: ${name}}`),
  ),
  workload('Pod', 'shop/eastwest', 'labels: {app: eastwest}'),
  mesh(
    'Gateway',
    'shop/passing',
    '{selector: {app: eastwest}, servers: [{port: {number: 15443, name: tls, protocol: TLS}, hosts: ["*.local"], tls: {mode: AUTO_PASSTHROUGH}}]}',
  ),
]
const db = (exportTo: string) => service('bank/db', http, '{app: db}', `, annotations: {networking.mesh.io/exportTo: "${exportTo}"}`)

const matching = (applyTo: string, match: string) =>
  mesh('EnvoyFilter', 'shop/f', `{configPatches: [{applyTo: ${applyTo}, match: {${match}}, patch: {operation: REMOVE}}]}`)
const subsets = mesh('DestinationRule', 'shop/d', '{host: web, subsets: [{name: v1}]}')
const selecting = 'resolution: STATIC, workloadSelector: {labels: {app: vm}}'

/** The mistakes by their code. */
export const examples: Partial<Record<Code, readonly Example[]>> = {
  IST0002: [
    {
      wrong: [web, route(`{fault: {delay: {fixedDelay: 1s, percent: 5}}, ${toWeb}}`)],
      at: at('0002 VirtualService/shop/v spec.http[0].fault.delay.percent'),
      right: [web, route(`{fault: {delay: {fixedDelay: 1s, percentage: {value: 5}}}, ${toWeb}}`)],
    },
    {
      wrong: [web, mesh('DestinationRule', 'shop/d', '{host: web, trafficPolicy: {loadBalancer: {simple: LEAST_CONN}}}')],
      at: at('0002 DestinationRule/shop/d spec.trafficPolicy.loadBalancer.simple'),
      right: [web, mesh('DestinationRule', 'shop/d', '{host: web, trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}}}')],
    },
  ],
  IST0101: [
    ...(
      [
        ['service: wbe.shop.svc.cluster.local', 'cluster.service'],
        ['service: web', 'cluster.service'],
        ['service: web.shop.svc.cluster.local, subset: v2', 'cluster.subset'],
        ['service: web.shop.svc.cluster.local, portNumber: 81', 'cluster.portNumber'],
      ] as const
    ).map(([match, path]) => ({
      wrong: [web, subsets, matching('CLUSTER', `cluster: {${match}}`)],
      at: at(`0101 EnvoyFilter/shop/f spec.configPatches[0].match.${path}`),
      right: [web, subsets, matching('CLUSTER', 'cluster: {service: web.shop.svc.cluster.local, subset: v1, portNumber: 80}')],
    })),
    {
      wrong: [web, matching('VIRTUAL_HOST', 'context: SIDECAR_OUTBOUND, routeConfiguration: {vhost: {name: "wbe.shop.svc.cluster.local:80"}}')],
      at: at('0101 EnvoyFilter/shop/f spec.configPatches[0].match.routeConfiguration.vhost.name'),
      right: [
        web,
        matching('VIRTUAL_HOST', 'context: SIDECAR_OUTBOUND, routeConfiguration: {vhost: {name: "web.shop.svc.cluster.local:80"}}'),
        matching('VIRTUAL_HOST', 'context: SIDECAR_INBOUND, routeConfiguration: {vhost: {name: "inbound|http|80"}}').replace('name: f', 'name: g'),
      ],
    },
    {
      wrong: [web, matching('VIRTUAL_HOST', 'context: GATEWAY, routeConfiguration: {gateway: other/g}')],
      at: at('0101 EnvoyFilter/shop/f spec.configPatches[0].match.routeConfiguration.gateway'),
      right: [web, matching('VIRTUAL_HOST', 'context: GATEWAY, routeConfiguration: {gateway: g}'), gateway(80)],
    },
    {
      wrong: [custom, configMap('mesh', 'mesh', 'extensionProviders: [{name: askr, envoyExtAuthzGrpc: {service: a.b, port: 1}}]')],
      at: at('0101 AuthorizationPolicy/shop/p spec.provider.name'),
      right: [custom, web, authorizer('web.shop.svc.cluster.local')],
    },
    ...['wbe.shop.svc.cluster.local', 'bank/web.shop.svc.cluster.local', 'web'].map((name) => ({
      wrong: [custom, web, authorizer(name)],
      at: at('0101 AuthorizationPolicy/shop/p spec.provider.name'),
      right: [custom, web, authorizer('shop/web.shop.svc.cluster.local')],
    })),
    {
      wrong: [custom, web, authorizer('web.shop.svc.cluster.local', 81)],
      at: at('0101 AuthorizationPolicy/shop/p spec.provider.name'),
      right: [custom, entry('shop/e', 'resolution: DNS'), authorizer('a.example')],
    },
    {
      wrong: [web, gatewayOfNetwork('wbe.shop.svc.cluster.local')],
      at: at('0101 MeshNetworks// networks.net.gateways[0].registryServiceName'),
      right: [web, gatewayOfNetwork('Web.shop.svc.cluster.local')],
    },
  ],
  IST0102: [
    {
      wrong: [namespace('shop', '{}'), web, workload('Deployment', 'shop/web', labels), route(`{${toWeb}}`)],
      at: at('0102 Namespace//shop metadata.name'),
      right: [namespace('shop', '{mesh-injection: disabled}'), web, workload('Deployment', 'shop/web', labels), route(`{${toWeb}}`)],
    },
  ],
  IST0103: [{ wrong: [injected, workload('Pod', 'shop/web', labels)], at: at('0103 Pod/shop/web spec.containers'), right: [injected, webPod] }],
  IST0104: [{ wrong: [web, webPod, gateway(8080)], at: at('0104 Gateway/shop/g spec.servers[0].port.number'), right: [web, webPod, gateway(80)] }],
  IST0105: [
    {
      wrong: [configMap('mesh-sidecar-injector', 'values', 'global: {hub: my.hub, tag: "2", proxy: {image: agent}}'), webPod],
      at: at('0105 Pod/shop/web spec.containers'),
      right: [
        configMap('mesh-sidecar-injector', 'values', 'global: {hub: my.hub, tag: "2", proxy: {image: agent}}'),
        workload('Pod', 'shop/web', labels, proxied('my.hub/agent:2')),
      ],
    },
  ],
  IST0107: [
    {
      wrong: [service('shop/web', http, '{app: web}', ', annotations: {sidecar.istio.io/inject: "true"}')],
      at: at('0107 Service/shop/web metadata.annotations[sidecar.istio.io/inject]'),
      right: [service('shop/web', http, '{app: web}', ', annotations: {networking.istio.io/exportTo: "."}')],
    },
  ],
  IST0108: [
    {
      wrong: [web, annotated('sidecar.mesh.io/injekt: "true"')],
      at: at('0108 Deployment/shop/web spec.template.metadata.annotations[sidecar.mesh.io/injekt]'),
      right: [web, annotated('sidecar.mesh.io/inject: "true", example.com/injekt: "true"')],
    },
  ],
  IST0113: [
    {
      wrong: [injected, web, workload('Deployment', 'shop/web', labels), strict, plain],
      at: at('0113 DestinationRule/shop/d spec.trafficPolicy.tls.mode'),
      right: [namespace('shop', '{mesh-injection: disabled}'), web, workload('Deployment', 'shop/web', labels), strict, plain],
    },
  ],
  IST0116: [
    {
      wrong: [injected, web, service('shop/raw', '{name: tcp, port: 81, targetPort: 80}'), workload('Deployment', 'shop/web', labels)],
      at: at('0116 Deployment/shop/web spec.template.metadata.labels'),
      right: [injected, web, service('shop/raw', '{name: http, port: 81, targetPort: 80}'), workload('Deployment', 'shop/web', labels)],
    },
  ],
  IST0117: [
    {
      wrong: [injected, workload('Deployment', 'shop/web', labels)],
      at: at('0117 Deployment/shop/web spec.template.metadata.labels'),
      right: [injected, workload('Deployment', 'shop/web', labels, 'containers: [{name: worker, image: w}]')],
    },
  ],
  IST0118: [
    {
      wrong: [injected, service('shop/web', '{name: metrics, port: 80}')],
      at: at('0118 Service/shop/web spec.ports[0].name'),
      right: [injected, service('shop/web', '{name: metrics, appProtocol: http, port: 80}')],
    },
  ],
  IST0119: [
    {
      wrong: [service('shop/web', '{name: tcp, port: 80}'), workload('Deployment', 'shop/web', labels), tokens],
      at: at('0119 RequestAuthentication/shop/t spec.selector.matchLabels'),
      right: [service('shop/web', '{name: tcp, port: 81}, {name: http, port: 80}'), workload('Deployment', 'shop/web', labels), tokens],
    },
    {
      wrong: [service('shop/web', '{name: https, port: 443}'), workload('Deployment', 'shop/web', labels), tokens],
      at: at('0119 RequestAuthentication/shop/t spec.selector.matchLabels'),
      // A gateway looks at tokens where its Gateways have HTTP.
      right: [
        service('shop/web', '{name: https, port: 443}'),
        workload('Deployment', 'shop/web', labels, 'containers: [{name: istio-proxy, image: auto}]'),
        tokens,
      ],
    },
  ],
  IST0122: [
    {
      wrong: [web, route(`{match: [{uri: {regex: "api/v1"}}], ${toWeb}}`)],
      at: at('0122 VirtualService/shop/v spec.http[0].match[0].uri.regex'),
      right: [web, route(`{match: [{uri: {regex: "/api/v1|.*x"}}, {uri: {regex: "(a|/b).*"}}, {uri: {regex: "a|/b"}}], ${toWeb}}`)],
    },
  ],
  IST0123: [
    {
      wrong: [namespace('shop', '{mesh-injection: enabled, istio.io/rev: canary}')],
      at: at('0123 Namespace//shop metadata.labels'),
      right: [namespace('shop', '{istio.io/rev: canary}')],
    },
  ],
  IST0125: [
    {
      wrong: [web, annotated('traffic.sidecar.mesh.io/excludeInboundPorts: "80,x"')],
      at: at('0125 Deployment/shop/web spec.template.metadata.annotations[traffic.sidecar.mesh.io/excludeInboundPorts]'),
      right: [web, annotated('traffic.sidecar.mesh.io/excludeInboundPorts: "80,81"')],
    },
    {
      wrong: [web, annotated('sidecar.istio.io/inject: maybe')],
      at: at('0125 Deployment/shop/web spec.template.metadata.annotations[sidecar.istio.io/inject]'),
      right: [web, annotated('sidecar.istio.io/inject: "Yes"')],
    },
  ],
  IST0126: [
    {
      wrong: [configMap('mesh', 'meshNetworks', 'networks: {net: {endpoints: [{fromRegistry: nowhere}]}}')],
      at: at('0126 MeshNetworks// networks.net.endpoints[0].fromRegistry'),
      right: [configMap('mesh', 'meshNetworks', 'networks: {net: {endpoints: [{fromRegistry: Kubernetes}]}}')],
    },
  ],
  IST0135: [
    {
      wrong: [web, annotated('sidecar.mesh.io/discoveryAddress: "a:1"')],
      at: at('0135 Deployment/shop/web spec.template.metadata.annotations[sidecar.mesh.io/discoveryAddress]'),
      right: [web, annotated('proxy.mesh.io/config: "{discoveryAddress: a:1}"')],
    },
  ],
  IST0136: [
    {
      wrong: [web, annotated('inject.mesh.io/templates: grpc')],
      at: at('0136 Deployment/shop/web spec.template.metadata.annotations[inject.mesh.io/templates]'),
      right: [web, annotated('sidecar.mesh.io/logLevel: debug')],
    },
  ],
  MESH0002: [
    {
      wrong: [entry('shop/e', 'resolution: STATIC, endpoints: [{address: 127.0.0.1}]'), mesh('Sidecar', 'other/s', '{egress: [{hosts: ["./*"]}]}')],
      at: 'MESH0002 ServiceEntry/shop/e spec.endpoints[0].address',
      right: [
        entry('shop/e', 'exportTo: ["."], resolution: STATIC, endpoints: [{address: 127.0.0.1}]'),
        mesh('Sidecar', 'other/s', '{egress: [{hosts: ["./*"]}]}'),
      ],
    },
  ],
  MESH0003: [
    {
      wrong: [patch('envoy.extensions.filters.http.lua.v3.Lau')],
      at: 'MESH0003 EnvoyFilter/shop/f spec.configPatches[0].patch.value.typed_config.@type',
      right: [patch('envoy.extensions.filters.http.lua.v3.Lua')],
    },
    {
      wrong: [patch('envoy.extensions.filters.http.luaa.v3.Lua')],
      at: 'MESH0003 EnvoyFilter/shop/f spec.configPatches[0].patch.value.typed_config.@type',
      right: [patch('example.of.another.Build')],
    },
  ],
  MESH0004: [
    {
      wrong: [entry('shop/e', 'resolution: DNS'), entry('a/f', 'resolution: DNS')],
      at: 'MESH0004 ServiceEntry/shop/e spec.hosts[0]',
      right: [entry('shop/e', 'resolution: DNS, exportTo: ["."]'), entry('a/f', 'resolution: DNS, exportTo: ["."]')],
    },
    {
      wrong: [
        web,
        plain,
        mesh('DestinationRule', 'shop/e', '{host: web.shop.svc.cluster.local, trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}}}}'),
      ],
      at: 'MESH0004 DestinationRule/shop/e spec.trafficPolicy',
      right: [web, plain, mesh('DestinationRule', 'shop/e', '{host: web, subsets: [{name: a, labels: {a: b}}]}')],
    },
  ],
  MESH0008: [
    {
      wrong: [web, workload('Deployment', 'shop/web', labels, 'containers: [{name: app, image: app, ports: [{containerPort: 8080}]}]')],
      at: 'MESH0008 Service/shop/web spec.ports[0].port',
      right: [web, workload('Deployment', 'shop/web', labels)],
    },
  ],
  MESH0009: [
    {
      wrong: [service('shop/web', '{name: tcp, port: 80}'), route(`{${toWeb}}`)],
      at: 'MESH0009 VirtualService/shop/v spec.http',
      right: [service('shop/web', '{name: tcp, port: 80}, {name: web, port: 81}'), route(`{${toWeb}}`)],
    },
    {
      wrong: [
        web,
        secured('HTTPS', 'mode: SIMPLE, credentialName: c'),
        outside('tls: [{match: [{sniHosts: [a.example]}], route: [{destination: {host: web}}]}]'),
      ],
      at: 'MESH0009 VirtualService/shop/o spec.tls',
      right: [web, secured('TLS', 'mode: PASSTHROUGH'), outside('tls: [{match: [{sniHosts: [a.example]}], route: [{destination: {host: web}}]}]')],
    },
    {
      wrong: [web, secured('HTTPS', 'mode: PASSTHROUGH'), outside(`http: [{${toWeb}}]`)],
      at: 'MESH0009 VirtualService/shop/o spec.http',
      right: [web, secured('HTTPS', 'mode: SIMPLE, credentialName: c'), outside(`http: [{${toWeb}}]`)],
    },
    {
      wrong: [service('shop/web', `${http}, {name: tcp, port: 81}`), route(`{match: [{port: 81}], ${toWeb}}`)],
      at: 'MESH0009 VirtualService/shop/v spec.http[0].match[0].port',
      right: [service('shop/web', `${http}, {name: grpc, port: 81}`), route(`{match: [{port: 81}], ${toWeb}}`)],
    },
  ],
  MESH0010: [
    {
      wrong: [keys('jwksUri: "http://127.0.0.1:8080/keys"')],
      at: 'MESH0010 RequestAuthentication/shop/k spec.jwtRules[0].jwksUri',
      right: [keys('jwksUri: "http://10.1.1.1:8080/keys"')],
    },
    { wrong: [keys('')], at: 'MESH0010 RequestAuthentication/shop/k spec.jwtRules[0].issuer', right: [keys('jwksUri: "https://a.example/keys"')] },
  ],
  MESH0012: [
    {
      wrong: [web, mesh('VirtualService', 'shop/v', `{hosts: [wbe], http: [{${toWeb}}]}`)],
      at: 'MESH0012 VirtualService/shop/v spec.hosts[0]',
      right: [web, mesh('VirtualService', 'shop/v', `{hosts: [web, wbe.example], http: [{${toWeb}}]}`)],
    },
    {
      wrong: [web, mesh('VirtualService', 'shop/v', `{hosts: [web.shop], http: [{${toWeb}}]}`)],
      at: 'MESH0012 VirtualService/shop/v spec.hosts[0]',
      right: [web, mesh('VirtualService', 'shop/v', `{hosts: [web.bank], http: [{${toWeb}}]}`)],
    },
  ],
  MESH0014: [
    {
      wrong: [entry('shop/e', 'resolution: STATIC')],
      at: 'MESH0014 ServiceEntry/shop/e spec.resolution',
      right: [entry('shop/e', 'resolution: STATIC'), entry('shop/f', 'resolution: STATIC, endpoints: [{address: 10.0.0.1}]')],
    },
    {
      wrong: [entry('shop/e', 'resolution: STATIC'), entry('shop/f', 'resolution: DNS')],
      at: 'MESH0014 ServiceEntry/shop/e spec.resolution',
      right: [entry('shop/e', 'resolution: STATIC, workloadSelector: {labels: {app: a}}'), entry('shop/f', 'resolution: DNS')],
    },
  ],
  MESH0015: [
    {
      wrong: [mesh('WorkloadEntry', 'shop/w', '{address: 10.0.0.1, labels: {app: vm}}'), entry('bank/e', selecting)],
      at: 'MESH0015 WorkloadEntry/shop/w spec',
      right: [mesh('WorkloadEntry', 'shop/w', '{address: 10.0.0.1, labels: {app: vm}}'), entry('shop/e', selecting)],
    },
    {
      wrong: [mesh('WorkloadGroup', 'shop/w', '{metadata: {labels: {app: vm}}, template: {}}'), web],
      at: 'MESH0015 WorkloadGroup/shop/w spec',
      right: [
        mesh('WorkloadGroup', 'shop/w', '{metadata: {labels: {app: web}}, template: {}}'),
        web,
        mesh('WorkloadEntry', 'shop/r', '{address: 10.0.0.1, labels: {app: vm}}', ', annotations: {istio.io/autoRegistrationGroup: w}'),
      ],
    },
  ],
  MESH0016: [
    {
      wrong: [...passing, workload('Pod', 'bank/db', 'labels: {app: db}'), db('bank,default')],
      at: 'MESH0016 Service/shop/eastwest ',
      right: [...passing, workload('Pod', 'bank/db', 'labels: {app: db}'), db('bank,shop')],
    },
  ],
  MESH0013: [
    {
      wrong: [web, entry('shop/e', ''), mesh('VirtualService', 'shop/v', `{hosts: [a.exmple], http: [{${toWeb}}]}`)],
      at: 'MESH0013 VirtualService/shop/v spec.hosts[0]',
      right: [web, entry('shop/e', ''), mesh('VirtualService', 'shop/v', `{hosts: [b.example], http: [{${toWeb}}]}`)],
    },
  ],
  MESH0011: [
    ...['spiffe://cluster.local/ns/shop/sa/web', 'shop/web', 'cluster.local/sa/web'].map((principal) => ({
      wrong: [admits(`from: [{source: {principals: ["${principal}"]}}]`)],
      at: 'MESH0011 AuthorizationPolicy/shop/a spec.rules[0].from[0].source.principals[0]',
      right: [admits('from: [{source: {principals: ["cluster.local/ns/shop/sa/web", "*/sa/web", "partner.example/web"]}}]')],
    })),
    {
      wrong: [admits('when: [{key: source.principal, notValues: ["spiffe://a/ns/b/sa/c"]}]')],
      at: 'MESH0011 AuthorizationPolicy/shop/a spec.rules[0].when[0].notValues[0]',
      right: [admits('when: [{key: source.principal, notValues: ["a/ns/b/sa/c"]}]')],
    },
    {
      wrong: [peers('DISABLE'), workload('Deployment', 'shop/web', labels), admits('from: [{source: {namespaces: [shop]}}]')],
      at: 'MESH0011 AuthorizationPolicy/shop/a spec.rules[0].from[0].source.namespaces',
      right: [peers('STRICT'), workload('Deployment', 'shop/web', labels), admits('from: [{source: {namespaces: [shop]}}]')],
    },
    {
      wrong: [
        service('shop/web', '{name: tcp, port: 80}'),
        workload('Deployment', 'shop/web', labels),
        admits('to: [{operation: {notPaths: [/a]}}]'),
      ],
      at: 'MESH0011 AuthorizationPolicy/shop/a spec.rules[0].to[0].operation.notPaths',
      right: [web, workload('Deployment', 'shop/web', labels), admits('to: [{operation: {notPaths: [/a]}}]')],
    },
    {
      // A gateway takes connections as its Gateways say, whatever the protocol of its Service.
      wrong: [
        service('shop/web', '{name: tcp, port: 80}'),
        workload('Deployment', 'shop/web', labels),
        admits('to: [{operation: {methods: [GET]}}]'),
      ],
      at: 'MESH0011 AuthorizationPolicy/shop/a spec.rules[0].to[0].operation.methods',
      right: [
        service('shop/web', '{name: tcp, port: 80}'),
        workload('Deployment', 'shop/web', labels, 'containers: [{name: istio-proxy, image: auto}]'),
        admits('to: [{operation: {methods: [GET]}}]'),
      ],
    },
    {
      wrong: [tokens.replace('namespace: shop', 'namespace: bank'), admits('from: [{source: {requestPrincipals: ["*"]}}]')],
      at: 'MESH0011 AuthorizationPolicy/shop/a spec.rules[0].from[0].source.requestPrincipals',
      right: [tokens, admits('from: [{source: {requestPrincipals: ["*"]}}]')],
    },
    ...['delete', 'Post', 'ge*', '*et', 'Patc*'].map((method) => ({
      wrong: [admits(`to: [{operation: {methods: [GET, "${method}"]}}]`)],
      at: 'MESH0011 AuthorizationPolicy/shop/a spec.rules[0].to[0].operation.methods[1]',
      right: [admits(`to: [{operation: {methods: [GET, "${method.toUpperCase()}", "*", propfind, "x*"]}}]`)],
    })),
    {
      wrong: [admits('to: [{operation: {notMethods: [get]}}]')],
      at: 'MESH0011 AuthorizationPolicy/shop/a spec.rules[0].to[0].operation.notMethods[0]',
      right: [admits('to: [{operation: {notMethods: [GET]}}]')],
    },
    {
      wrong: [admits('when: [{key: "request.headers[:method]", notValues: [get]}]')],
      at: 'MESH0011 AuthorizationPolicy/shop/a spec.rules[0].when[0].notValues[0]',
      right: [admits('when: [{key: "request.headers[:method]", notValues: [GET]}, {key: "request.headers[x-method]", values: [get]}]')],
    },
    ...(
      [
        ['to: [{operation: {paths: ["/a/*/b"]}}]', 'to[0].operation.paths[0]', 'to: [{operation: {paths: ["/a/{*}/b", "/a/*", "*/b", "*"]}}]'],
        ['to: [{operation: {notPaths: ["/a/**"]}}]', 'to[0].operation.notPaths[0]', 'to: [{operation: {notPaths: ["/a/{**}"]}}]'],
        ['to: [{operation: {hosts: ["*.x.*"]}}]', 'to[0].operation.hosts[0]', 'to: [{operation: {hosts: ["*.x", "x.*"]}}]'],
        ['from: [{source: {principals: ["*/ns/*"]}}]', 'from[0].source.principals[0]', 'from: [{source: {principals: ["*/sa/web", "*"]}}]'],
        [
          'when: [{key: "request.headers[:path]", values: ["*/a/*"]}]',
          'when[0].values[0]',
          'when: [{key: "request.headers[accept]", values: ["*/*"]}]',
        ],
      ] as const
    ).map(([wrong, path, right]) => ({
      wrong: [admits(wrong)],
      at: `MESH0011 AuthorizationPolicy/shop/a spec.rules[0].${path}`,
      right: [admits(right)],
    })),
    ...(
      [
        ['uri: {prefix: "/api/*"}', 'uri.prefix', 'uri: {prefix: /api/}'],
        ['uri: {exact: "/b/*"}', 'uri.exact', 'uri: {regex: "/b/.*"}'],
        ['authority: {exact: "*.example"}', 'authority.exact', 'authority: {prefix: a.}, headers: {accept: {exact: "*/*"}}'],
        ['uri: {prefix: api}', 'uri.prefix', 'uri: {prefix: /api}'],
        ['uri: {exact: login}', 'uri.exact', 'uri: {exact: /login}'],
        ['uri: {exact: "*"}', 'uri.exact', 'uri: {prefix: ""}'],
        ['uri: {prefix: "/x?y=1"}', 'uri.prefix', 'uri: {prefix: /x}, queryParams: {y: {exact: "1"}}'],
        ['uri: {exact: "/x#y"}', 'uri.exact', 'uri: {exact: "/x%23y"}'],
        ['method: {exact: get}', 'method.exact', 'method: {exact: GET}'],
        ['method: {prefix: P}, scheme: {exact: HTTP}', 'scheme.exact', 'method: {exact: propfind}, scheme: {exact: https}'],
        ['headers: {":method": {exact: get}}', 'headers[:method].exact', 'headers: {":method": {exact: GET}, ":path": {exact: "/x?y=1"}}'],
        ['withoutHeaders: {":path": {prefix: api}}', 'withoutHeaders[:path].prefix', 'withoutHeaders: {":path": {prefix: /api}}'],
      ] as const
    ).map(([wrong, path, right]) => ({
      wrong: [web, route(`{match: [{${wrong}}], ${toWeb}}`)],
      at: `MESH0011 VirtualService/shop/v spec.http[0].match[0].${path}`,
      right: [web, route(`{match: [{${right}}], ${toWeb}}`)],
    })),
    {
      wrong: [web, route(`{corsPolicy: {allowOrigins: [{exact: a}], allowMethods: [GET, delete]}, ${toWeb}}`)],
      at: 'MESH0011 VirtualService/shop/v spec.http[0].corsPolicy.allowMethods[1]',
      right: [web, route(`{corsPolicy: {allowOrigins: [{exact: a}], allowMethods: ["*", DELETE, propfind]}, ${toWeb}}`)],
    },
  ],
}
