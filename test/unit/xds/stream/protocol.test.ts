/** The rules of docs/xds-protocol.md, at least one row for each. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { ClusterSchema } from '../../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { ClusterLoadAssignmentSchema } from '../../../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { ListenerSchema } from '../../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import type { Manifest } from '../../../../protocols/messages/push.ts'
import { GroupStore } from '../../../../src/xds/slab/group-store.ts'
import { encodeResource, type Resource } from '../../../../src/xds/slab/resource.ts'
import { SlabStore } from '../../../../src/xds/slab/slab-store.ts'
import { KeyedSums } from '../../../../src/xds/slab/sums.ts'
import { scanFields } from '../../../../src/xds/slab/wire.ts'
import { ConnectionBudget } from '../../../../src/xds/stream/budget.ts'
import { Catalog } from '../../../../src/xds/stream/catalog.ts'
import { responseFrame } from '../../../../src/xds/stream/frames.ts'
import { Plans } from '../../../../src/xds/stream/plans.ts'
import { readDeltaRequest, readSotwRequest } from '../../../../src/xds/stream/request.ts'
import { XdsSession } from '../../../../src/xds/stream/session.ts'
import { Subscriptions } from '../../../../src/xds/stream/subscription.ts'
import { clusterType, endpointType, listenerType, shortType } from '../../../../src/xds/type-urls.ts'
import { slabsOf } from '../../../harness/slabs.ts'
import { wholeGroups } from '../../../harness/uses.ts'

const makers: Readonly<Record<string, (name: string, content: string) => Resource>> = {
  [clusterType]: (name, content) => encodeResource(ClusterSchema, create(ClusterSchema, { name, altStatName: content }), name),
  [listenerType]: (name, content) => encodeResource(ListenerSchema, create(ListenerSchema, { name, statPrefix: content }), name),
  [endpointType]: (name, content) =>
    encodeResource(ClusterLoadAssignmentSchema, create(ClusterLoadAssignmentSchema, { clusterName: name, namedEndpoints: { [content]: {} } }), name),
}

/** The content of a response: names with their content, and removed names. */
interface Content {
  readonly resources: readonly string[]
  readonly removed: readonly string[]
}

interface Asked {
  readonly names?: readonly string[]
  readonly remove?: readonly string[]
  readonly versions?: Readonly<Record<string, string>>
  /** `last` is the nonce of the last response. Absent: no nonce. */
  readonly nonce?: string
  readonly refused?: boolean
}

/** One stream on a configuration that a test changes. */
class Stream {
  readonly session: XdsSession
  readonly #catalog = new Catalog(new KeyedSums('key'))
  readonly #slabs = new SlabStore()
  readonly #groups = new GroupStore(this.#slabs, new KeyedSums('key'))
  readonly #nonces = new Map<string, string>()
  #count = 0

  constructor(delta: boolean, start: Readonly<Record<string, Readonly<Record<string, string>>>>) {
    const parts = {
      catalog: this.#catalog,
      plans: new Plans(this.#catalog, { enabled: true, size: 0 }),
      subscriptions: new Subscriptions(),
      flowControlTimeoutMs: undefined,
      nonce: () => `n${++this.#count}`,
      held: () => undefined,
    }
    this.session = new XdsSession(delta, parts, new ConnectionBudget())
    this.session.classId = 'class'
    const groups = Object.fromEntries(Object.keys(makers).map((typeUrl) => [typeUrl, wholeGroups(typeUrl)]))
    for (const typeUrl of Object.keys(makers)) this.#groups.replace(typeUrl, [])
    this.#apply([{ classId: 'class', groups }])
    for (const [typeUrl, resources] of Object.entries(start)) this.set(typeUrl, resources)
  }

  /** Replaces the resources of a type, given as name to content. */
  set(typeUrl: string, resources: Readonly<Record<string, string>>): void {
    this.#groups.replace(
      typeUrl,
      Object.entries(resources).map(([name, content]) => (makers[typeUrl] as (typeof makers)[string])(name, content)),
    )
    this.#apply([])
  }

