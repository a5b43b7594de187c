/** Writers that are sent only the parts that their own connections need must serve the same as a writer that is sent everything. */
import { expect } from 'chai'
import fc from 'fast-check'
import type { Manifest, PushContent } from '../../../protocols/messages/push.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Audience, emptyPush } from '../../../src/push/audience.ts'
import { classGraceMs } from '../../../src/push/classes/class-life.ts'
import { Planner } from '../../../src/push/planner.ts'
import { KeyedSums } from '../../../src/xds/slab/sums.ts'
import { Catalog } from '../../../src/xds/stream/catalog.ts'
import { clusterType, listenerType, pushOrder } from '../../../src/xds/type-urls.ts'
import { CompletePushes } from '../../harness/received.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

/** A writer without streams: records the content of its pushes and applies them to its catalog. */
class Listener {
  readonly catalog = new Catalog(new KeyedSums('of a test'))
  readonly classOf = new Map<string, string>()
  readonly groups = new Set<string>()
  readonly slabs = new Set<number>()
  readonly manifests = new Map<string, PushContent['manifests'][number]>()

  hear(push: PushContent): void {
    const members = new Set(this.classOf.values())
    this.catalog.apply(push, (classId) => members.has(classId))
    for (const { connection, classId } of push.assignments) this.classOf.set(connection, classId)
    if (push.whole) for (const known of [this.groups, this.slabs, this.manifests]) known.clear()
    for (const { group } of push.groups) this.groups.add(group)
    for (const { id } of push.slabs) this.slabs.add(id)
    for (const manifest of push.manifests) this.manifests.set(manifest.classId, manifest)
    for (const id of push.retiredGroups) this.groups.delete(id)
    for (const id of push.retiredSlabs) this.slabs.delete(id)
    for (const id of push.retiredClasses) this.manifests.delete(id)
    expect([...this.catalog.outOfSyncGroups]).to.deep.equal([])
  }

  /** Returns all resources of a connection with their bytes. */
  held(connection: string): object {
    return pushOrder.map((typeUrl) => {
      const state = this.catalog.typeState(this.classOf.get(connection) ?? '', typeUrl)
      return Array.from(state.entries(), ({ name, version, chunks }) => `${name} ${version} ${Buffer.concat([...chunks]).toString('base64')}`).sort()
    })
  }

  /** Asserts that the writer holds exactly the existing groups that its manifests name, and no retired class or slab. */
  expectNothingElse(planner: Planner): void {
    const named = new Set(
      [...this.manifests.values()].flatMap(({ groups }) => Object.values(groups).flatMap((uses) => uses.map(({ group }) => group))),
    )
    expect([...this.groups].sort()).to.deep.equal([...named].filter((id) => planner.groups.has(id)).sort())
    for (const id of this.manifests.keys()) expect(planner.present.manifest(id), `class ${id}`).not.to.equal(undefined)
    for (const id of this.slabs) expect(planner.present.slab(id), `slab ${id}`).not.to.equal(undefined)
  }
}

/** A planner, a writer that is sent everything, and two that are sent only the parts that their connections need. */
class World {
  readonly planner = new Planner(testSettings())
  readonly #pushes = new CompletePushes(this.planner)
  readonly all = new Listener()
  readonly writers = [0, 1].map(() => this.#writer())
  now = 1000
  moved = 0
  #connections = 0

  #writer() {
    return { listener: new Listener(), audience: new Audience(this.planner.present) }
  }

