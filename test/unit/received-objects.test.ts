/** Objects of another control plane: what it sends is checked one by one, and bounded. */
import { expect } from 'chai'
import { ReceivedObjects } from '../../actors/discovery/sources/xds/received-objects.ts'
import type { ConfigObject } from '../../protocols/data.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import type { Kind } from '../../src/config/kinds/kind.ts'
import { kinds } from '../../src/config/kinds.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { configTypeOf, elementOf, resourceTypes, writeConfigResource } from '../../src/xds/config-objects/config-resource.ts'
import { elementHead, WireError } from '../../src/xds/slab/wire.ts'
import { encodeResponse, type ResponseResource } from '../../src/xds/stream/response.ts'
import { names } from '../harness/settings.ts'

describe('objects of another control plane', () => {
  const typeOf = (kind: string) => configTypeOf(kinds.get(kind) as Kind, 'mesh.io')
  const made = () => {
    const events: SourceEvent[] = []
    const warnings: string[] = []
    const objects = new ReceivedObjects({
      ...{ source: 'xds://a:1', names, optOuts: new Set(), revision: '' },
      emit: (event) => events.push(event),
      warn: (line) => warnings.push(line),
    })
    return { objects, events, warnings }
  }
  const response = (kind: string, resources: readonly ResponseResource[], removed: readonly string[] = [], isWhole = true) =>
    encodeResponse(true, { typeUrl: typeOf(kind), version: isWhole ? 'v' : '', nonce: 'n', resources, removed })
  const object = (kind: string, name: string, spec: string) =>
    parseConfigFile(
      'f',
      `apiVersion: ${typeOf(kind).split('/').slice(0, 2).join('/')}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`,
      names,
    ).objects[0] as ConfigObject
  const entry = (name: string) => object('ServiceEntry', name, `{hosts: [${name}.test], ports: [{number: 80, name: http}]}`)
  const resource = (of: ConfigObject): ResponseResource => {
    const served = writeConfigResource(of, kinds.get(of.kind) as Kind)
    return { name: served.name, version: served.version, element: elementOf(served, resourceTypes.mesh) }
  }
  /** An object with another spec than its kind has. */
  const broken = (of: ConfigObject, spec: object) => resource({ ...of, spec })
  const said = (events: readonly SourceEvent[]) =>
    events.map((event) =>
      event.type === 'ConfigChanged'
        ? `${event.key} ${event.object === undefined ? 'gone' : 'there'}`
        : event.type === 'ConfigUnusable'
          ? `${event.key} unusable${event.standIn ? ', stand-in' : ''}`
          : event.type,
    )

  it('that are malformed are refused one by one, by name, and the others are used', () => {
    const { objects, events, warnings } = made()
    const garbage = { name: 'ns/garbage', version: 'v', element: [elementHead(resourceTypes.mesh, 2), Buffer.from([0x0a, 9])] }
    const other = { ...resource(entry('other')), name: 'ns/named-otherwise' }
    const answer = objects.take(
      response('ServiceEntry', [resource(entry('a')), broken(entry('b'), { hosts: 7 }), garbage, other, { ...resource(entry('c')), element: [] }]),
    )
    expect(said(events)).to.deep.equal([
      'ServiceEntry/ns/a there',
      'ServiceEntry/ns/b unusable',
      'ServiceEntry/ns/garbage unusable',
      'ServiceEntry/ns/named-otherwise unusable',
      'ServiceEntry/ns/c unusable',
    ])
    expect(answer.refused).to.match(
      /^ns\/b: spec\.hosts: expected a list.*ns\/garbage: cannot be decoded: .*ns\/named-otherwise: .*its metadata names "ns\/other".*ns\/c: /,
    )
    expect(warnings).to.have.length(4)
    expect(objects.problems()).to.have.length(4)
    const [first] = events
    expect(first?.type === 'ConfigChanged' && (first.object as ConfigObject)).to.include({
      source: 'xds://a:1',
      resourceVersion: resource(entry('a')).version,
    })
  })

  it('keep their last good state; a policy that never had one is replaced by the strictest that it may mean', () => {
    const { objects, events, warnings } = made()
    const policy = object('AuthorizationPolicy', 'p', '{action: DENY, rules: [{}]}')
    objects.take(response('ServiceEntry', [resource(entry('a'))]))
    objects.take(response('ServiceEntry', [broken(entry('a'), { hosts: 7 })]))
    objects.take(response('AuthorizationPolicy', [broken(policy, { action: 'DENY', rulez: [] })]))
    objects.take(
      response('PeerAuthentication', [{ name: 'ns/q', version: 'v', element: [elementHead(resourceTypes.mesh, 2), Buffer.from([0x0a, 9])] }]),
    )
    expect(said(events)).to.deep.equal([
      'ServiceEntry/ns/a there',
      'ServiceEntry/ns/a unusable',
      'AuthorizationPolicy/ns/p unusable, stand-in',
      'PeerAuthentication/ns/q unusable, stand-in',
    ])
    expect(objects.standIns().map(({ key }) => key)).to.deep.equal(['AuthorizationPolicy/ns/p', 'PeerAuthentication/ns/q'])
    expect(warnings.map((line) => line.split('; ').at(-1))).to.deep.equal([
      'its last good state stays',
      'until it is valid, the workloads that it selects are guarded by the strictest policy that it could mean',
      'until it is valid, the workloads that it selects are guarded by the strictest policy that it could mean',
    ])
    // A push queue that was restarted is told the last good state.
    expect(said([...objects.events()]).sort()).to.deep.equal([
      'AuthorizationPolicy/ns/p unusable, stand-in',
      'PeerAuthentication/ns/q unusable, stand-in',
      'ServiceEntry/ns/a there',
    ])
  })

  it('are known as a whole when every type is, and are current until the stream ends', () => {
    const { objects, events } = made()
    for (const kind of kinds.keys()) {
      expect([objects.isKnown, objects.isCurrent]).to.deep.equal([false, false])
      objects.take(response(kind, [], [], false))
      objects.take(response(kind, []))
    }
    expect([objects.isKnown, objects.isCurrent]).to.deep.equal([true, true])
    objects.take(response('ServiceEntry', [resource(entry('a')), resource(entry('b'))]))
    objects.disconnected()
    expect([objects.isKnown, objects.isCurrent, objects.size]).to.deep.equal([true, false, 2])
    expect(objects.versions(typeOf('ServiceEntry'))).to.deep.equal([
      ['ns/a', resource(entry('a')).version],
      ['ns/b', resource(entry('b')).version],
    ])
    objects.take(response('ServiceEntry', [], ['ns/a', 'ns/unknown']))
    expect(said(events).slice(2)).to.deep.equal(['ServiceEntry/ns/a gone'])
  })

  it('beyond the bounds, and types that nobody asked for, end the stream', () => {
    const { objects } = made()
    const many = Array.from({ length: 100_001 }, (_, index) => ({ name: `ns/${index}`, version: '', element: [] }))
    expect(() => objects.take(response('ServiceEntry', many))).to.throw(WireError, 'more than 100000 objects')
    expect(objects.size).to.equal(0)
    expect(() => objects.take(encodeResponse(true, { typeUrl: 'a/b/Secret', version: '', nonce: '', resources: [], removed: [] }))).to.throw(
      'nobody asked for',
    )
    expect(() => objects.take(response('ServiceEntry', [{ name: 'x'.repeat(1000), version: '', element: [] }]))).to.throw(
      'a name of more than 600 bytes',
    )
    expect(() => objects.take(Buffer.from([0x12, 0xff]))).to.throw(WireError)
  })
})