  #apply(manifests: readonly Manifest[]): void {
    const groups = this.#groups.takeUpdates()
    const slabs = { slabs: slabsOf(groups, (id) => this.#slabs.data(id)), retiredSlabs: this.#slabs.takeRetired() }
    this.#catalog.apply({ whole: false, ...slabs, groups, retiredGroups: [], manifests, retiredClasses: [] })
  }

  ask(typeUrl: string, { names = [], remove = [], versions = {}, nonce = '', refused = false }: Asked): string {
    const common = {
      typeUrl,
      responseNonce: nonce === 'last' ? (this.#nonces.get(typeUrl) ?? '') : nonce,
      ...(refused ? { errorDetail: { code: 13, message: 'no' } } : {}),
    }
    if (!this.session.delta) {
      const message = toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...common, resourceNames: [...names] }))
      return this.session.takeSotw(readSotwRequest(Buffer.from(message)), 0)
    }
    const lists = { resourceNamesSubscribe: [...names], resourceNamesUnsubscribe: [...remove], initialResourceVersions: versions }
    const message = toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { ...common, ...lists }))
    return this.session.takeDelta(readDeltaRequest(Buffer.from(message)), 0)
  }

  /** Returns the present version of a resource in delta. */
  versionOf(typeUrl: string, name: string): string {
    return this.#catalog.typeState('class', typeUrl).find(name)?.version ?? ''
  }

  /** Returns the next response. */
  next(): (Content & { typeUrl: string }) | undefined {
    const response = this.session.next(0)
    if (!response) return undefined
    this.#nonces.set(response.typeUrl, response.nonce)
    const message = Buffer.concat(responseFrame(response, this.session.delta)).subarray(5)
    if (!this.session.delta) {
      const { resources, typeUrl } = fromBinary(DiscoveryResponseSchema, message)
      return { typeUrl, resources: resources.map(({ value }) => textOf(Buffer.from(value))), removed: [] }
    }
    const { resources, removedResources, typeUrl } = fromBinary(DeltaDiscoveryResponseSchema, message)
    return { typeUrl, resources: resources.map(({ resource }) => textOf(Buffer.from(resource?.value ?? []))), removed: removedResources }
  }
}

/** Returns `<name>=<content>`. The content of a load assignment is the name of an endpoint. */
function textOf(value: Buffer): string {
  const [name, content] = [...scanFields(value)].map(({ bytes }) => bytes ?? Buffer.alloc(0))
  const text = content && content[0] === 10 ? content.subarray(2, 2 + (content[1] as number)) : content
  return text === undefined ? `${name}` : `${name}=${text}`
}

/** A step of a row: a request or a change of the type's resources, and the response expected after it (none if absent). */
type Step = (({ readonly ask: Asked } | { readonly set: Readonly<Record<string, string>> }) & { readonly sent?: string }) | { readonly again: true }

interface Row {
  readonly rule: string
  readonly says: string
  readonly type?: string
  readonly steps: readonly Step[]
}

const ab = { a: '1', b: '1' }