  #at(index: number) {
    return this.writers[index] as (typeof this.writers)[number]
  }

  set(kind: string, namespace: string, name: string, spec: object | undefined): void {
    const text = JSON.stringify({
      apiVersion: `${kind.endsWith('Policy') ? 'security' : 'networking'}.mesh.io/v1`,
      kind,
      metadata: { name, namespace },
      spec: spec ?? {},
    })
    const [object] = parseConfigFile('f', text, names).objects
    this.planner.state.setConfig(spec && object ? configKey(object) : `${kind}/${namespace}/${name}`, spec && object)
  }

  /** Applies the changes of the state and sends the push to every writer. */
  push(): void {
    this.planner.advance(this.now)
    this.publish()
  }

  publish(): void {
    const push = this.#pushes.take()
    this.moved += push.retiredSlabs.length
    this.all.hear(push)
    for (const [index, { listener, audience }] of this.writers.entries()) {
      const own = push.assignments.filter(({ connection }) => connection.startsWith(`${index}/`))
      listener.hear(audience.next({ ...push, assignments: own }, this.now))
    }
    this.#check()
  }

  connect(writer: number, namespace: string, hosts: boolean): void {
    const connection = `${writer}/${++this.#connections}`
    const node = readNode(
      {
        id: `sidecar~10.1.0.${namespace === 'one' ? 1 : 2}~p.${namespace}~${namespace}.svc.cluster.local`,
        metadata: hosts ? { DNS_CAPTURE: 'true' } : {},
        locality: undefined,
      },
      names,
      hosts,
    )
    this.planner.connect(connection, node)
  }

  connections(writer: number): string[] {
    return this.planner.assignments().flatMap(({ connection }) => (connection.startsWith(`${writer}/`) ? [connection] : []))
  }

  disconnect(writer: number): void {
    const [connection] = this.connections(writer)
    if (connection === undefined) return
    this.planner.disconnect(connection)
    this.#at(writer).audience.connectionClosed(connection, this.now)
    this.#at(writer).listener.classOf.delete(connection)
  }

  refuse(writer: number): void {
    const [connection] = this.connections(writer)
    const classId = this.planner.assignments().find((one) => one.connection === connection)?.classId
    if (connection !== undefined && classId !== undefined)
      this.planner.refused(connection, classId, { typeUrl: listenerType, resources: [], detail: 'no', policiesChanged: true })
  }

  /** A writer ends with its connections, and a new one replaces it. */
  restart(writer: number): void {
    while (this.connections(writer).length > 0) this.disconnect(writer)
    this.writers[writer] = this.#writer()
    this.everything(writer)
  }

  /** A writer requests the whole state: it gets the same as a new writer with these connections. */
  everything(writer: number): void {
    this.publish()
    const own = this.planner.assignments().filter(({ connection }) => connection.startsWith(`${writer}/`))
    const one = this.#at(writer)
    one.audience = new Audience(this.planner.present)
    one.listener.hear(one.audience.next({ ...emptyPush, whole: true, assignments: own }, this.now))
    this.#check()
  }

  #check(): void {
    for (const { listener } of this.writers) {
      listener.expectNothingElse(this.planner)
      for (const connection of listener.classOf.keys()) expect(listener.held(connection)).to.deep.equal(this.all.held(connection))
    }
  }

  /** After the grace period every writer has the classes of its connections, and no others. */
  settle(): void {
    this.push()
    this.planner.sweep()
    this.publish()
    for (let round = 0; round < 3; round++) {
      this.now += classGraceMs
      this.planner.collect(this.now)
      this.publish()
    }
    for (const { listener } of this.writers) expect(new Set(listener.manifests.keys())).to.deep.equal(new Set(listener.classOf.values()))
  }
}

const namespace = fc.constantFrom('one', 'two')
const writer = fc.nat({ max: 1 })
const service = fc
  .record({
    namespace,
    name: fc.constantFrom('a', 'b', 'c'),
    exportTo: fc.constantFrom(['*'], ['.'], ['one', 'two']),
    last: fc.nat({ max: 3 }),
    gone: fc.nat({ max: 3 }),
  })
  .map(({ namespace: own, name, exportTo, last, gone }) => (world: World) => {
    const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }]
    const endpoints = [{ address: `10.0.0.${last + 1}` }, { address: '10.1.0.2' }]
    const spec = { hosts: [`${name}.com`], exportTo, location: 'MESH_INTERNAL', resolution: 'STATIC', ports, endpoints }
    world.set('ServiceEntry', own, name, gone === 0 ? undefined : spec)
  })
