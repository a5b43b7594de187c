import { expect } from 'chai'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { pairValues, SiteCertificates, secretDocument } from '../../harness/gateway-secrets.ts'
import { testSettings } from '../../harness/settings.ts'

const object = (kind: string, path: string, spec: string, group = 'networking') => {
  const [namespace, name] = path.split('/')
  return `apiVersion: ${group}.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}`
}
const service = (path: string, ports: string, rest = 'selector: {app: web}') => {
  const [namespace, name] = path.split('/')
  return `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {${rest}, ports: [${ports}]}`
}
const http = '{name: http, port: 80}'
const deployment = (namespace: string, labels: string) =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: ${namespace}}\nspec: {template: {metadata: {labels: ${labels}}}}`
const namespace = (name: string, labels = '{}') => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}, labels: ${labels}}`
const routes = (path: string, hosts: string, rest: string) => object('VirtualService', path, `{hosts: [${hosts}], ${rest}}`)
const to = (destination: string) => `http: [{route: [{destination: {${destination}}}]}]`

function findingsOf(mesh: OfflineMesh) {
  const analysis = new Analysis(mesh.facts())
  analysis.refresh()
  return analysis.all()
}

/** The findings of documents, `<code> <object> <path>`. */
function found(...documents: string[]): string[] {
  const mesh = new OfflineMesh(testSettings())
  mesh.add('all.yaml', documents.join('\n---\n'))
  expect(mesh.faults).to.deep.equal([])
  return findingsOf(mesh).map(({ code, object, path }) => `${code} ${object} ${path}`)
}

/** The messages of the findings of documents. */
function messages(...documents: string[]): string[] {
  const mesh = new OfflineMesh(testSettings())
  mesh.add('all.yaml', documents.join('\n---\n'))
  return findingsOf(mesh).map(({ message }) => message)
}