const sotw: readonly Row[] = [
  { rule: 'S1', says: 'an empty first list is everything', steps: [{ ask: {}, sent: 'a=1 b=1' }] },
  {
    rule: 'S1',
    says: 'an empty list stays everything as long as no name was given',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { nonce: 'last' } },
      { set: { ...ab, c: '1' }, sent: 'a=1 b=1 c=1' },
      { ask: { nonce: 'last' } },
      { set: ab, sent: 'a=1 b=1' },
    ],
  },
  { rule: 'S2', says: '* is everything', steps: [{ ask: { names: ['*'] }, sent: 'a=1 b=1' }] },
  { rule: 'S2', says: '* beside names is everything', steps: [{ ask: { names: ['a', '*'] }, sent: 'a=1 b=1' }] },
  {
    rule: 'S2',
    says: 'a name beside * may be given up, and * too',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['*', 'a'], nonce: 'last' }, sent: 'a=1 b=1' },
      { ask: { names: ['a'], nonce: 'last' }, sent: 'a=1' },
      { set: { a: '1', b: '2' } },
      { set: { a: '2', b: '2' }, sent: 'a=2' },
    ],
  },
  {
    rule: 'S3',
    says: 'an empty list after names is nothing',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { nonce: 'last' } },
      { set: { a: '2' } },
      { ask: { names: ['a'], nonce: 'last' }, sent: 'a=2' },
    ],
  },
  {
    rule: 'S3',
    says: 'an empty list after * is nothing, with or without a nonce',
    steps: [{ ask: { names: ['*'] }, sent: 'a=1 b=1' }, { ask: { nonce: 'last' } }, { set: { a: '2' } }, { ask: {} }, { set: { a: '3' } }],
  },
  { rule: 'S4', says: 'an empty first list of a named type is nothing', type: endpointType, steps: [{ ask: {} }, { set: { a: '2' } }] },
  {
    rule: 'S4',
    says: 'an empty list of a named type ends the subscription; names after it start anew',
    type: endpointType,
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { nonce: 'last' } },
      { set: { a: '2' } },
      { ask: { names: ['a'], nonce: 'last' }, sent: 'a=2' },
    ],
  },
  {
    rule: 'S5',
    says: 'an answer for clusters by name holds all names, also those that did not change',
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { set: { a: '2', b: '1', c: '1' }, sent: 'a=2 b=1' },
      { set: { b: '1' }, sent: 'b=1' },
    ],
  },
  {
    rule: 'S5',
    says: 'an answer for endpoints holds what changed',
    type: endpointType,
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { set: { a: '2', b: '1' }, sent: 'a=2' },
    ],
  },
  {
    rule: 'S6',
    says: 'a name more is answered with all names of clusters',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a', 'b'], nonce: 'last' }, sent: 'a=1 b=1' },
    ],
  },
  {
    rule: 'S6',
    says: 'a name more is answered with the new endpoints only',
    type: endpointType,
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a', 'b'], nonce: 'last' }, sent: 'b=1' },
    ],
  },
  {
    rule: 'S6',
    says: 'the order and repetition of names do not matter',
    steps: [{ ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' }, { ask: { names: ['b', 'a', 'b'], nonce: 'last' } }],
  },
  {
    rule: 'S7',
    says: 'names with an old nonce are not taken',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { set: { a: '2', b: '1' }, sent: 'a=2' },
      { ask: { names: ['a', 'b'], nonce: 'n1' } },
      { ask: { names: ['a', 'b'], nonce: 'last' }, sent: 'a=2 b=1' },
    ],
  },
  {
    rule: 'S7',
    says: 'a name that a stale list leaves out is sent again when the next list has it, and then not again',
    type: endpointType,
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { set: { a: '2', b: '1' }, sent: 'a=2' },
      { ask: { names: ['a'], nonce: 'n1' } },
      { ask: { names: ['a', 'b'], nonce: 'n1' } },
      { ask: { names: ['a', 'b'], nonce: 'last' }, sent: 'b=1' },
      { ask: { names: ['a', 'b'], nonce: 'last' } },
    ],
  },
  {
    rule: 'S7',
    says: 'a nonce of another stream, for a type that is not known here, starts the type',
    steps: [{ ask: { names: ['b'], nonce: 'elsewhere' }, sent: 'b=1' }],
  },
  {
    rule: 'S8',
    says: 'a refusal that adds a name is answered',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a', 'b'], nonce: 'last', refused: true }, sent: 'a=1 b=1' },
    ],
  },
  {
    rule: 'S8',
    says: 'a refusal that takes a name away keeps the others',
    type: endpointType,
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { ask: { names: ['b'], nonce: 'last', refused: true } },
      { set: { a: '2', b: '2' }, sent: 'b=2' },
    ],
  },
  {
    rule: 'S8',
    says: 'what was refused is not sent again until it changes',
    steps: [{ ask: {}, sent: 'a=1 b=1' }, { ask: { nonce: 'last', refused: true } }, { again: true }, { set: { a: '2' }, sent: 'a=2' }],
  },
  {
    rule: 'S8',
    says: 'a stale refusal without names ends no subscription',
    type: endpointType,
    steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { ask: { nonce: 'old', refused: true } }, { set: { a: '2' }, sent: 'a=2' }],
  },
  {
    rule: 'S8',
    says: 'a stale refusal does not change names',
    steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { ask: { names: ['b'], nonce: 'old', refused: true } }],
  },
  { rule: 'S9', says: 'a change of other names sends nothing', steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { set: { a: '1', b: '2' } }] },
  {
    rule: 'S10',
    says: 'endpoints that do not exist',
    type: endpointType,
    steps: [
      { ask: { names: ['z'] }, sent: 'z' },
      { set: { z: '1' }, sent: 'z=1' },
    ],
  },
  {
    rule: 'S5',
    says: 'a cluster that does not exist is not in the answer',
    steps: [
      { ask: { names: ['z'] }, sent: '' },
      { set: { z: '1' }, sent: 'z=1' },
    ],
  },
  {
    rule: 'S5',
    says: 'when all are gone, an empty answer says so',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { set: {}, sent: '' },
    ],
  },
]

