import { expect } from 'chai'
import fc from 'fast-check'
import type { Kind } from '../../../../src/config/kinds/kind.ts'
import { type KindName, kinds } from '../../../../src/config/kinds.ts'
import { parseConfigDocument, parseConfigFile } from '../../../../src/config/parse.ts'
import {
  configTypeOf,
  elementOf,
  kindToServe,
  readConfigResource,
  resourceTypes,
  servedKindOf,
  writeConfigResource,
} from '../../../../src/xds/config-objects/config-resource.ts'
import { bytesField, encodeStruct } from '../../../../src/xds/slab/struct.ts'
import { scanFields, textField, WireError } from '../../../../src/xds/slab/wire.ts'
import { anyDocuments, mended, textOf } from '../../../harness/documents.ts'
import { runs } from '../../../harness/seed.ts'
import { names } from '../../../harness/settings.ts'

describe('configuration objects between control planes', () => {
  const anyIn = (element: readonly Buffer[]) => [...scanFields(Buffer.concat(element))][0]?.bytes as Buffer
  const parse = (text: string) => parseConfigFile('made', text, names, undefined, undefined, '', 'files').objects
  const rule = parse(
    'apiVersion: networking.mesh.io/v1beta1\nkind: VirtualService\nmetadata: {name: r, namespace: ns, labels: {a: b}, annotations: {c: d}, creationTimestamp: "2026-01-02T03:04:05.678Z"}\nspec: {hosts: [a], http: [{timeout: 1.5s, route: [{destination: {host: a}}]}]}\n',
  )[0] as ReturnType<typeof parse>[number]

  it('have types with group, version and kind, also by the alias', () => {
    for (const url of ['networking.istio.io/v1alpha3/VirtualService', 'networking.mesh.io/v1/VirtualService'])
      expect(servedKindOf(url, names)?.name, url).to.equal('VirtualService')
    for (const url of [
      'networking.mesh.io/v9/VirtualService',
      'security.mesh.io/v1/VirtualService',
      'VirtualService',
      'a/b/c/d',
      '',
      'x/y/__proto__',
    ])
      expect(servedKindOf(url, names), url).to.equal(undefined)
    for (const kind of kinds.values()) expect(servedKindOf(configTypeOf(kind, 'mesh.io'), names)).to.equal(kind)
  })

  it('are read as they were written, whichever their kind', () => {
    fc.assert(
      fc.property(anyDocuments(0).map(mended), (made) => {
        const [object] = parse(textOf(made, 'ns'))
        if (!object) return
        const kind = kindToServe(object, 'mesh.io') as Kind<KindName>
        const { document, version } = readConfigResource(
          anyIn(elementOf(writeConfigResource(object, kind), resourceTypes.mesh)),
          configTypeOf(kind, 'mesh.io'),
        )
        const [again] = parseConfigDocument('xds://a:1', document, names, {}).objects
        expect(version).to.have.length(22)
        expect({ ...again, place: '', source: '', version: '' }).to.deep.equal({ ...object, place: '', source: '', version: '' })
      }),
      { numRuns: runs(1000) },
    )
  })

  it('keep labels, annotations and the time of creation, and have a version that changes with each of them', () => {
    const kind = kinds.get('VirtualService') as Kind<KindName>
    const { document } = readConfigResource(
      anyIn(elementOf(writeConfigResource(rule, kind), resourceTypes.alias)),
      'networking.istio.io/v1alpha3/VirtualService',
    )
    expect(document).to.deep.equal({
      apiVersion: 'networking.istio.io/v1alpha3',
      kind: 'VirtualService',
      metadata: { namespace: 'ns', name: 'r', labels: { a: 'b' }, annotations: { c: 'd' }, creationTimestamp: '2026-01-02T03:04:05.678Z' },
      spec: { hosts: ['a'], http: [{ timeout: '1500ms', route: [{ destination: { host: 'a' } }] }] },
    })
    const versions = [
      rule,
      { ...rule, labels: {} },
      { ...rule, annotations: {} },
      { ...rule, createdAt: 7 },
      { ...rule, spec: {} },
      { ...rule, name: 's' },
    ]
    expect(new Set(versions.map((object) => writeConfigResource(object, kind).version)).size).to.equal(versions.length)
    // Where it stands, and how often it changed, is nobody else's matter.
    expect(writeConfigResource({ ...rule, place: 'x', generation: 9 }, kind).version).to.equal(writeConfigResource(rule, kind).version)
  })

  it('of other control planes, and of kinds that are not of the mesh, are not served', () => {
    expect(kindToServe(rule, 'mesh.io')?.name).to.equal('VirtualService')
    expect(kindToServe({ ...rule, source: 'xds://other:15012' }, 'mesh.io')).to.equal(undefined)
    expect(kindToServe({ ...rule, kind: 'Pod', group: '' }, 'mesh.io')).to.equal(undefined)
    expect(kindToServe({ ...rule, kind: 'Gateway', group: 'gateway.networking.k8s.io' }, 'mesh.io')).to.equal(undefined)
  })

  it('that are malformed have a reason', () => {
    const any = (type: string, value: Buffer) => Buffer.concat([textField(1, type), bytesField(2, value)])
    const resource = (name: string, body: Buffer) => any(resourceTypes.mesh, Buffer.concat([bytesField(1, textField(1, name)), bytesField(2, body)]))
    const struct = (fields: Record<string, unknown>) => any('type.googleapis.com/google.protobuf.Struct', encodeStruct(fields))
    let deep: unknown = 1
    for (let depth = 0; depth < 100; depth++) deep = [deep]
    for (const [bytes, reason] of [
      [any('type.googleapis.com/x.Y', Buffer.alloc(0)), 'it has the type "type.googleapis.com/x.Y"'],
      [any(resourceTypes.mesh, Buffer.alloc(0)), 'no metadata or no body'],
      [resource('name', struct({})), 'its name "name" is not <namespace>/<name>'],
      [resource('ns/name', any('type.googleapis.com/x.Y', Buffer.alloc(0))), 'google.protobuf.Struct is expected'],
      [resource('ns/name', struct({ deep })), 'the body is nested deeper than 64'],
      [Buffer.from([0x0a, 9]), ''],
    ] as const)
      expect(() => readConfigResource(bytes, 'g/v/K'), reason).to.throw(WireError, reason)
  })
})
