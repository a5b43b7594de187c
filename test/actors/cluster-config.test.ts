/** The part of a cluster's watcher that follows configuration objects, without a cluster (docs/operation.md, F18, F19). */
import { expect } from 'chai'
import { ConfigPart, slow } from '../../actors/discovery/sources/orchestrator/config-part.ts'
import type { Follower } from '../../actors/discovery/sources/orchestrator/watcher-part.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { MeshObjectEvent } from '../../protocols/messages/object-status.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import { RecordingPeer } from '../harness/actor.ts'
import { until } from '../harness/until.ts'

const definition = {
  metadata: { name: 'virtualservices.networking.mesh.io' },
  spec: {
    ...{ group: 'networking.mesh.io', scope: 'Namespaced' },
    names: { kind: 'VirtualService', plural: 'virtualservices' },
    versions: [{ name: 'v1', served: true, storage: true }],
  },
  status: { conditions: [{ type: 'Established', status: 'True' }] },
}
const policies = {
  ...{ ...definition, metadata: { name: 'authorizationpolicies.security.mesh.io' } },
  spec: { ...definition.spec, group: 'security.mesh.io', names: { kind: 'AuthorizationPolicy', plural: 'authorizationpolicies' } },
}
const policy = (action: string) => ({ metadata: { name: 'p', namespace: 'ns', uid: 'uid-p', resourceVersion: '1' }, spec: { action, rules: [{}] } })
const virtualService = (name: string, version: string, patterns: readonly string[]) => ({
  metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: version },
  spec: { hosts: ['a.com'], http: patterns.map((regex) => ({ match: [{ uri: { regex } }], route: [{ destination: { host: 'a.com' } }] })) },
})
/** Regular expressions that together take seconds, or more than the deadline, to check. */
const costly = (count: number) => Array.from({ length: count }, (_, index) => `[^a]{0,110}${index}`)

/** A part whose API server is the test. */
class Subject {
  readonly log: string[] = []
  readonly emitted: SourceEvent[] = []
  readonly #followed = new Map<string, Follower>()
  mayBeComplete = 0
  readonly part: ConfigPart

  constructor(slowMs: number, dropsInvalid = false, startMs = slow.startMs, hasStatus = false) {
    this.part = new ConfigPart({
      ...{
        names: meshNames('mesh.io'),
        optOuts: new Set(),
        revision: '',
        source: 'orch://',
        cluster: 'c1',
        allowUnreadable: false,
        hasStatus,
        slowMs,
        startMs,
        dropsInvalid,
        registers: false,
      },
      log: createLogger({ output: { fallback: 'debug', scopes: {} }, stackTrace: { fallback: 'none', scopes: {} }, callers: [] }, ({ message }) =>
        this.log.push(message),
      ),
      metrics: new MetricRegistry(),
      send: (event) => void this.emitted.push(event),
      following: {
        follow: (follower) => void this.#followed.set(follower.resource.kind, follower),
        unfollow: () => undefined,
        tellFaults: () => undefined,
        mayBeComplete: () => void this.mayBeComplete++,
        isListed: false,
        troubles: [],
      },
    })
    const [crds] = this.part.followers as [Follower]
    for (const each of [definition, policies]) crds.set(`/${each.metadata.name}`, crds.cut(each).object)
  }

  tell(key: string, object: object | undefined, kind = 'VirtualService'): void {
    const follower = this.#followed.get(kind) as Follower
    follower.set(key, object && follower.cut(object as Readonly<Record<string, unknown>>).object)
  }

  /** The state of an object that was told last: its uid and its number of rules; undefined: it is not there. */
  last(key: string): unknown {
    const event = this.emitted.findLast((each) => each.type === 'ConfigChanged' && each.key === `VirtualService/${key}`)
    return event?.type === 'ConfigChanged' && event.object
      ? [(event.object as { uid?: string }).uid, (event.object.spec as { http: unknown[] }).http.length]
      : undefined
  }
}