const delta: readonly Row[] = [
  { rule: 'D1', says: 'a first request without names is everything', steps: [{ ask: {}, sent: 'a=1 b=1' }] },
  { rule: 'D1', says: 'a first request that only removes names is nothing', steps: [{ ask: { remove: ['a'] } }, { set: { a: '2' } }] },
  {
    rule: 'D1',
    says: 'names beside an earlier everything',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['a'] }, sent: 'a=1' },
      { set: { a: '1', b: '2' }, sent: 'b=2' },
    ],
  },
  { rule: 'D1', says: 'named types have no everything', type: endpointType, steps: [{ ask: {} }, { set: { a: '2' } }] },
  { rule: 'D2', says: '* is everything', steps: [{ ask: { names: ['*'] }, sent: 'a=1 b=1' }] },
  { rule: 'D2', says: '* beside a name that does not exist', steps: [{ ask: { names: ['*', 'z'] }, sent: 'a=1 b=1 -z' }] },
  {
    rule: 'D2',
    says: 'giving up * leaves the names',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { remove: ['*'] } },
      { set: { a: '1', b: '2' } },
      { set: { a: '2', b: '2' }, sent: 'a=2' },
      { ask: { remove: ['a'] } },
      { set: { a: '3', b: '3' } },
    ],
  },
  {
    rule: 'D3',
    says: 'a name that the proxy has is sent again',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a'] }, sent: 'a=1' },
    ],
  },
  {
    rule: 'D3',
    says: 'the same with *',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['*'] }, sent: 'a=1 b=1' },
    ],
  },
  {
    rule: 'D3',
    says: 'a name that does not exist is said to be removed, and sent when it comes',
    steps: [
      { ask: { names: ['z'] }, sent: '-z' },
      { set: { z: '1' }, sent: 'z=1' },
    ],
  },
  {
    rule: 'D3',
    says: 'removed and added in one request is added',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['a'], remove: ['a'] }, sent: 'a=1' },
    ],
  },
  {
    rule: 'D4',
    says: 'names with an old nonce are taken',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['b'], nonce: 'old' }, sent: 'b=1' },
    ],
  },
  {
    rule: 'D4',
    says: 'a refusal that adds a name is answered',
    steps: [
      { ask: { names: ['a'] }, sent: 'a=1' },
      { ask: { names: ['b'], nonce: 'last', refused: true }, sent: 'b=1' },
    ],
  },
  {
    rule: 'D4',
    says: 'a refusal that removes a name',
    steps: [
      { ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' },
      { ask: { remove: ['a'], nonce: 'last', refused: true } },
      { set: { a: '2', b: '2' }, sent: 'b=2' },
    ],
  },
  {
    rule: 'D5',
    says: 'a name that was given up is not mentioned',
    steps: [{ ask: { names: ['a', 'b'] }, sent: 'a=1 b=1' }, { ask: { remove: ['a'] } }, { set: { b: '1' } }],
  },
  {
    rule: 'D5',
    says: 'a name given up beside * is sent',
    steps: [
      { ask: { names: ['*', 'a'] }, sent: 'a=1 b=1' },
      { ask: { remove: ['a'] }, sent: 'a=1' },
    ],
  },
  {
    rule: 'D5',
    says: 'a name given up beside * that does not exist is said to be removed',
    steps: [
      { ask: { names: ['*', 'z'] }, sent: 'a=1 b=1 -z' },
      { ask: { remove: ['z'] }, sent: '-z' },
    ],
  },
  {
    rule: 'D6',
    says: 'what is gone is said to be removed',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { set: { b: '1' }, sent: '-a' },
    ],
  },
  {
    rule: 'D6',
    says: 'also when everything is asked for again meanwhile',
    steps: [
      { ask: {}, sent: 'a=1 b=1' },
      { ask: { names: ['b'] }, sent: 'b=1' },
      { set: { b: '2' }, sent: 'b=2 -a' },
    ],
  },
  { rule: 'D7', says: 'what the proxy has is not sent again', steps: [{ ask: { versions: { a: 'a', b: 'other', gone: 'x' } }, sent: 'b=1 -gone' }] },
  {
    rule: 'D7',
    says: 'versions of names that are not subscribed to are not looked at',
    type: endpointType,
    steps: [{ ask: { names: ['a'], versions: { a: 'a', b: 'other', gone: 'x' } } }],
  },
  { rule: 'D8', says: 'a change of other names sends nothing', steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { set: { a: '1', b: '2' } }] },
  {
    rule: 'D9',
    says: 'giving up what was not subscribed to does nothing',
    steps: [{ ask: { names: ['a'] }, sent: 'a=1' }, { ask: { remove: ['b', '*'] } }, { set: { a: '2', b: '2' }, sent: 'a=2' }],
  },
]

