/**
 * The resources that classes see of shared groups, compared with a model of maps: a class has the resources of its groups except those of
 * hidden hosts, in the version of the first group that keeps the name.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import type { GroupUse } from '../../../../protocols/messages/push.ts'
import { hostOf } from '../../../../src/xds/names.ts'
import { GroupStore } from '../../../../src/xds/slab/group-store.ts'
import { type Resource, WholeResource } from '../../../../src/xds/slab/resource.ts'
import { SlabStore } from '../../../../src/xds/slab/slab-store.ts'
import { contentVersion, KeyedSums } from '../../../../src/xds/slab/sums.ts'
import { elementHead, scanFields, textField } from '../../../../src/xds/slab/wire.ts'
import { ConnectionBudget } from '../../../../src/xds/stream/budget.ts'
import { Catalog } from '../../../../src/xds/stream/catalog.ts'
import { type Plan, Plans } from '../../../../src/xds/stream/plans.ts'
import { ReportedVersions } from '../../../../src/xds/stream/reported-versions.ts'
import { type SessionParts, XdsSession } from '../../../../src/xds/stream/session.ts'
import { everything, type Subscription, Subscriptions } from '../../../../src/xds/stream/subscription.ts'
import type { Holding } from '../../../../src/xds/stream/type-state.ts'
import { clusterType, endpointType, shortType, virtualHostType } from '../../../../src/xds/type-urls.ts'
import { runs } from '../../../harness/seed.ts'
import { slabsOf } from '../../../harness/slabs.ts'

const types = [clusterType, endpointType, virtualHostType]
const classes = ['one', 'two']

function nameOf(typeUrl: string, host: string, port: number): string {
  if (host === '') return typeUrl === virtualHostType ? `${port}/allow_any` : `Static${port}`
  return typeUrl === virtualHostType ? `${port}/${host}:${port}` : `outbound|${port}||${host}`
}

function resourceOf(typeUrl: string, name: string, content: number): Resource {
  const value = Buffer.concat([textField(1, name), textField(2, String(content).repeat(content * 40))])
  return new WholeResource(name, contentVersion(value), Buffer.concat([elementHead(typeUrl, value.length), value]))
}

const bytesOf = (message: Buffer, field: number): Buffer => [...scanFields(message)].find((found) => found.field === field)?.bytes ?? Buffer.alloc(0)

/** Returns the content of a plan: versions by name, `none` for resources that do not exist. Asserts that no name occurs twice. */
function contentOf(plan: Plan, delta: boolean): Map<string, string> {
  const found = new Map<string, string>()
  const body = Buffer.concat(plan.chunks)
  expect(body.length).to.equal(plan.length)
  for (const { bytes } of scanFields(body)) {
    const value = bytesOf(delta ? bytesOf(bytes as Buffer, 2) : (bytes as Buffer), 2)
    const name = bytesOf(value, 1).toString()
    expect(found.has(name), `${name} is there twice`).to.equal(false)
    if (delta) expect([bytesOf(bytes as Buffer, 3).toString(), bytesOf(bytes as Buffer, 1).toString()]).to.deep.equal([name, contentVersion(value)])
    found.set(name, bytesOf(value, 2).length === 0 ? 'none' : contentVersion(value))
  }
  expect(found.size).to.equal(plan.count)
  return found
}

const hosts = ['', 'a', 'b', 'c', 'd', 'e']
const crowdOf = (count: number) => Array.from({ length: count }, (_, index) => `crowd-${index}`)

/** Resources of a group: content by host and port. */
const group = fc.dictionary(fc.tuple(fc.constantFrom(...hosts), fc.constantFrom(80, 81)).map(String), fc.integer({ min: 1, max: 3 }), { maxKeys: 12 })
const hidden = fc.uniqueArray(fc.constantFrom(...hosts), { maxLength: 4 }).map((list) => list.sort())
const step = fc.record({
  base: fc.option(group, { nil: undefined }),
  overlays: fc.array(fc.option(group, { nil: undefined, freq: 2 }), { minLength: 2, maxLength: 2 }),
  hide: fc.array(hidden, { minLength: 2, maxLength: 2 }),
  /** Whether removed resources stay in their group until a sweep, and whether a sweep precedes this step. */
  keeps: fc.boolean(),
  sweeps: fc.boolean(),
  /** The groups of the class: the base and its overlay, the overlay alone, or none. A name in both has the version of the first group. */
  shape: fc.array(fc.constantFrom('base first', 'overlay first', 'overlay first', 'overlay', 'nothing'), { minLength: 2, maxLength: 2 }),
})

