/** Each field that names something else, with a name that is right, misspelt, of another namespace, or not exported (docs/analysis.md, Y22). */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { patchFaults } from '../../../src/xds/envoy-filter/patch-check.ts'
import { mesh, service, workload } from '../../harness/faulty-objects.ts'
import { testSettings } from '../../harness/settings.ts'

const cases = ['right', 'misspelt', 'other namespace', 'not exported'] as const
type Case = (typeof cases)[number]

/** A field: the object that has it, with a name, and the names; undefined: there is no such name of the field. */
interface Field {
  readonly kind: string
  readonly path: string
  readonly code: string
  readonly object: (name: string) => string
  readonly names: Readonly<Record<Case, string | undefined>>
  /** The cases that are told. */
  readonly told: readonly Case[]
}

const namespace = (name: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}, labels: {mesh-injection: enabled}}`
const around = [
  ...['shop', 'bank'].map(namespace),
  service('shop/web', '{name: http, port: 80}'),
  service('bank/vault', '{name: http, port: 80}', '{app: vault}'),
  service('bank/secret', '{name: http, port: 80}', '{app: vault}', ', annotations: {networking.mesh.io/exportTo: "."}'),
  workload('Deployment', 'shop/web', 'labels: {app: web}'),
  workload('Deployment', 'bank/vault', 'labels: {app: vault}'),
  mesh('Gateway', 'shop/edge', '{selector: {app: web}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}'),
  mesh('Gateway', 'bank/inner', '{selector: {app: vault}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}'),
  mesh('DestinationRule', 'shop/web', '{host: web, subsets: [{name: v1}]}'),
]

/** Names of hosts: a short one of another namespace is one of none. */
const hosts = { right: 'web', misspelt: 'wbe', 'other namespace': 'vault', 'not exported': 'secret.bank.svc.cluster.local' }
const full = {
  right: 'web.shop.svc.cluster.local',
  misspelt: 'web.shpo.svc.cluster.local',
  'other namespace': 'vault.shop.svc.cluster.local',
  'not exported': 'secret.bank.svc.cluster.local',
}
const namespaces = { right: 'bank', misspelt: 'bnak', 'other namespace': undefined, 'not exported': undefined }
const labels = { right: '{app: web}', misspelt: '{app: wbe}', 'other namespace': '{app: vault}', 'not exported': undefined }
const wrong: readonly Case[] = ['misspelt', 'other namespace']

const routes = (spec: string) => mesh('VirtualService', 'shop/v', spec)
const toWeb = 'route: [{destination: {host: web}}]'
const secured = (kind: string, spec: string) => mesh(kind, 'shop/p', spec, '', 'security')
const patched = (match: string) =>
  mesh('EnvoyFilter', 'shop/f', `{configPatches: [{applyTo: CLUSTER, match: {${match}}, patch: {operation: REMOVE}}]}`)
const field = (
  kind: string,
  path: string,
  code: string,
  object: (name: string) => string,
  names: Field['names'],
  told: Field['told'] = wrong,
): Field => ({
  ...{ kind, path, code, object, names, told },
})

const fields: readonly Field[] = [
  field('VirtualService', 'spec.hosts[0]', 'MESH0012', (name) => routes(`{hosts: [${name}], http: [{${toWeb}}]}`), hosts),
  ...['route: [{destination: {host: NAME}}]', `${toWeb}, mirror: {host: NAME}`, `${toWeb}, mirrors: [{destination: {host: NAME}}]`].map(
    (route, index) =>
      field(
        'VirtualService',
        ['spec.http[0].route[0].destination.host', 'spec.http[0].mirror.host', 'spec.http[0].mirrors[0].destination.host'][index] ?? '',
        'IST0101',
        (name) => routes(`{hosts: [a.example], http: [{${route.replace('NAME', name)}}]}`),
        hosts,
      ),
  ),
  field(
    'VirtualService',
    'spec.http[0].route[0].destination.subset',
    'IST0101',
    (name) => routes(`{hosts: [a.example], http: [{route: [{destination: {host: web, subset: ${name}}}]}]}`),
    {
      ...{ right: 'v1', misspelt: 'v2', 'other namespace': undefined, 'not exported': undefined },
    },
  ),
  field('VirtualService', 'spec.gateways[0]', 'IST0101', (name) => routes(`{hosts: [a.example], gateways: [${name}], http: [{${toWeb}}]}`), {
    ...{ right: 'edge', misspelt: 'egde', 'other namespace': 'inner', 'not exported': 'bank/inner' },
  }),
  ...['http', 'tls', 'tcp'].flatMap((kind) => {
    const match = (text: string) =>
      routes(`{hosts: [a.example], ${kind}: [{match: [{${kind === 'tls' ? 'sniHosts: [a.example], ' : ''}${text}}], ${toWeb}}]}`)
    return [
      field('VirtualService', `spec.${kind}[0].match[0].sourceNamespace`, 'IST0101', (name) => match(`sourceNamespace: ${name}`), namespaces),
      field('VirtualService', `spec.${kind}[0].match[0].sourceLabels`, 'IST0127', (name) => match(`sourceLabels: ${name}`), labels, ['misspelt']),
    ]
  }),
  field(
    'VirtualService',
    'spec.exportTo[0]',
    'IST0101',
    (name) => routes(`{hosts: [a.example], exportTo: [${name}], http: [{${toWeb}}]}`),
    namespaces,
  ),
  field('DestinationRule', 'spec.host', 'IST0101', (name) => mesh('DestinationRule', 'shop/d', `{host: ${name}}`), hosts),
  field(
    'DestinationRule',
    'spec.exportTo[0]',
    'IST0101',
    (name) => mesh('DestinationRule', 'shop/d', `{host: web, exportTo: [${name}]}`),
    namespaces,
  ),
  field(
    'ServiceEntry',
    'spec.exportTo[0]',
    'IST0101',
    (name) => mesh('ServiceEntry', 'shop/e', `{hosts: [b.example], exportTo: [${name}], resolution: DNS}`),
    namespaces,
  ),
  field(
    'ServiceEntry',
    'spec.workloadSelector.labels',
    'IST0127',
    (name) => mesh('ServiceEntry', 'shop/e', `{hosts: [b.example], resolution: STATIC, workloadSelector: {labels: ${name}}}`),
    labels,
  ),
  field('Sidecar', 'spec.egress[0].hosts[0]', 'IST0101', (name) => mesh('Sidecar', 'shop/s', `{egress: [{hosts: ["./${name}"]}]}`), {
    ...hosts,
    'not exported': undefined,
  }),
  field('Sidecar', 'spec.egress[0].hosts[0]', 'IST0101', (name) => mesh('Sidecar', 'shop/s', `{egress: [{hosts: ["${name}/*"]}]}`), namespaces),
  field('Sidecar', 'spec.workloadSelector.labels', 'IST0127', (name) => mesh('Sidecar', 'shop/s', `{workloadSelector: {labels: ${name}}}`), labels),
  field(
    'Sidecar',
    'spec.outboundTrafficPolicy.egressProxy.host',
    'IST0101',
    (name) => mesh('Sidecar', 'shop/s', `{outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: ${name}}}}`),
    hosts,
  ),
  field('EnvoyFilter', 'spec.configPatches[0].match.cluster.service', 'IST0101', (name) => patched(`cluster: {service: ${name}}`), full),
  field(
    'EnvoyFilter',
    'spec.workloadSelector.labels',
    'IST0127',
    (name) => mesh('EnvoyFilter', 'shop/f', `{workloadSelector: {labels: ${name}}}`),
    labels,
  ),
  field(
    'Gateway',
    'spec.servers[0].hosts[0]',
    'IST0101',
    (name) => mesh('Gateway', 'shop/g', `{servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [${name}/c.example]}]}`),
    namespaces,
  ),
  field(
    'Gateway',
    'spec.selector',
    'IST0127',
    (name) => mesh('Gateway', 'shop/g', `{selector: ${name}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [c.example]}]}`),
    labels,
    ['misspelt'],
  ),
  ...['AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication'].map((kind) =>
    field(kind, 'spec.selector.matchLabels', 'IST0127', (name) => secured(kind, `{selector: {matchLabels: ${name}}}`), labels),
  ),
  ...['namespaces', 'notNamespaces'].map((list) =>
    field(
      'AuthorizationPolicy',
      `spec.rules[0].from[0].source.${list}[0]`,
      'IST0101',
      (name) => secured('AuthorizationPolicy', `{rules: [{from: [{source: {${list}: [${name}]}}]}]}`),
      namespaces,
    ),
  ),
  ...['values', 'notValues'].map((list) =>
    field(
      'AuthorizationPolicy',
      `spec.rules[0].when[0].${list}[0]`,
      'IST0101',
      (name) => secured('AuthorizationPolicy', `{rules: [{when: [{key: source.namespace, ${list}: [${name}]}]}]}`),
      namespaces,
    ),
  ),
  field('WorkloadEntry', 'spec', 'MESH0015', (name) => mesh('WorkloadEntry', 'shop/w', `{address: 10.0.0.1, labels: ${name}}`), labels),
  field('WorkloadGroup', 'spec', 'MESH0015', (name) => mesh('WorkloadGroup', 'shop/w', `{metadata: {labels: ${name}}, template: {}}`), labels),
]

/** The findings of the object with a field, `<code> <path>`. */
function told(document: string): string[] {
  const offline = new OfflineMesh(testSettings(), patchFaults)
  offline.add('all.yaml', [...around, document].join('\n---\n'))
  expect(offline.faults, document).to.deep.equal([])
  const analysis = new Analysis(offline.facts())
  analysis.refresh()
  const name = /name: (\w+), namespace: shop/.exec(document)?.[1]
  const kind = /kind: (\w+)/.exec(document)?.[1]
  return analysis.all().flatMap(({ object, code, path }) => (object === `${kind}/shop/${name}` ? `${code} ${path}` : []))
}

describe('fields that name something else', () => {
  for (const { kind, path, code, object, names, told: expected } of fields)
    for (const each of cases) {
      const name = names[each]
      if (name === undefined) continue
      it(`${kind} ${path} ${name} is ${expected.includes(each) ? 'told' : 'not told'}: ${each}`, () => {
        const found = told(object(name))
        if (expected.includes(each)) expect(found).to.include(`${code} ${path}`)
        else expect(found.filter((line) => /^(IST0101|IST0127|MESH001[2345])/.test(line))).to.deep.equal([])
      })
    }

  it('stand in the table of the documentation', () => {
    const page = readFileSync(new URL('../../../docs/analysis.md', import.meta.url), 'utf8')
    const rows = page.split('\n').filter((line) => line.startsWith('| ') && fields.some(({ kind }) => line.startsWith(`| ${kind} |`)))
    for (const { kind, path } of fields) {
      const written = `\`${path
        .replace(/^spec\./, '')
        .replace(/\[\d+\]/g, '[]')
        .replace(/\[\]$/, '')}\``
      if (path !== 'spec')
        expect(
          rows.find((line) => line.startsWith(`| ${kind} |`)),
          `${kind} ${written}`,
        ).to.contain(written)
    }
  })
})
