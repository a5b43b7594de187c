/** The part of a cluster's watcher that follows configuration objects, without a cluster (docs/operation.md, F18, F19). */
import { expect } from 'chai'
import { ConfigPart } from '../../actors/discovery/sources/orchestrator/config-part.ts'
import type { Follower } from '../../actors/discovery/sources/orchestrator/watcher-part.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import { until } from '../harness/until.ts'

const definition = {
  metadata: { name: 'virtualservices.networking.mesh.io' },
  spec: {
    group: 'networking.mesh.io',
    names: { kind: 'VirtualService', plural: 'virtualservices' },
    versions: [{ name: 'v1', served: true, storage: true }],
  },
  status: { conditions: [{ type: 'Established', status: 'True' }] },
}
const virtualService = (name: string, version: string, patterns: readonly string[]) => ({
  metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: version },
  spec: { hosts: ['a.com'], http: patterns.map((regex) => ({ match: [{ uri: { regex } }], route: [{ destination: { host: 'a.com' } }] })) },
})
/** Regular expressions that together take seconds, or more than the deadline, to check. */
const costly = (count: number) => Array.from({ length: count }, (_, index) => `[^a]{0,110}${index}`)

describe('the configuration objects of a cluster', () => {
  const log: string[] = []
  const emitted: SourceEvent[] = []
  const followed = new Map<string, Follower>()
  let mayBeComplete = 0
  const part = new ConfigPart({
    ...{ names: meshNames('mesh.io'), optOuts: new Set(), revision: '', source: 'orch://', cluster: 'c1', allowUnreadable: false },
    log: createLogger({ output: { fallback: 'debug', scopes: {} }, stackTrace: { fallback: 'none', scopes: {} }, callers: [] }, ({ message }) =>
      log.push(message),
    ),
    metrics: new MetricRegistry(),
    send: (event) => void emitted.push(event),
    following: {
      follow: (follower) => void followed.set(follower.resource.kind, follower),
      unfollow: () => undefined,
      mayBeComplete: () => void mayBeComplete++,
      isListed: false,
      troubles: [],
    },
  })
  const tell = (key: string, object: object | undefined) => {
    const follower = followed.get('VirtualService') as Follower
    follower.set(key, object && follower.cut(object as Readonly<Record<string, unknown>>).object)
  }
  /** The state of an object that was told last: the uid and number of rules; undefined: it is not there. */
  const last = (key: string) => {
    const event = emitted.findLast((each) => each.type === 'ConfigChanged' && each.key === `VirtualService/${key}`)
    return event?.type === 'ConfigChanged' && event.object
      ? [(event.object as { uid?: string }).uid, (event.object.spec as { http: unknown[] }).http.length]
      : undefined
  }

  before(() => {
    const [crds] = part.followers as [Follower]
    crds.set('/virtualservices.networking.mesh.io', crds.cut(definition).object)
  })
  after(() => part.close())

  it('whose regular expressions cost much do not delay others, and the first push waits for them', async () => {
    tell('ns/slow', virtualService('slow', '1', costly(1500)))
    tell('ns/quick', virtualService('quick', '2', ['a.*']))
    expect([last('ns/quick'), last('ns/slow'), part.waitsFor()]).to.deep.equal([
      ['uid-quick', 1],
      undefined,
      ['cluster c1: regular expressions of 1 object are being checked'],
    ])
    await until('the costly one', () => last('ns/slow') !== undefined)
    expect([last('ns/slow'), part.waitsFor(), mayBeComplete]).to.deep.equal([['uid-slow', 1500], [], 1])
  })

  it('count as they are when they are changed or removed while they are checked', async () => {
    tell('ns/slow', virtualService('slow', '3', costly(1400)))
    tell('ns/gone', virtualService('gone', '4', costly(1300)))
    tell('ns/slow', virtualService('slow', '5', ['a.*', 'b.*']))
    tell('ns/gone', undefined)
    expect(last('ns/slow')).to.deep.equal(['uid-slow', 2])
    tell('ns/next', virtualService('next', '6', costly(1200)))
    await until('the next one', () => last('ns/next') !== undefined)
    expect([last('ns/slow'), last('ns/gone')]).to.deep.equal([['uid-slow', 2], undefined])
  })

  it('whose regular expressions take too long are invalid: their last good state stays, and the log says why', async () => {
    tell('ns/slow', virtualService('slow', '7', costly(20_000)))
    await until('the reason', () => log.some((line) => line.includes('VirtualService/ns/slow') && line.includes('could not be checked within 5 s')))
    expect(log.find((line) => line.includes('could not be checked'))).to.match(/field spec\.http\[0\]\.match\[0\]\.uri\.regex: .*/)
    expect(last('ns/slow')).to.deep.equal(['uid-slow', 2])
    tell('ns/slow', virtualService('slow', '8', ['c.*']))
    expect(last('ns/slow')).to.deep.equal(['uid-slow', 1])
  })
})