describe('the analysis of configuration', () => {
  it('takes both spellings of the labels of the mesh for one, of workloads and of what selects them', () => {
    const aliases = '{service.istio.io/canonical-name: web, service.istio.io/canonical-revision: v1, topology.istio.io/network: one}'
    for (const [of, by] of [
      ['istio.io', 'istio.io'],
      ['istio.io', 'mesh.io'],
      ['mesh.io', 'istio.io'],
    ] as const) {
      const documents = [
        deployment('shop', aliases.replaceAll('istio.io', of)),
        ...[
          service('shop/web', http, 'selector: {service.istio.io/canonical-name: web}'),
          object('DestinationRule', 'shop/r', '{host: web, subsets: [{name: v1, labels: {service.istio.io/canonical-revision: v1}}]}'),
          object('AuthorizationPolicy', 'shop/p', '{selector: {matchLabels: {topology.istio.io/network: one}}, rules: [{}]}', 'security'),
          object('Sidecar', 'shop/s', '{workloadSelector: {labels: {topology.istio.io/network: one}}, egress: [{hosts: ["./*"]}]}'),
        ].map((document) => document.replaceAll('istio.io', by)),
      ]
      expect(found(...documents).filter((line) => line.startsWith('IST0127'))).to.deep.equal([])
      expect(found(...documents.map((document) => document.replace('canonical-revision: v1}}', 'canonical-revision: v2}}')))).to.include(
        'IST0127 DestinationRule/shop/r spec.subsets[0].labels',
      )
    }
  })

  it('tells labels of the mesh on Namespaces and pods that are misspelt, with the one that may be meant in the same spelling, and no others', () => {
    const said = (labels: string) => [
      ...messages(namespace('shop', labels)).map((message) => `Namespace: ${message}`),
      ...messages(deployment('shop', labels)).map((message) => `Pod: ${message}`),
    ]
    const meant = (label: string, ...on: string[]) =>
      on.map((kind) => `${kind}: it is no label of the mesh, so it has no effect; did you mean "${label}"?`)
    expect(said('{istio-injecton: enabled}')).to.deep.equal(meant('istio-injection', 'Namespace'))
    expect(said('{mesh-injecton: enabled}')).to.deep.equal(meant('mesh-injection', 'Namespace'))
    expect(said('{istio.io/rve: canary}')).to.deep.equal(meant('istio.io/rev', 'Namespace', 'Pod'))
    expect(said('{mesh.io/inject: "true"}')).to.deep.equal(meant('sidecar.mesh.io/inject', 'Namespace', 'Pod'))
    expect(said('{topology.istio.io/netwrk: one}')).to.deep.equal(meant('topology.istio.io/network', 'Namespace', 'Pod'))
    expect(said('{sidecar.istio.io/injct: "true"}')).to.deep.equal(meant('sidecar.istio.io/inject', 'Namespace', 'Pod'))
    expect(said('{sidecar.istio.io/inject: maybe}')).to.deep.equal(['Pod: "maybe" is neither "true" nor "false", so it has no effect on injection'])
    const others = ['istio: ingressgateway', 'istio.io/dataplane-mode: none', 'istio.io/env: a', 'example.com/rve: a', 'operator.istio.io/tag: a']
    expect(said(`{${[...others, 'sidecar.istio.io/inject: "false"', 'app.kubernetes.io/name: a', 'injection: a'].join(', ')}}`)).to.deep.equal([])
    expect(found(deployment('shop', '{sidecar.istio.io/injct: "true"}'))).to.deep.equal([
      'IST0133 Deployment/shop/d spec.template.metadata.labels[sidecar.istio.io/injct]',
    ])
  })

  it('names the labels of the mesh in both spellings, so also in that of the object', () => {
    const policy = object('AuthorizationPolicy', 'shop/p', '{selector: {matchLabels: {topology.istio.io/network: one}}, rules: [{}]}', 'security')
    expect(messages(deployment('shop', '{app: web}'), policy)).to.deep.equal([
      'no workload of the namespace shop has the labels topology.mesh.io/network=one or topology.istio.io/network=one, so it has no effect at present',
    ])
  })

  it('finds nothing in configuration that is right', () => {
    const all = [
      namespace('shop', '{mesh-injection: enabled}'),
      service('shop/web', http),
      deployment('shop', '{app: web, version: v1}'),
      routes(
        'shop/web',
        'web',
        'http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: web, subset: v1}, weight: 60}, {destination: {host: web}, weight: 40}]}, {route: [{destination: {host: web}}]}]',
      ),
      object('DestinationRule', 'shop/web', '{host: web.shop.svc.cluster.local, subsets: [{name: v1, labels: {version: v1}}]}'),
      object('Gateway', 'shop/edge', '{selector: {app: web}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*.example"]}]}'),
      routes('shop/outside', 'a.example', `gateways: [edge], ${to('host: web')}`),
      object(
        'AuthorizationPolicy',
        'shop/p',
        '{selector: {matchLabels: {app: web}}, rules: [{from: [{source: {namespaces: [shop, "sh*"]}}]}]}',
        'security',
      ),
      object('Sidecar', 'shop/default', '{egress: [{hosts: ["./*", "shop/web.shop.svc.cluster.local"]}]}'),
      object('ServiceEntry', 'shop/api', '{hosts: [api.example], ports: [{number: 443, name: https, protocol: HTTPS}], resolution: DNS}'),
      routes('shop/api', 'api.example', `tls: [{match: [{sniHosts: [api.example]}], route: [{destination: {host: api.example}}]}]`),
    ]
    expect(found(...all)).to.deep.equal([])
  })

  describe('of destinations', () => {
    it('finds hosts that no service has, and suggests those of services', () => {
      const all = [service('shop/reviews', http), routes('shop/v', 'reviews', to('host: reviws'))]
      expect(found(...all)).to.deep.equal(['IST0101 VirtualService/shop/v spec.http[0].route[0].destination.host'])
      expect(messages(...all)[0])
        .to.contain('there is no service reviws.shop.svc.cluster.local')
        .and.to.contain('did you mean "reviews"?')
      expect(found(service('shop/reviews', http), routes('shop/v', 'reviews', to('host: reviews.shp.svc.cluster.local')))).to.have.length(1)
    })

    it('finds them in mirrors, TLS and TCP routes, and takes wildcards of services as hosts', () => {
      const mirrors =
        'http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: web}}], mirror: {host: a.x}}, {route: [{destination: {host: web}}], mirrors: [{destination: {host: b.x}}]}]'
      const l4 = 'tls: [{match: [{sniHosts: [web.x]}], route: [{destination: {host: c.x}}]}], tcp: [{route: [{destination: {host: d.x}}]}]'
      const wild = object('ServiceEntry', 'shop/w', '{hosts: ["*.y"], ports: [{number: 80, name: http}]}')
      expect(
        found(service('shop/web', http), routes('shop/v', 'web', `${mirrors}, ${l4}`), wild, routes('shop/w', 'web.y', to('host: n.y'))),
      ).to.deep.equal([
        'IST0101 VirtualService/shop/v spec.http[0].mirror.host',
        'IST0101 VirtualService/shop/v spec.http[1].mirrors[0].destination.host',
        'MESH0009 VirtualService/shop/v spec.tcp',
        'IST0101 VirtualService/shop/v spec.tcp[0].route[0].destination.host',
        'MESH0009 VirtualService/shop/v spec.tls',
        'IST0101 VirtualService/shop/v spec.tls[0].route[0].destination.host',
      ])
    })

    it('says that TLS without authorities accepts every server, as proxies do', () => {
      const rule = object('DestinationRule', 'shop/web', '{host: web, trafficPolicy: {tls: {mode: SIMPLE, subjectAltNames: [web]}}}')
      expect(messages(service('shop/web', http), rule)).to.deep.equal([
        'neither caCertificates nor credentialName says whose certificates count, so that of every server is accepted: name them',
      ])
    })

    it('says that mirrors lose copies, and not requests', () => {
      const mirrored = routes('shop/v', 'web', 'http: [{route: [{destination: {host: web}}], mirror: {host: a.x}}]')
      expect(messages(service('shop/web', http), mirrored)).to.deep.equal(['there is no service a.x, so nothing is mirrored'])
    })

    it('finds ports that are missing or not those of the service, and subsets that no rule of a namespace in question defines', () => {
      const all = [
        service('shop/web', `${http}, {name: admin, port: 81}`),
        routes(
          'shop/v',
          'web',
          'http: [{route: [{destination: {host: web}, weight: 50}, {destination: {host: web, subset: v1, port: {number: 82}}, weight: 50}]}]',
        ),
        object('DestinationRule', 'other/web', '{host: web.shop.svc.cluster.local, subsets: [{name: v1, labels: {a: b}}]}'),
      ]
      expect(found(...all)).to.deep.equal([
        'IST0118 Service/shop/web spec.ports[1].name',
        'IST0112 VirtualService/shop/v spec.http[0].route[0].destination',
        'IST0101 VirtualService/shop/v spec.http[0].route[1].destination.port.number',
        'IST0101 VirtualService/shop/v spec.http[0].route[1].destination.subset',
      ])
    })

    it('finds weights that do not say what is meant', () => {
      const weighted = (one: string, other: string) =>
        found(
          service('shop/web', http),
          routes('shop/v', 'web', `http: [{route: [{destination: {host: web}${one}}, {destination: {host: web}${other}}]}]`),
        )
      expect(weighted(', weight: 90', ', weight: 20')).to.deep.equal(['IST0133 VirtualService/shop/v spec.http[0].route'])
      expect(weighted(', weight: 90', '')).to.deep.equal(['IST0133 VirtualService/shop/v spec.http[0].route[1]'])
      expect(weighted(', weight: 90', ', weight: 10')).to.deep.equal([])
    })
  })

  it('tells Services that are there twice, of which the first counts, and ports that are none; other kinds may be patches', () => {
    const mesh = new OfflineMesh(testSettings())
    const second = service('shop/web', '{name: http, port: 90}')
    const workloads = ['a', 'b'].map(
      (label) =>
        `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w, namespace: shop}\nspec: {template: {metadata: {labels: {app: ${label}}}}}`,
    )
    const rule = routes('shop/v', 'web', to('host: web, port: {number: 80}'))
    mesh.add('all.yaml', [service('shop/web', http), second, service('shop/odd', '{name: http, port: 70000}'), ...workloads, rule].join('\n---\n'))
    mesh.add('all.yaml', service('shop/web', http))
    const analysis = findingsOf(mesh).filter(({ object }) => object.startsWith('VirtualService'))
    expect(analysis).to.deep.equal([])
    expect(mesh.warnings.map(({ key, document, reason }) => `${key} ${document} ${reason}`)).to.deep.equal([
      'Service/shop/web 2 the same object is in all.yaml, document 1; the first one counts: remove one',
    ])
    expect(mesh.faults.map(({ key, path }) => `${key} ${path}`)).to.deep.equal(['Service/shop/odd spec.ports[0].port'])
  })

  describe('of delegates', () => {
    const toWeb = 'route: [{destination: {host: web.shop.svc.cluster.local}}]'
    const delegated = (match: string, namespace: string, spec: string) =>
      found(
        service('shop/web', http),
        routes('shop/v', 'web', `http: [{${match}delegate: {name: d, namespace: ${namespace}}}]`),
        object('VirtualService', `${namespace}/d`, spec),
      )

    it('finds those that give no routes: with hosts, not exported, with other matches, or without routes of their own', () => {
      const at = 'VirtualService/shop/v spec.http[0].delegate'
      expect(delegated('', 'shop', `{hosts: [x.example], http: [{${toWeb}}]}`)).to.include(`IST0101 ${at}`)
      expect(delegated('', 'bank', `{exportTo: ["."], http: [{${toWeb}}]}`)).to.deep.equal([`IST0101 ${at}`])
      expect(delegated('match: [{uri: {prefix: /c}}], ', 'bank', `{http: [{match: [{uri: {prefix: /zzz}}], ${toWeb}}]}`)).to.deep.equal([
        `IST0130 ${at}`,
      ])
      expect(delegated('', 'bank', '{http: [{delegate: {name: e}}]}')).to.have.members([
        `IST0130 ${at}`,
        'IST0101 VirtualService/bank/d spec.http[0].delegate',
        'IST0133 VirtualService/bank/d spec.http[0].delegate',
      ])
    })

    it('finds nothing wrong with those that are exported and agree', () => {
      expect(delegated('', 'shop', `{exportTo: ["."], http: [{${toWeb}}]}`)).to.deep.equal([])
      expect(
        delegated('match: [{uri: {prefix: /c}}], ', 'bank', `{exportTo: [shop], http: [{match: [{uri: {prefix: /c/d}}], ${toWeb}}]}`),
      ).to.deep.equal([])
    })
  })

  describe('of routes', () => {
    const ordered = (...matches: string[]) =>
      found(
        service('shop/web', http),
        routes(
          'shop/v',
          'web',
          `http: [${matches.map((match) => `{${match === '' ? '' : `match: [${match}], `}route: [{destination: {host: web}}]}`).join(', ')}]`,
        ),
      )
    it('finds those behind one that takes everything', () => {
      expect(ordered('', '{uri: {prefix: /a}}')).to.deep.equal(['IST0130 VirtualService/shop/v spec.http[1]'])
      expect(ordered('{uri: {prefix: /}}', '{uri: {prefix: /a}}')).to.deep.equal(['IST0130 VirtualService/shop/v spec.http[1]'])
      expect(ordered('{uri: {prefix: /}, method: {exact: GET}}', '{uri: {prefix: /a}}')).to.deep.equal([])
    })

    it('finds those that earlier ones cover, and single matches of them', () => {
      expect(ordered('{uri: {prefix: /a}}', '{uri: {prefix: /a/b}}')).to.deep.equal(['IST0130 VirtualService/shop/v spec.http[1]'])
      expect(ordered('{uri: {prefix: /a}}', '{uri: {exact: /a/b}}, {uri: {prefix: /c}}')).to.deep.equal([
        'IST0131 VirtualService/shop/v spec.http[1].match[0]',
      ])
      expect(ordered('{uri: {prefix: /a}, headers: {x: {exact: z}}}', '{uri: {prefix: /a}}')).to.deep.equal([])
      expect(ordered('{uri: {prefix: /A}, ignoreUriCase: true}', '{uri: {prefix: /a}}')).to.deep.equal([])
    })

    it('finds those that older VirtualServices of the host take at a Gateway, where routes that take everything come last', () => {
      const at = (name: string, match: string, host = 'a.example', more = '') =>
        routes(`shop/${name}`, host, `gateways: [g], ${more}http: [{${match && `match: [${match}], `}route: [{destination: {host: web}}]}]`)
      const g = object('Gateway', 'shop/g', '{servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}')
      const shared = (...services: string[]) => found(service('shop/web', http), g, ...services).filter((text) => text.startsWith('IST0130'))
      const second = ['IST0130 VirtualService/shop/b spec.http[0]']
      expect(shared(at('a', ''), at('b', ''))).to.deep.equal(second)
      expect(shared(at('a', '{uri: {prefix: /}}'), at('b', ''))).to.deep.equal(second)
      expect(shared(at('a', '{uri: {prefix: /x}}'), at('b', '{uri: {prefix: /x/y}}'))).to.deep.equal(second)
      for (const [one, other] of [
        [at('a', ''), at('b', '{uri: {prefix: /x}}')],
        [at('a', '{uri: {prefix: /x}}'), at('b', '')],
        [at('a', ''), at('b', '', 'b.example')],
        [at('a', '').replace('[g]', '[other]'), at('b', '')],
        [at('a', '').replace('route: [{destination: {host: web}}]', 'delegate: {name: d}'), at('b', '')],
      ] as const)
        expect(shared(one, other), one).to.deep.equal([])
      expect(messages(service('shop/web', http), g, at('a', ''), at('b', '')).filter((text) => text.startsWith('no request for'))).to.deep.equal([
        'no request for a.example at the Gateway shop/g reaches this route: spec.http[0] of the VirtualService shop/a, which is as old and first by name, takes all that it matches; put the routes into one, in order',
      ])
    })
  })

  it('finds gateways that are not there, hosts that they do not serve, and delegates that are not there', () => {
    const gateway = object(
      'Gateway',
      'shop/edge',
      '{servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [other/a.example, "./b.example"]}]}',
    )
    const web = service('shop/web', http)
    expect(found(web, gateway, routes('shop/v', 'a.example', `gateways: [egde, mesh], ${to('host: web')}`))).to.deep.equal([
      'IST0101 VirtualService/shop/v spec.gateways[0]',
    ])
    expect(found(web, gateway, routes('shop/v', 'a.example, b.example', `gateways: [edge], ${to('host: web')}`))).to.deep.equal([
      'IST0132 VirtualService/shop/v spec.hosts[0]',
    ])
    expect(found(web, routes('shop/v', 'web', 'http: [{delegate: {name: w}}]'))).to.deep.equal([
      'IST0101 VirtualService/shop/v spec.http[0].delegate',
    ])
  })

  it('finds hosts that two VirtualServices of the mesh have, where some namespace sees both', () => {
    const web = service('shop/web', http)
    const one = routes('shop/one', 'web', to('host: web'))
    expect(found(web, one, routes('b/two', 'web.shop.svc.cluster.local', to('host: web.shop.svc.cluster.local')))).to.deep.equal([
      'IST0109 VirtualService/b/two spec.hosts[0]',
      'IST0109 VirtualService/shop/one spec.hosts[0]',
    ])
    const hidden = (path: string) => routes(path, 'web.shop.svc.cluster.local', `exportTo: ["."], ${to('host: web.shop.svc.cluster.local')}`)
    expect(found(web, hidden('a/one'), hidden('b/two'))).to.deep.equal([])
  })

  it('finds selectors that match no workload, in the namespace or in all for the root namespace, and says nothing without workloads', () => {
    const policy = (path: string) => object('AuthorizationPolicy', path, '{selector: {matchLabels: {app: nobody}}, rules: [{}]}', 'security')
    expect(found(policy('shop/p'))).to.deep.equal([])
    expect(found(policy('shop/p'), deployment('other', '{app: nobody}'))).to.deep.equal([
      'IST0127 AuthorizationPolicy/shop/p spec.selector.matchLabels',
    ])
    expect(found(policy('mesh-system/p'), deployment('other', '{app: nobody}'))).to.deep.equal([])
    const pod =
      'apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, namespace: shop}\nspec: {jobTemplate: {spec: {template: {metadata: {labels: {app: nobody}}}}}}'
    expect(found(policy('shop/p'), pod)).to.deep.equal([])
  })

  it('finds namespaces that do not exist, of objects and in policies and Sidecars', () => {
    const policy = object('AuthorizationPolicy', 'shp/p', '{rules: [{from: [{source: {notNamespaces: [default, shopp]}}]}]}', 'security')
    expect(found(policy)).to.deep.equal([])
    expect(found(namespace('shop'), policy, object('Sidecar', 'shop/s', '{egress: [{hosts: ["gone/*", "~/x"]}]}'))).to.deep.equal([
      'IST0101 AuthorizationPolicy/shp/p metadata.namespace',
      'IST0101 AuthorizationPolicy/shp/p spec.rules[0].from[0].source.notNamespaces[1]',
      'IST0101 Sidecar/shop/s spec.egress[0].hosts[0]',
    ])
  })

  it('takes namespaces that have services or workloads, and those of the control plane and of every cluster, for being there in files', () => {
    const imported = ['services', 'workloads', 'kube-system', 'mesh-system', 'istio-system', 'default', 'pods']
    const sidecar = object('Sidecar', 'shop/s', `{egress: [{hosts: [${imported.map((name) => `"${name}/*"`).join(', ')}]}]}`)
    const all = [namespace('shop'), sidecar, service('services/web', http, 'selector: {}'), deployment('workloads', '{app: web}')]
    expect(found(...all)).to.deep.equal(['IST0101 Sidecar/shop/s spec.egress[0].hosts[6]'])
    expect(messages(...all)).to.deep.equal(['there is no namespace pods, so nothing is imported'])
    expect(messages(namespace('pads'), ...all)[0]).to.contain('did you mean "pads"?')
    // Labels of a namespace that only has a workload are not known, so neither is whether its pods get a sidecar.
    expect(found(namespace('shop'), service('other/web', '{name: web, port: 80}'))).to.deep.equal(['IST0118 Service/other/web spec.ports[0].name'])
    const policy = object('AuthorizationPolicy', 'other/p', '{}', 'security')
    expect(found(namespace('shop'), policy)).to.deep.equal(['IST0101 AuthorizationPolicy/other/p metadata.namespace'])
    expect(found(namespace('shop'), policy, service('other/web', http))).to.deep.equal([])
    const mesh = new OfflineMesh(testSettings())
    mesh.add('all.yaml', [namespace('shop'), policy, service('other/web', http)].join('\n---\n'))
    mesh.know('namespaces')
    expect(findingsOf(mesh).map(({ path }) => path)).to.deep.equal(['metadata.namespace'])
  })

  it('takes the service of the API server, which every cluster has, for being there', () => {
    const host = 'kubernetes.default.svc.cluster.local'
    expect(found(object('DestinationRule', 'shop/r', `{host: ${host}}`), routes('shop/v', 'api.example', to(`host: ${host}`)))).to.deep.equal([])
  })

  it('finds Secrets of Gateways that are not there, or lack what the Gateway needs', () => {
    const gateway = object(
      'Gateway',
      'shop/g',
      '{servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: cret}}]}',
    )
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: cert, namespace: shop}\ntype: Opaque\nstringData: {token: x}'
    expect(found(gateway)).to.deep.equal([])
    const missing = ['IST0101 Gateway/shop/g spec.servers[0].tls.credentialName']
    expect(found(gateway, secret)).to.deep.equal(missing)
    // Gateways read Secrets of the namespace of their workloads.
    const selecting = gateway.replace('{servers', '{selector: {app: edge}, servers').replaceAll('cret', 'cert')
    const workload = (namespace: string) =>
      `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: edge, namespace: ${namespace}}\nspec: {template: {metadata: {labels: {app: edge}}}}`
    const made = new SiteCertificates()
    const values = pairValues(made.issue('shop.example', made.authority('root')))
    made.dispose()
    const pair = secretDocument('shop/cert', values)
    expect(found(selecting, pair, workload('shop'))).to.deep.equal([])
    expect(found(selecting, pair, workload('edge'))).to.deep.equal(missing)
    expect(found(selecting, secret, workload('shop'))).to.deep.equal(missing)
    expect(found(selecting, secretDocument('shop/cert', values, 'kubernetes.io/dockerconfigjson'), workload('shop'))).to.deep.equal(missing)
    expect(found(selecting.replace('SIMPLE', 'MUTUAL'), pair, workload('shop'))).to.deep.equal(missing)
  })

  it('finds rules of hosts that are not there, subsets without workloads, and TLS that verifies nobody', () => {
    const rule =
      '{host: web, subsets: [{name: v2, labels: {version: v2}}], trafficPolicy: {tls: {mode: SIMPLE}, portLevelSettings: [{port: {number: 80}, tls: {mode: SIMPLE}}]}}'
    expect(found(service('shop/web', http), deployment('shop', '{app: web, version: v1}'), object('DestinationRule', 'shop/r', rule))).to.deep.equal([
      'IST0127 DestinationRule/shop/r spec.subsets[0].labels',
      'IST0129 DestinationRule/shop/r spec.trafficPolicy.portLevelSettings[0].tls',
      'IST0128 DestinationRule/shop/r spec.trafficPolicy.tls',
    ])
    expect(found(object('DestinationRule', 'shop/r', '{host: nobody}'))).to.deep.equal(['IST0101 DestinationRule/shop/r spec.host'])
  })

  it('finds Sidecars of which only one counts', () => {
    const sidecar = (path: string, selector = '') => object('Sidecar', path, `{${selector}egress: [{hosts: ["*/*"]}]}`)
    const selects = 'workloadSelector: {labels: {app: web}}, '
    expect(found(sidecar('shop/a'), sidecar('shop/b'), sidecar('shop/c', selects), sidecar('shop/d', selects), sidecar('x/e'))).to.deep.equal([
      'IST0111 Sidecar/shop/a spec',
      'IST0111 Sidecar/shop/b spec',
      'IST0110 Sidecar/shop/c spec.workloadSelector.labels',
      'IST0110 Sidecar/shop/d spec.workloadSelector.labels',
    ])
  })

  it('suggests annotations with the group that is written', () => {
    for (const domain of ['istio.io', 'mesh.io'])
      for (const [given, meant] of [
        [`sidecar.${domain}/injct`, `sidecar.${domain}/inject`],
        [`proxy.${domain}/confg`, `proxy.${domain}/config`],
      ])
        expect(messages(`apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop, annotations: {${given}: x}}\nspec: {}`).join()).to.contain(
          `did you mean "${meant}"?`,
        )
  })

  it('finds backends of Ingresses that are not there, by number and by name', () => {
    const ingress = (backend: string) =>
      `apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, namespace: shop}\nspec: {defaultBackend: {service: {name: web, port: {number: 80}}}, rules: [{host: a.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: ${backend}}}]}}]}`
    const at = 'spec.rules[0].http.paths[0].backend.service'
    const web = service('shop/web', http)
    expect(found(web, ingress('{name: web, port: {name: http}}'))).to.deep.equal([])
    expect(found(web, ingress('{name: wbe, port: {number: 80}}'))).to.deep.equal([`IST0101 Ingress/shop/i ${at}.name`])
    expect(messages(service('shop/reviews', http), web, ingress('{name: reviws, port: {number: 80}}'))[0]).to.contain('did you mean "reviews"?')
    expect(found(web, ingress('{name: web, port: {number: 81}}'))).to.deep.equal([`IST0101 Ingress/shop/i ${at}.port.number`])
    expect(found(web, ingress('{name: web, port: {name: htp}}'))).to.deep.equal([`IST0101 Ingress/shop/i ${at}.port.name`])
  })

  it('finds namespaces of export lists that do not exist, of objects and of Services', () => {
    const entry = (targets: string) =>
      object('ServiceEntry', 'shop/e', `{hosts: [a.example], exportTo: [${targets}], ports: [{number: 80, name: http}], resolution: DNS}`)
    const exported = `apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop, annotations: {networking.istio.io/exportTo: "., shpo"}}\nspec: {ports: [${http}]}`
    expect(found(entry('shpo'), exported)).to.deep.equal([])
    expect(found(namespace('shop'), entry('".", shop'))).to.deep.equal([])
    expect(found(namespace('shop'), entry('shop, shpo'), exported)).to.deep.equal([
      'IST0101 Service/shop/web metadata.annotations[networking.istio.io/exportTo]',
      'IST0101 ServiceEntry/shop/e spec.exportTo[1]',
    ])
  })

  it('finds what only the first counts of: subsets, servers of a port, peer policies, entries of a host', () => {
    const rule = '{host: web, subsets: [{name: v1, labels: {version: v1}}, {name: v1, labels: {version: v2}}]}'
    expect(found(service('shop/web', http), object('DestinationRule', 'shop/r', rule))).to.deep.equal([
      'MESH0004 DestinationRule/shop/r spec.subsets[1].name',
    ])
    const server = (protocol: string, name: string, rest = '') =>
      `{port: {number: 443, name: ${name}, protocol: ${protocol}}, hosts: [${name}.x]${rest}}`
    const gateway = (...servers: string[]) => object('Gateway', 'shop/g', `{servers: [${servers.join(', ')}]}`)
    const tls = ', tls: {mode: SIMPLE, credentialName: c}'
    expect(found(gateway(server('HTTPS', 'a', tls), server('TLS', 'b', ', tls: {mode: PASSTHROUGH}')))).to.deep.equal([])
    expect(found(gateway(server('HTTP', 'a'), server('GRPC', 'b')))).to.deep.equal([])
    expect(found(gateway(server('HTTPS', 'a', tls), server('HTTP', 'b')))).to.deep.equal(['MESH0006 Gateway/shop/g spec.servers[1].port'])
    expect(found(gateway(server('TCP', 'a'), server('TCP', 'b')))).to.deep.equal(['MESH0006 Gateway/shop/g spec.servers[1].port'])
    const peers = (name: string, labels: string) =>
      object('PeerAuthentication', `shop/${name}`, `{selector: {matchLabels: ${labels}}, mtls: {mode: STRICT}}`, 'security')
    expect(found(peers('a', '{a: b, c: d}'), peers('b', '{c: d, a: b}'), peers('c', '{a: b}'))).to.deep.equal([
      'MESH0007 PeerAuthentication/shop/b spec.selector.matchLabels',
    ])
    const entry = (name: string, rest: string) =>
      object('ServiceEntry', `shop/${name}`, `{hosts: [a.example], ports: [{number: 80, name: http}], ${rest}}`)
    expect(found(entry('a', 'resolution: DNS'), entry('b', 'resolution: DNS'))).to.deep.equal([])
    expect(found(entry('a', 'resolution: DNS'), entry('b', 'resolution: NONE'))).to.deep.equal(['MESH0004 ServiceEntry/shop/b spec.hosts[0]'])
  })

  it('finds what selects nothing, and hosts for the routes of a namespace that does not exist', () => {
    const entry = (labels: string) =>
      object(
        'ServiceEntry',
        'shop/e',
        `{hosts: [a.example], resolution: STATIC, ports: [{number: 80, name: http}], workloadSelector: {labels: ${labels}}}`,
      )
    const pods = deployment('shop', '{app: web}')
    expect(found(entry('{app: web}'), pods)).to.deep.equal([])
    expect(found(entry('{app: wbe}'), pods)).to.deep.equal(['IST0127 ServiceEntry/shop/e spec.workloadSelector.labels'])
    const gateway = (host: string) => object('Gateway', 'shop/g', `{servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["${host}"]}]}`)
    for (const host of ['*', './a.example', '*/a.example', 'shop/a.example']) expect(found(gateway(host), namespace('shop')), host).to.deep.equal([])
    expect(found(gateway('shup/a.example'), namespace('shop'))).to.deep.equal(['IST0101 Gateway/shop/g spec.servers[0].hosts[0]'])
  })

  it('finds matches and settings for what is not there, tries longer than the request, and labels for injection with another value', () => {
    const route = (match: string, rest = '') =>
      routes('shop/v', 'web', `http: [{match: [${match}], route: [{destination: {host: web}}]${rest}}, {route: [{destination: {host: web}}]}]`)
    const others = [namespace('shop', '{mesh-injection: enabled}'), service('shop/web', http), deployment('shop', '{app: web}')]
    const foundIn = (...documents: string[]) => found(...documents, ...others)
    expect(
      foundIn(route('{port: 80, sourceNamespace: shop, sourceLabels: {app: web}}', ', timeout: 2s, retries: {attempts: 2, perTryTimeout: 1s}')),
    ).to.deep.equal([])
    expect(foundIn(route('{port: 81}, {sourceNamespace: shup}, {sourceLabels: {app: wbe}}'))).to.deep.equal([
      'IST0101 VirtualService/shop/v spec.http[0].match[0].port',
      'IST0101 VirtualService/shop/v spec.http[0].match[1].sourceNamespace',
      'IST0127 VirtualService/shop/v spec.http[0].match[2].sourceLabels',
    ])
    expect(foundIn(route('{uri: {prefix: /a}}', ', timeout: 1s, retries: {attempts: 2, perTryTimeout: 10s}'))).to.deep.equal([
      'IST0133 VirtualService/shop/v spec.http[0].retries.perTryTimeout',
    ])
    const rule = (port: number) => object('DestinationRule', 'shop/d', `{host: web, trafficPolicy: {portLevelSettings: [{port: {number: ${port}}}]}}`)
    expect(foundIn(rule(80))).to.deep.equal([])
    expect(foundIn(rule(81))).to.deep.equal(['IST0101 DestinationRule/shop/d spec.trafficPolicy.portLevelSettings[0].port.number'])
    expect(found(namespace('shop', '{mesh-injection: disabled}'))).to.deep.equal([])
    expect(found(namespace('shop', '{istio-injection: enable}'))).to.deep.equal(['IST0133 Namespace//shop metadata.labels'])
  })

  it('names the label of a gateway of the charts where a Gateway selects that of others', () => {
    const gateway = object('Gateway', 'shop/g', '{selector: {istio: edge}, servers: [{port: {number: 80, name: p, protocol: HTTP}, hosts: ["*"]}]}')
    const pod = (labels: string) =>
      `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: gw, namespace: gw}\nspec: {template: {metadata: {labels: {app: gw${labels}}}, spec: {containers: [{name: mesh-proxy, image: a}]}}}`
    const said = (labels: string) =>
      messages(gateway, pod(labels), namespace('shop'), namespace('gw')).filter((message) => message.includes('istio=edge'))
    const nothing = 'no workload has the labels istio=edge, so it has no effect at present'
    expect(said(', mesh: edge')).to.deep.equal([`${nothing}; one has mesh=edge`])
    expect(said(', mesh: other')).to.deep.equal([nothing])
    expect(said(', istio: edge')).to.deep.equal([])
  })

  it('finds ServiceEntries with the host of a Service, and says which of them counts', () => {
    const entry = (path: string, host: string) =>
      object('ServiceEntry', path, `{hosts: [${host}], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.1.1.1}]}`)
    const said = (path: string, host = 'web.shop.svc.cluster.local') =>
      messages(entry(path, host), service('shop/web', http)).filter((message) => message.includes('Service shop/web'))
    expect(said('shop/e')).to.deep.equal([
      'the Service shop/web has web.shop.svc.cluster.local too, which does not count: its selector and ports have no effect',
    ])
    expect(said('other/e')).to.deep.equal([
      'web.shop.svc.cluster.local is also the host of the Service shop/web: a namespace that sees both uses one of them',
    ])
    for (const host of ['api.shop.svc.cluster.local', 'a.web.shop.svc.cluster.local', 'web.shop'])
      expect(said('shop/e', host), host).to.deep.equal([])
  })

  it('does not say of what is invalid that it is not there', () => {
    const invalid = object('Gateway', 'shop/g2', '{servers: [{port: {number: 0, name: http, protocol: HTTP}, hosts: [a.example]}]}')
    const other = object('Gateway', 'shop/g1', '{servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [b.example]}]}')
    const outside = routes('shop/outside', 'a.example', `gateways: [g2], ${to('host: web')}`)
    const said = messages(invalid, other, outside, service('shop/web', http)).filter((message) => message.includes('Gateway'))
    expect(said).to.deep.equal(['the Gateway shop/g2 is invalid, as is told of itself, so these routes are nowhere'])
    expect(messages(other, outside, service('shop/web', http)).join())
      .to.contain('there is no Gateway shop/g2')
      .and.to.contain('did you mean "shop/g1"')
  })

  it('does not ask for the injection of a namespace whose pods are proxies', () => {
    const gateway = `apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: g, namespace: edge}\nspec: {template: {metadata: {labels: {app: g, sidecar.mesh.io/inject: "false"}}, spec: {containers: [{name: mesh-proxy, image: i}]}}}`
    const plain = gateway.replace('mesh-proxy', 'web')
    const config = object('Gateway', 'edge/g', '{selector: {app: g}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}')
    expect(found(gateway, config, namespace('edge'))).to.deep.equal([])
    expect(found(plain, config, namespace('edge'))).to.deep.equal(['IST0102 Namespace//edge metadata.name'])
  })

  it('tells fields beside the spec that do not exist, with what may be meant', () => {
    const mesh = new OfflineMesh(testSettings())
    mesh.add('a.yaml', object('Sidecar', 'shop/s', '{}').replace('spec:', 'specs:'))
    expect(mesh.warnings.map(({ path, reason }) => `${path}: ${reason}`)).to.deep.equal(['specs: unknown field, left out; did you mean "spec"?'])
  })

  it('says nothing to be missing among what was not read', () => {
    const all = [
      routes(
        'shop/v',
        'web',
        `gateways: [edge], http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: wbe, subset: v1}}]}, {delegate: {name: x}}]`,
      ),
      object('DestinationRule', 'shop/r', '{host: nobody}'),
      object(
        'Gateway',
        'shop/g',
        '{selector: {a: b}, servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: c}}]}',
      ),
    ]
    const unread = (kinds: readonly string[], readIn: readonly string[] = []) => {
      const mesh = new OfflineMesh(testSettings())
      mesh.add('all.yaml', all.join('\n---\n'))
      for (const kind of kinds) mesh.setUnread(kind, readIn)
      for (const what of ['secrets', 'workloads', 'namespaces'] as const) mesh.know(what)
      return findingsOf(mesh).map(({ code, path }) => `${code} ${path}`)
    }
    const known = unread([])
    expect(known).to.have.length(9)
    const kinds = ['Service', 'ServiceEntry', 'Secret', 'Pod', 'Namespace', 'Gateway', 'VirtualService']
    expect(unread(kinds)).to.deep.equal([])
    expect(
      unread(
        kinds.filter((kind) => kind !== 'ServiceEntry'),
        ['shop'],
      ),
    ).to.deep.equal(known.filter((line) => !/metadata.namespace|IST0127/.test(line)))
  })

  it('finds ports of ServiceEntries whose protocol is not known, and TCP without addresses', () => {
    const entry = (ports: string, rest = '') => object('ServiceEntry', 'shop/e', `{hosts: [a.example], ${rest}resolution: DNS, ports: [${ports}]}`)
    expect(found(entry('{number: 80, name: web, protocol: HTPP}'))).to.deep.equal(['IST0133 ServiceEntry/shop/e spec.ports[0].protocol'])
    expect(found(entry('{number: 5432, name: tcp, protocol: TCP}'))).to.deep.equal(['IST0134 ServiceEntry/shop/e spec.ports[0]'])
    expect(found(entry('{number: 5432, name: tcp, protocol: TCP}', 'addresses: [10.1.1.1], '))).to.deep.equal([])
  })
})