/** Groups with their patches, and a model of them as plain maps. */
class World {
  readonly catalog = new Catalog(new KeyedSums('key'))
  readonly #slabs = new SlabStore()
  readonly #groups = new GroupStore(this.#slabs, new KeyedSums('key'))
  readonly #held = new Map<string, ReadonlyMap<string, string>>()
  readonly #leaving = new Map<string, ReadonlySet<string>>()
  readonly #uses = new Map<string, Record<string, GroupUse[]>>()
  /** Hosts that are in every base, and in the overlay of the first class. */
  readonly #crowd: Readonly<Record<string, number>>

  constructor(crowd = 0) {
    this.#crowd = Object.fromEntries(crowdOf(crowd).map((host) => [`${host},80`, 1]))
  }

  push(change: {
    base?: Record<string, number> | undefined
    overlays: (Record<string, number> | undefined)[]
    hide: string[][]
    shape: string[]
    keeps: boolean
    sweeps: boolean
  }): void {
    if (change.sweeps) this.#sweep()
    for (const typeUrl of types) {
      if (change.base) this.#set(`base|${typeUrl}`, typeUrl, { ...this.#crowd, ...change.base }, change.keeps)
      for (const [index, classId] of classes.entries()) {
        const overlay = change.overlays[index]
        if (overlay) this.#set(`overlay|${classId}|${typeUrl}`, typeUrl, { ...(index === 0 ? this.#crowd : {}), ...overlay }, change.keeps)
      }
    }
    const manifests = classes.map((classId, index) => {
      const base = (typeUrl: string) => ({ group: `base|${typeUrl}`, hide: change.hide[index] ?? [] })
      const overlay = (typeUrl: string) => ({ group: `overlay|${classId}|${typeUrl}`, hide: [] })
      const shape = change.shape[index]
      const of = (typeUrl: string) =>
        shape === 'nothing'
          ? []
          : shape === 'base first'
            ? [base(typeUrl), overlay(typeUrl)]
            : shape === 'overlay first'
              ? [overlay(typeUrl), base(typeUrl)]
              : [overlay(typeUrl)]
      const groups = Object.fromEntries(types.map((typeUrl) => [typeUrl, of(typeUrl)]))
      this.#uses.set(classId, groups)
      return { classId, groups }
    })
    const groups = this.#groups.takeUpdates()
    const slabs = { slabs: slabsOf(groups, (id) => this.#slabs.data(id)), retiredSlabs: this.#slabs.takeRetired() }
    this.catalog.apply({ whole: false, ...slabs, groups, retiredGroups: [], manifests, retiredClasses: [] })
  }

  #sweep(): void {
    this.#groups.sweep(1)
    for (const [id, leaving] of this.#leaving) this.#held.set(id, new Map([...(this.#held.get(id) ?? [])].filter(([name]) => !leaving.has(name))))
    this.#leaving.clear()
  }

  #set(id: string, typeUrl: string, wanted: Record<string, number>, keeps: boolean): void {
    const resources = Object.entries(wanted).map(([key, content]) => {
      const [host, port] = key.split(',') as [string, string]
      return resourceOf(typeUrl, nameOf(typeUrl, host, Number(port)), content)
    })
    this.#groups.replace(id, resources, keeps ? 1 : undefined)
    const staying = new Map(resources.map(({ name, version }) => [name, version]))
    const left = keeps ? [...(this.#held.get(id) ?? [])].filter(([name]) => !staying.has(name)) : []
    this.#leaving.set(id, new Set(left.map(([name]) => name)))
    this.#held.set(id, new Map([...staying, ...left]))
  }

  /** Returns the resources of a class by the model. */
  truth(classId: string, typeUrl: string): Map<string, string> {
    const seen = new Map<string, string>()
    for (const areLeaving of [false, true])
      for (const { group: id, hide } of this.#uses.get(classId)?.[typeUrl] ?? [])
        for (const [name, version] of this.#held.get(id) ?? []) {
          if ((this.#leaving.get(id)?.has(name) ?? false) !== areLeaving) continue
          const host = hostOf(typeUrl, name)
          if ((host === '' || !hide.includes(host)) && !seen.has(name)) seen.set(name, version)
        }
    return seen
  }
}

/** Kinds of streams. A name is that of a resource, or of a route whose virtual hosts are subscribed. */
const streams = [
  { typeUrl: clusterType, delta: false, names: [] },
  { typeUrl: clusterType, delta: true, names: [] },
  ...[false, true].map((delta) => ({
    typeUrl: endpointType,
    delta,
    names: [...hosts, ...crowdOf(18)].flatMap((host) => [80, 81].map((port) => nameOf(endpointType, host, port))),
  })),
  { typeUrl: virtualHostType, delta: true, names: ['80', '81'] },
]

/** A proxy with one stream of one type. */
class Client {
  readonly typeUrl: string
  readonly delta: boolean
  readonly held = new Map<string, string>()
  session: XdsSession
  readonly #names: Buffer
  readonly #parts: SessionParts

  constructor({ typeUrl, delta, names }: (typeof streams)[number], parts: SessionParts) {
    this.typeUrl = typeUrl
    this.delta = delta
    this.#names = Buffer.concat(names.map((name) => textField(3, name)))
    this.#parts = parts
    this.session = new XdsSession(delta, parts, new ConnectionBudget())
    this.session.classId = 'one'
    this.#ask('')
  }

  /** Opens a new stream in the same class. */
  open(): void {
    const { classId } = this.session
    this.session = new XdsSession(this.delta, this.#parts, new ConnectionBudget())
    this.session.classId = classId
    this.#ask('')
  }

  #ask(nonce: string): void {
    const { typeUrl } = this
    const common = { node: undefined, typeUrl, nonce, error: undefined }
    const none = Buffer.alloc(0)
    const first = nonce === ''
    if (this.delta)
      this.session.takeDelta(
        { ...common, rawSubscribe: first ? this.#names : none, unsubscribe: [], initialVersions: ReportedVersions.of(first ? this.held : []) },
        0,
      )
    else this.session.takeSotw({ ...common, hasVersion: this.held.size > 0, rawNames: this.#names }, 0)
  }

  /** Receives and acknowledges all responses that are due. */
  follow(): void {
    for (let response = this.session.next(0); response; response = this.session.next(0)) {
      if (!this.delta && this.typeUrl === clusterType) this.held.clear()
      for (const [name, version] of contentOf(response.plan, this.delta)) version === 'none' ? this.held.delete(name) : this.held.set(name, version)
      if (this.delta) for (const name of response.plan.removed) this.held.delete(name)
      this.#ask(response.nonce)
    }
  }
}

const sorted = (map: ReadonlyMap<string, string>) => [...map].sort()
const plain = (names: Iterable<string>) => [...names].sort()

describe('classes with hidden hosts', () => {
  it('contain the visible resources of their groups, with equal versions for equal content, after any history', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
        const world = new World(18)
        const versions = new Map<string, string>()
        const past: { typeUrl: string; holding: Holding; truth: Map<string, string> }[] = []
        for (const change of steps) {
          world.push(change)
          for (const typeUrl of types)
            for (const classId of classes) {
              const state = world.catalog.typeState(classId, typeUrl)
              const truth = world.truth(classId, typeUrl)
              expect(Array.from(state.entries(), ({ name, version }) => [name, version]).sort()).to.deep.equal(sorted(truth))
              for (const host of hosts)
                for (const port of [80, 81]) {
                  const name = nameOf(typeUrl, host, port)
                  expect(state.find(name)?.version).to.equal(truth.get(name))
                }
              const content = JSON.stringify([sorted(truth)])
              if (versions.has(state.version)) expect(versions.get(state.version)).to.equal(content)
              else expect([...versions.values()]).not.to.include(content)
              versions.set(state.version, content)
              // The past states of other classes too: a proxy may move from one class to another.
              for (const before of past.filter((one) => one.typeUrl === typeUrl)) {
                const { changed, removed, added } = state.since(before.holding)
                expect(plain(changed)).to.deep.equal(plain([...truth.keys()].filter((name) => before.truth.get(name) !== truth.get(name))))
                expect(plain(added)).to.deep.equal(plain([...truth.keys()].filter((name) => !before.truth.has(name))))
                expect(plain(removed)).to.deep.equal(plain([...before.truth.keys()].filter((name) => !truth.has(name))))
              }
              past.push({ typeUrl, holding: state.holding, truth })
            }
        }
      }),
      { numRuns: runs(100) },
    )
  })

  it('are sent in full, by name, as a difference and to reconnecting clients with exactly the subscribed resources', () => {
    const wanted = fc.record({ wildcard: fc.boolean(), names: fc.subarray(hosts.flatMap((host) => [80, 81].map((port) => [host, port] as const))) })
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 2, maxLength: 4 }),
        wanted,
        fc.constantFrom(...types),
        fc.boolean(),
        fc.constantFrom(0, 70),
        (steps, { wildcard, names }, typeUrl, delta, crowd) => {
          const world = new World(crowd)
          const plans = new Plans(world.catalog, { enabled: true, size: 0 })
          const named = names.map(([host, port]) => nameOf(typeUrl, host, port))
          const list = Buffer.concat((wildcard ? ['*', ...named] : named).map((name) => textField(3, name)))
          const subscription: Subscription = new Subscriptions().asked(list).subscription
          const takes = (name: string) => subscription.wildcard || named.includes(name)
          let last: { holding: Holding; truth: Map<string, string> } | undefined
          for (const change of steps) {
            world.push(change)
            for (const classId of classes) {
              const state = world.catalog.typeState(classId, typeUrl)
              const truth = new Map([...world.truth(classId, typeUrl)].filter(([name]) => takes(name)))
              const missing = named.filter((name) => !truth.has(name))
              const emptied = (gone: readonly string[]) => (delta || typeUrl !== endpointType ? [] : gone.map((name) => [name, 'none'] as const))
              const full = plans.full(typeUrl, state, subscription, delta)
              expect(sorted(contentOf(full, delta))).to.deep.equal(sorted(new Map([...truth, ...emptied(missing)])))
              if (delta) expect(plain(full.removed)).to.deep.equal(plain(missing))
              const some = plans.ofNames(typeUrl, state, subscription, new Set(named), delta)
              const asked = new Map([...truth].filter(([name]) => named.includes(name)))
              expect(sorted(contentOf(some, delta))).to.deep.equal(sorted(new Map([...asked, ...emptied(missing)])))
              if (last) {
                const { holding, truth: before } = last
                const difference = plans.difference(typeUrl, state, holding, subscription, delta)
                const changed = [...truth].filter(([name, version]) => before.get(name) !== version)
                const gone = [...before.keys()].filter((name) => !truth.has(name))
                expect(sorted(contentOf(difference, delta))).to.deep.equal(sorted(new Map([...changed, ...emptied(gone)])))
                expect(plain(difference.removed)).to.deep.equal(plain(gone))
                if (delta) {
                  const back = plans.reconnected(typeUrl, state, ReportedVersions.of(before), subscription)
                  expect(sorted(contentOf(back, true))).to.deep.equal(sorted(new Map(changed)))
                  expect(plain(back.removed)).to.deep.equal(plain(new Set([...gone, ...missing])))
                }
              }
              last = { holding: state.holding, truth }
              // Plans are shared only by classes with equal content.
              expect(sorted(contentOf(plans.full(typeUrl, state, everything, delta), delta))).to.deep.equal(sorted(world.truth(classId, typeUrl)))
            }
          }
        },
      ),
      { numRuns: runs(100) },
    )
  })

  it('bring every stream to the state of its class: subscribed by name or not, lagging, moved or reconnected', () => {
    const act = fc.constantFrom('follow', 'follow', 'lag', 'move', 'come back', 'come back with nothing')
    const acts = fc.array(act, { minLength: streams.length, maxLength: streams.length })
    fc.assert(
      fc.property(fc.array(fc.tuple(step, acts), { minLength: 2, maxLength: 6 }), (rounds) => {
        const world = new World(18)
        const plans = new Plans(world.catalog, { enabled: true, size: 0 })
        let nonces = 0
        const parts: SessionParts = {
          catalog: world.catalog,
          plans,
          subscriptions: new Subscriptions(),
          flowControlTimeoutMs: undefined,
          nonce: () => `n${++nonces}`,
          held: () => undefined,
        }
        const clients = streams.map((stream) => new Client(stream, parts))
        for (const [change, acting] of rounds) {
          world.push(change)
          for (const [index, client] of clients.entries()) {
            const what = acting[index]
            if (what === 'move') client.session.classId = client.session.classId === 'one' ? 'two' : 'one'
            if (what === 'come back') client.open()
            if (what === 'come back with nothing') {
              client.held.clear()
              client.open()
            }
            if (what !== 'lag') client.follow()
          }
        }
        for (const client of clients) {
          client.follow()
          expect(sorted(client.held), `${shortType(client.typeUrl)} ${client.delta ? 'delta' : 'state of the world'}`).to.deep.equal(
            sorted(world.truth(client.session.classId, client.typeUrl)),
          )
          // Nothing is sent that the client already has.
          expect(client.session.isDue()).to.equal(false)
        }
      }),
      { numRuns: runs(100) },
    )
  })
})