/** Returns the content of a response, sorted: `a=1 b=1 -gone`. */
const contentOf = (response: Content | undefined): string | undefined =>
  response &&
  [...response.resources]
    .sort()
    .concat(response.removed.map((name) => `-${name}`).sort())
    .join(' ')

function play({ type = clusterType, steps }: Row, isDelta: boolean): void {
  const stream = new Stream(isDelta, { [clusterType]: ab, [listenerType]: ab, [endpointType]: ab })
  for (const [index, step] of steps.entries()) {
    if ('ask' in step) {
      // The actual version of a resource where the row names the version by the resource.
      const versions = Object.fromEntries(
        Object.entries(step.ask.versions ?? {}).map(([name, version]) => [name, version === name ? stream.versionOf(type, name) : version]),
      )
      stream.ask(type, { ...step.ask, versions })
    } else if ('set' in step) stream.set(type, step.set)
    const sent = 'again' in step ? undefined : step.sent
    expect(contentOf(stream.next()), `step ${index + 1}`).to.equal(sent)
    expect(stream.next(), `more after step ${index + 1}`).to.equal(undefined)
  }
}

describe('the rules of the xDS protocol', () => {
  for (const row of sotw) it(`state of the world, ${row.rule}: ${row.says}`, () => play(row, false))
  for (const row of delta) it(`delta, ${row.rule}: ${row.says}`, () => play(row, true))

  it('apply to listeners as to clusters', () => {
    for (const row of sotw) if (!row.type) play({ ...row, type: listenerType }, false)
    for (const row of delta) if (!row.type) play({ ...row, type: listenerType }, true)
  })

  it('D6: removed names are reported however many changes were missed, also after a new wildcard subscription', () => {
    for (const again of [false, true]) {
      const stream = new Stream(true, { [clusterType]: { ...ab, gone: '1' } })
      stream.ask(clusterType, {})
      stream.next()
      for (let change = 0; change < 200; change++) stream.set(clusterType, { a: String(change), [`passing${change}`]: '1' })
      if (again) stream.session.sendAgain()
      expect(contentOf(stream.next())).to.equal('a=199 passing199=1 -b -gone')
    }
  })

  for (const isDelta of [false, true])
    it(`${isDelta ? 'D4, delta' : 'S8, SotW'}: a NACK with a stale nonce does not answer a push of clusters and is not recorded`, () => {
      const stream = new Stream(isDelta, { [clusterType]: { a: '1' }, [listenerType]: { l: '1' } })
      stream.ask(clusterType, {})
      stream.next()
      stream.ask(listenerType, {})
      stream.next()
      stream.set(clusterType, { a: '1', b: '1' })
      stream.set(listenerType, { l: '2' })
      expect(contentOf(stream.next())).to.equal(isDelta ? 'b=1' : 'a=1 b=1')
      const watch = stream.session.watches.get(clusterType)
      for (const nonce of ['n1', 'made up', 'n'.repeat(4_000_000)]) {
        expect(stream.ask(clusterType, { nonce, refused: true })).to.equal('nack')
        expect(watch?.lastError).to.equal(undefined)
        expect(stream.next(), 'listeners wait for the answer to new clusters').to.equal(undefined)
      }
      stream.ask(clusterType, { nonce: 'last', refused: true })
      expect(watch?.lastError?.nonce).to.equal(watch?.nonce)
      expect(contentOf(stream.next())).to.equal('l=2')
    })

  it('treat type URLs named like inherited properties as unknown types', () => {
    for (const isDelta of [false, true])
      for (const typeUrl of ['valueOf', 'constructor', '__proto__', 'toString', 'hasOwnProperty']) {
        const stream = new Stream(isDelta, {})
        stream.ask(typeUrl, { names: ['a'] })
        expect(contentOf(stream.next())).to.equal(isDelta ? '-a' : undefined)
        expect(shortType(typeUrl)).to.equal(typeUrl)
      }
  })

  it('D3: a name unsubscribed and subscribed again before the first response is sent, whatever version the client reported', () => {
    for (const again of [{ names: ['a'] }, { names: ['*'] }]) {
      const stream = new Stream(true, { [endpointType]: ab })
      stream.ask(endpointType, { names: ['a'], versions: { a: stream.versionOf(endpointType, 'a') } })
      stream.ask(endpointType, { remove: ['a'] })
      stream.ask(endpointType, again)
      expect(contentOf(stream.next())).to.contain('a=1')
      expect(stream.next()).to.equal(undefined)
    }
  })

  for (const isLate of [false, true])
    it(`D7: the endpoints of clusters that changed before a reconnect are sent${isLate ? ', also if they are subscribed to later' : ''}`, () => {
      const stream = new Stream(true, { [clusterType]: { a: '2', b: '1' }, [endpointType]: ab })
      const versions = (typeUrl: string) => ({ a: stream.versionOf(typeUrl, 'a'), b: stream.versionOf(typeUrl, 'b') })
      const askEndpoints = () => stream.ask(endpointType, { names: ['a', 'b'], versions: versions(endpointType) })
      stream.ask(clusterType, { versions: { ...versions(clusterType), a: 'another' } })
      if (!isLate) askEndpoints()
      expect(contentOf(stream.next())).to.equal('a=2')
      if (isLate) askEndpoints()
      expect(contentOf(stream.next())).to.equal('a=1')
      expect(stream.next()).to.equal(undefined)
    })

  it('D4: after a NACK of endpoints the next change sends all of them, because Envoy may have taken none of the response', () => {
    const stream = new Stream(true, { [endpointType]: ab })
    stream.ask(endpointType, { names: ['a', 'b'] })
    stream.next()
    stream.set(endpointType, { a: 'bad', b: '2' })
    expect(contentOf(stream.next())).to.equal('a=bad b=2')
    stream.ask(endpointType, { nonce: 'last', refused: true })
    expect(stream.next()).to.equal(undefined)
    stream.set(endpointType, { a: '1', b: '2' })
    expect(contentOf(stream.next())).to.equal('a=1 b=2')
  })

  it('D8: the first wildcard request gets an empty response if there are no resources', () => {
    const stream = new Stream(true, {})
    stream.ask(clusterType, {})
    expect(contentOf(stream.next())).to.equal('')
    stream.ask(clusterType, { nonce: 'last' })
    expect(stream.next()).to.equal(undefined)
  })
})