describe('the configuration objects of a cluster', () => {
  const subjects: Subject[] = []
  /** What the first regular expression of a thread has loaded is not its cost. */
  const begin = async (slowMs: number, startMs?: number): Promise<Subject> => {
    const subject = new Subject(slowMs, false, startMs)
    subjects.push(subject)
    subject.tell('ns/first', virtualService('first', '1', ['a.*']))
    await until('the first', () => subject.last('ns/first') !== undefined)
    subject.mayBeComplete = 0
    return subject
  }
  after(() => {
    for (const { part } of subjects) part.close()
  })

  it('whose regular expressions cost much do not delay others, and the first push waits for them', async () => {
    const subject = await begin(60_000)
    subject.tell('ns/slow', virtualService('slow', '1', costly(300)))
    subject.tell('ns/quick', virtualService('quick', '2', ['a.*']))
    expect([subject.last('ns/quick'), subject.last('ns/slow'), subject.part.waitsFor()]).to.deep.equal([
      ['uid-quick', 1],
      undefined,
      ['cluster c1: regular expressions of 1 object are being checked'],
    ])
    await until('the costly one', () => subject.last('ns/slow') !== undefined)
    expect([subject.last('ns/slow'), subject.part.waitsFor(), subject.mayBeComplete]).to.deep.equal([['uid-slow', 300], [], 1])
  })

  it('count as they are when they are changed or removed while they are checked', async () => {
    const subject = await begin(60_000)
    subject.tell('ns/slow', virtualService('slow', '2', ['a.*']))
    subject.tell('ns/slow', virtualService('slow', '3', costly(290)))
    subject.tell('ns/gone', virtualService('gone', '4', costly(280)))
    subject.tell('ns/slow', virtualService('slow', '5', ['a.*', 'b.*']))
    subject.tell('ns/gone', undefined)
    expect(subject.last('ns/slow')).to.deep.equal(['uid-slow', 2])
    subject.tell('ns/next', virtualService('next', '6', costly(270)))
    await until('the next one', () => subject.last('ns/next') !== undefined)
    expect([subject.last('ns/slow'), subject.last('ns/gone')]).to.deep.equal([['uid-slow', 2], undefined])
  })

  it('whose regular expressions take too long are invalid: their last good state stays, and the log says why', async () => {
    const subject = await begin(300)
    subject.tell('ns/slow', virtualService('slow', '6', ['a.*', 'b.*']))
    subject.tell('ns/slow', virtualService('slow', '7', costly(20_000)))
    await until('the reason', () =>
      subject.log.some((line) => line.includes('VirtualService/ns/slow') && line.includes('could not be checked within 0.3 s')),
    )
    expect(subject.log.find((line) => line.includes('could not be checked'))).to.match(/field spec\.http\[0\]\.match\[0\]\.uri\.regex: .*/)
    expect(subject.last('ns/slow')).to.deep.equal(['uid-slow', 2])
    subject.tell('ns/slow', virtualService('slow', '8', ['c.*']))
    expect(subject.last('ns/slow')).to.deep.equal(['uid-slow', 1])
  })

  it('do not keep a start waiting for more than a minute: those that are not checked by then are invalid until they are', async () => {
    expect(slow.startMs).to.equal(60_000)
    // Two that are given up after two seconds each come before one that can be used, so that a start that waited for them would take four.
    const subject = await begin(2000, 300)
    const began = performance.now()
    for (const name of ['one', 'two']) subject.tell(`ns/${name}`, virtualService(name, '1', costly(12_000)))
    subject.tell('ns/late', virtualService('late', '1', costly(60)))
    expect(subject.part.waitsFor()).to.deep.equal(['cluster c1: regular expressions of 3 objects are being checked'])
    await until('the end of the wait', () => subject.part.waitsFor().length === 0)
    expect(performance.now() - began).to.be.lessThan(2000)
    expect(subject.mayBeComplete, 'the owner is told').to.equal(1)
    for (const name of ['one', 'two', 'late'])
      expect(subject.log.filter((line) => line.includes(`VirtualService/ns/${name}, field`)).length, name).to.be.at.least(1)
    expect(subject.last('ns/late')).to.equal(undefined)
    // One that comes later holds up nothing either.
    subject.tell('ns/later', virtualService('later', '1', costly(61)))
    expect(subject.part.waitsFor()).to.deep.equal([])
    await until('what can be used after all', () => subject.last('ns/late') !== undefined && subject.last('ns/later') !== undefined)
    expect([subject.last('ns/late'), subject.last('ns/later'), subject.last('ns/one')]).to.deep.equal([
      ['uid-late', 60],
      ['uid-later', 61],
      undefined,
    ])
  })

  it('are told to the status writer where there is one, and nothing is kept of them for it where there is none', () => {
    for (const hasStatus of [true, false]) {
      const subject = new Subject(60_000, false, slow.startMs, hasStatus)
      subjects.push(subject)
      subject.tell('ns/a', virtualService('a', '1', ['a.*']))
      const writer = new RecordingPeer<MeshObjectEvent>('status-writer')
      subject.part.linked(writer)
      subject.tell('ns/a', undefined)
      const told = writer.received.map(({ id, object }) => [id, object?.uid])
      const id = 'virtualservices.networking.mesh.io ns/a'
      expect(told).to.deep.equal(
        hasStatus
          ? [
              [id, 'uid-a'],
              [id, undefined],
            ]
          : [],
      )
    }
  })

  it('that cannot be used are told once, whatever is written into their status, and again when they are changed', () => {
    const subject = new Subject(60_000, false, slow.startMs, true)
    subjects.push(subject)
    const writer = new RecordingPeer<MeshObjectEvent>('status-writer')
    subject.part.linked(writer)
    const invalid = (version: string, hosts: unknown, status?: object) => ({
      metadata: { name: 'a', namespace: 'ns', uid: 'uid-a', resourceVersion: version, managedFields: [version] },
      spec: { hosts },
      ...(status ? { status } : {}),
    })
    const faults = () => subject.log.filter((line) => line.includes('VirtualService/ns/a, field')).length
    subject.tell('ns/a', invalid('1', 7))
    const once = faults()
    subject.tell('ns/a', invalid('2', 7, { conditions: [] }))
    subject.tell('ns/a', invalid('3', 7, { conditions: [], observedGeneration: 1 }))
    expect([once > 0, faults()]).to.deep.equal([true, once])
    expect(writer.received.map(({ object }) => [object?.resourceVersion, object?.fault === ''])).to.deep.equal([
      ['1', false],
      ['2', false],
      ['3', false],
    ])
    subject.tell('ns/a', invalid('4', 8))
    expect(faults()).to.equal(2 * once)
    subject.tell('ns/a', undefined)
    subject.tell('ns/a', invalid('5', 8))
    expect(faults()).to.equal(3 * once)
  })

  for (const dropsInvalid of [false, true])
    it(`that become invalid ${dropsInvalid ? 'are removed with PILOT_ENABLE_CRD_VALIDATION, other than policies' : 'keep their last good state'}`, () => {
      const subject = new Subject(60_000, dropsInvalid)
      subjects.push(subject)
      subject.tell('ns/a', virtualService('a', '1', ['a.*']))
      subject.tell('ns/p', policy('DENY'), 'AuthorizationPolicy')
      subject.tell('ns/a', { ...virtualService('a', '2', []), spec: { hosts: 7 } })
      subject.tell('ns/never', { ...virtualService('never', '2', []), spec: {} })
      subject.tell('ns/p', policy('DENIED'), 'AuthorizationPolicy')
      const kept = (key: string) => subject.emitted.findLast((event) => event.type === 'ConfigChanged' && event.key === key)
      expect(subject.last('ns/a')).to.deep.equal(dropsInvalid ? undefined : ['uid-a', 1])
      expect(kept('AuthorizationPolicy/ns/p')).to.have.nested.property('object.spec.action', 'DENY')
      const line = (key: string) => subject.log.filter((text) => text.includes(`${key}, field`)).at(-1)
      expect(line('VirtualService/ns/a')).to.match(dropsInvalid ? /it is left out until it is valid$/ : /its last good state stays$/)
      expect(line('AuthorizationPolicy/ns/p')).to.match(/its last good state stays$/)
      // A receiver that was there before a restart is not told that the earlier state stays.
      const before = subject.emitted.length
      subject.part.replay()
      const replayed = subject.emitted.slice(before).map((event) => ('key' in event ? `${event.type} ${event.key}` : event.type))
      expect(replayed.filter((text) => text.startsWith('ConfigUnusable'))).to.deep.equal(
        dropsInvalid ? [] : ['ConfigUnusable VirtualService/ns/never'],
      )
      subject.tell('ns/a', virtualService('a', '3', ['a.*', 'b.*']))
      expect(subject.last('ns/a')).to.deep.equal(['uid-a', 2])
    })
})
