import { expect } from 'chai'
import { parseAllDocuments } from 'yaml'
import { Analysis } from '../../../src/analysis/analysis.ts'
import { codes } from '../../../src/analysis/finding.ts'
import { OfflineMesh } from '../../../src/analysis/offline-mesh.ts'
import { FilePositions } from '../../../src/analysis/positions.ts'
import { located } from '../../../src/analysis/report.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { patchFaults } from '../../../src/xds/envoy-filter/patch-check.ts'
import { examples, mesh, service, toWeb } from '../../harness/faulty-objects.ts'
import { testSettings } from '../../harness/settings.ts'

/** The steps of a path of a finding. */
const stepsOf = (path: string): string[] => [...path.matchAll(/\[([^\]]*)\]|[^.[\]]+/g)].map(([whole, inner]) => inner ?? whole)

const { canonicalKey } = meshNames('mesh.io')

/** Finds the field at a path, as a user would, and returns its name or number; undefined: there is none. Objects of the mesh have names in the form of the mesh. */
function fieldAt(given: unknown, path: string): string | undefined {
  let at = given
  let last: string | undefined
  for (const step of stepsOf(path)) {
    const [field, value] = Object.entries(at ?? {}).find(([key]) => key === step || canonicalKey(key) === step) ?? []
    if (field === undefined) return undefined
    at = value
    last = field
  }
  return last
}

/** The codes that were found. */
const seen = new Set<string>()

/** The findings of documents whose path leads to no field, or whose position is not that of the field. */
function astray(documents: readonly string[], domain = 'mesh.io'): string[] {
  const text = documents.join('\n---\n').replaceAll('mesh.io', domain)
  const offline = new OfflineMesh(testSettings(), patchFaults)
  offline.add('all.yaml', text)
  const analysis = new Analysis(offline.facts())
  analysis.refresh()
  const values = parseAllDocuments(text).map((document) => document.toJS() as unknown)
  const lines = text.split('\n')
  const positions = new FilePositions(text, 'mesh.io')
  const positionOf = (_file: string, document: number, key: string | undefined, path: string) => positions.of(document, key, path)
  return analysis.all().flatMap((finding) => {
    seen.add(finding.code)
    // What is told of the whole object has no field; the networks of the mesh are a text in one.
    if (finding.path === '' || finding.object === 'MeshNetworks//') return []
    const { document, line = 0, column = 0 } = located(finding, offline.placeOf(finding.object), 'mesh.io', positionOf)
    const field = fieldAt(values[document - 1], finding.path)
    const found = lines[line - 1]?.slice(column - 1) ?? ''
    const isThere = field !== undefined && (/^\d+$/.test(field) || found.replace(/^"/, '').startsWith(field))
    return isThere ? [] : [`${finding.code} ${finding.object} ${finding.path} (${line}:${column} ${found.slice(0, 20)})`]
  })
}

const matched = `{match: [{uri: {prefix: /a/b}}, {uri: {exact: /c}}], ${toWeb}}`

describe('the paths of findings', () => {
  for (const [code, given] of Object.entries(examples))
    it(`lead to a field that is there, of ${code}`, () => {
      for (const { wrong } of given) {
        expect(astray(wrong)).to.deep.equal([])
        expect(astray(wrong, 'istio.io')).to.deep.equal([])
      }
    })

  const policy = (kind: string, spec: string, name = 'p') => mesh(kind, `shop/${name}`, spec, '', 'security')
  const others: Readonly<Record<string, readonly string[]>> = {
    'selectors of all kinds': [
      ...['AuthorizationPolicy', 'PeerAuthentication', 'RequestAuthentication'].map((kind) => policy(kind, '{selector: {matchLabels: {app: x}}}')),
      policy('AuthorizationPolicy', '{targetRef: {kind: Gateway, group: gateway.networking.k8s.io, name: x}}', 'q'),
      policy('AuthorizationPolicy', '{targetRefs: [{kind: Gateway, group: gateway.networking.k8s.io, name: x}]}', 'r'),
      mesh('Sidecar', 'shop/s', '{workloadSelector: {labels: {app: x}}}'),
      mesh('Sidecar', 'shop/t', '{workloadSelector: {matchLabels: {app: x}}}'),
      mesh('EnvoyFilter', 'shop/f', '{workloadSelector: {labels: {app: x}}, configPatches: []}'),
      mesh('Gateway', 'shop/g', '{selector: {app: x}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}'),
      'apiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: shop, labels: {app: other}}\nspec: {containers: []}',
    ],
    'policies and Sidecars without a selector': [
      ...['a', 'b'].map((name) => policy('PeerAuthentication', '{mtls: {mode: STRICT}}', name)),
      ...['c', 'd'].map((name) => policy('PeerAuthentication', '{}', name)),
      ...['a', 'b'].map((name) => mesh('Sidecar', `shop/${name}`, '{egress: [{hosts: ["./*"]}]}')),
    ],
    'fields that are left out': [
      service('shop/web', '{port: 80}, {port: 81}'),
      mesh(
        'VirtualService',
        'shop/v',
        `{hosts: [web], http: [{${toWeb}}, {route: [{destination: {host: web}, weight: 10}, {destination: {host: web}}]}]}`,
      ),
      mesh('ServiceEntry', 'shop/e', '{hosts: [a.example], ports: [{number: 90, name: tcp}], resolution: DNS}'),
      mesh('VirtualService', 'shop/w', `{hosts: [web], http: [{${toWeb}}]}`).replace(', namespace: shop', ''),
    ],
    'routes, rules and servers': [
      service('shop/web', '{port: 80, name: http}'),
      ...['v', 'w'].map((name) =>
        mesh(
          'VirtualService',
          `shop/${name}`,
          `{hosts: [web], http: [{match: [{uri: {prefix: /a}}], ${toWeb}}, ${matched}, {${toWeb}}, {${toWeb}}]}`,
        ),
      ),
      mesh('VirtualService', 'shop/x', `{hosts: [b.example], gateways: [g], http: [{${toWeb}}]}`),
      mesh(
        'DestinationRule',
        'shop/d',
        '{host: web, trafficPolicy: {tls: {mode: SIMPLE}, portLevelSettings: [{port: {number: 80}, tls: {mode: SIMPLE}}]}}',
      ),
      mesh(
        'Gateway',
        'shop/g',
        `{servers: [${['HTTP', 'TCP'].map((protocol) => `{port: {number: 80, name: ${protocol}, protocol: ${protocol}}, hosts: [a.example]}`)}]}`,
      ),
      mesh(
        'Sidecar',
        'shop/s',
        '{egress: [{hosts: ["*/lost.example"]}]}',
        ', annotations: {sidecar.mesh.io/injct: "true", sidecar.mesh.io/inject: "true"}',
      ),
    ],
    'templates of CronJobs': [
      'apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, namespace: shop}\nspec: {jobTemplate: {spec: {template: {metadata: {annotations: {sidecar.mesh.io/injekt: "true"}}, spec: {containers: []}}}}}',
    ],
  }
  for (const [name, documents] of Object.entries(others))
    it(`lead to a field that is there, of ${name}`, () => {
      expect(astray(documents)).to.deep.equal([])
      expect(astray(documents, 'istio.io')).to.deep.equal([])
    })

  it('were looked at of all codes but those of what cannot be analyzed or read', () => {
    expect(Object.keys(codes).filter((code) => !seen.has(code))).to.deep.equal(['IST0001', 'IST0106', 'MESH0001', 'MESH0005'])
  })
})