const sidecar = fc.record({ namespace, hosts: fc.constantFrom(undefined, ['./*'], ['*/*'], ['*/a.com']) }).map(
  ({ namespace: own, hosts }) =>
    (world: World) =>
      world.set('Sidecar', own, 'default', hosts && { egress: [{ hosts }] }),
)
const policy = fc.record({ namespace, path: fc.constantFrom(undefined, '/x', '/y') }).map(
  ({ namespace: own, path }) =>
    (world: World) =>
      world.set(
        'AuthorizationPolicy',
        own,
        'p',
        path === undefined ? undefined : { action: 'DENY', rules: [{ to: [{ operation: { paths: [path] } }] }] },
      ),
)
const connect = fc.tuple(writer, namespace, fc.boolean()).map(
  ([at, own, hosts]) =>
    (world: World) =>
      world.connect(at, own, hosts),
)
const disconnect = writer.map((at) => (world: World) => world.disconnect(at))
const move = fc.tuple(writer, writer, namespace).map(([from, to, own]) => (world: World) => {
  world.disconnect(from)
  world.connect(to, own, false)
})
const time = fc.integer({ min: 1, max: 5000 }).map((ms) => (world: World) => {
  world.now += ms
  world.publish()
  world.planner.sweep(world.now)
  world.publish()
  world.planner.collect(world.now)
  world.publish()
})
const event = fc.oneof(
  { weight: 6, arbitrary: service },
  { weight: 2, arbitrary: sidecar },
  policy,
  { weight: 5, arbitrary: connect },
  { weight: 2, arbitrary: disconnect },
  { weight: 2, arbitrary: move },
  { weight: 3, arbitrary: time },
  writer.map((at) => (world: World) => world.refuse(at)),
  writer.map((at) => (world: World) => world.restart(at)),
  writer.map((at) => (world: World) => world.everything(at)),
)

describe('the audience of a writer', () => {
  it('gives a writer what its connections need, and nothing else beyond the class grace period, after any history', () => {
    let moved = 0
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.boolean()), { minLength: 5, maxLength: 40 }), (events) => {
        const world = new World()
        for (const [happen, pushed] of events) {
          happen(world)
          if (pushed) world.push()
        }
        world.settle()
        moved += world.moved
      }),
      { numRuns: runs(100) },
    )
    expect(moved, 'slabs that were compacted or given up').to.be.greaterThan(runs(50))
  })

  it('sends each slab that its groups refer to once, and its retirement once', () => {
    const resource = { name: 'r', version: '1', slices: [1, 0, 4, 2, 0, 4] }
    const patch = { group: 'g', sequence: 1, base: 0, version: '0'.repeat(32), changed: [resource], removed: [] }
    const audience = new Audience({
      manifest: (classId) => ({ classId, groups: { [clusterType]: [{ group: 'g', hide: [] }] } }),
      wholeUpdate: () => patch,
      slab: (id) => ({ id, bytes: new SharedArrayBuffer(4) }),
    })
    const next = (push: Partial<PushContent>) => {
      const { slabs, retiredSlabs } = audience.next({ ...emptyPush, ...push }, 0)
      return [slabs.map(({ id }) => id), retiredSlabs]
    }
    expect(next({ slabs: [{ id: 3, bytes: new SharedArrayBuffer(4) }] })).to.deep.equal([[], []])
    expect(next({ assignments: [{ connection: 'p', classId: 'c' }] })).to.deep.equal([[1, 2], []])
    expect(next({ groups: [{ ...patch, sequence: 2, base: 1, changed: [{ ...resource, slices: [1, 0, 4, 4, 0, 4] }] }] })).to.deep.equal([[4], []])
    expect(next({ retiredSlabs: [1, 3] })).to.deep.equal([[], [1]])
  })

  it('sends the manifest of a class that could not be built earlier as soon as it is built', () => {
    const manifest = { classId: 'c', groups: {} }
    let made = false
    const audience = new Audience({ manifest: () => (made ? manifest : undefined), wholeUpdate: () => undefined, slab: () => undefined })
    expect(audience.next({ ...emptyPush, assignments: [{ connection: 'p', classId: 'c' }] }, 0).manifests).to.deep.equal([])
    made = true
    expect(audience.next({ ...emptyPush, manifests: [manifest, { classId: 'other', groups: {} }] }, 0).manifests).to.deep.equal([manifest])
  })

  it('assigns a connection to its class only once that is built: the connection keeps its state until then', () => {
    const made = new Map<string, Manifest>()
    const audience = new Audience({ manifest: (classId) => made.get(classId), wholeUpdate: () => undefined, slab: () => undefined })
    const next = (push: Partial<PushContent>) => audience.next({ ...emptyPush, ...push }, 0).assignments
    const assigned = (connection: string) => ({ connection, classId: 'c' })
    expect(next({ assignments: ['p', 'q', 'r'].map(assigned) })).to.deep.equal([])
    audience.connectionClosed('r', 0)
    const manifest = { classId: 'c', groups: {} }
    made.set('c', manifest)
    expect(next({ manifests: [manifest] })).to.deep.equal(['p', 'q'].map(assigned))
    expect(next({ assignments: [assigned('s')] })).to.deep.equal([assigned('s')])
  })
})
