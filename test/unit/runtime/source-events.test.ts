import { expect } from 'chai'
import fc from 'fast-check'
import { coalescingKey, sourceObjects } from '../../../actors/discovery/events/source-events.ts'
import { Mailbox } from '../../../actors/runtime/mailbox.ts'
import { ObjectRegister } from '../../../actors/runtime/register.ts'
import type { Endpoint, EndpointSlice, Service } from '../../../protocols/data.ts'
import type { SourceEvent } from '../../../protocols/messages/push.ts'
import { Faults } from '../../../src/model/faults.ts'
import { MergedServices } from '../../../src/registry/merged-services.ts'
import { runs, seed } from '../../harness/seed.ts'

const registry = { provider: 'Mock', cluster: '' }
const keys = ['ns/a.com', 'ns/b.com']
const parts = ['1', '2', '3']

/** What a source holds: by service the version of its definition, and by slice a version. */
type Held = Map<string, { definition: number; slices: Map<string, number> }>

const service = (key: string, definition: number) =>
  ({
    ...registry,
    hostname: key.slice(3),
    namespace: 'ns',
    name: 'a',
    addresses: [`240.0.0.${definition}`],
    ports: [],
    resolution: 'static',
    createdAt: 0,
  }) as unknown as Service
const slice = (key: string, version: number): EndpointSlice => ({
  key,
  version: `${version}`,
  endpoints: [{ address: `10.0.${key}.${version}`, ports: {}, labels: {}, namespace: 'ns', serviceAccount: '' } as unknown as Endpoint],
})
const slicesIn = (held: Held, key: string) => [...(held.get(key)?.slices ?? [])].map(([part, version]) => slice(part, version))

class Receiver {
  readonly services = new MergedServices(new Faults())
  readonly #register = new ObjectRegister<SourceEvent>(sourceObjects as never)

  receive(event: SourceEvent): void {
    if (event.type === 'ServiceChanged') this.services.set('Mock', event.key, event.service && { service: event.service, slices: event.slices })
    if (event.type === 'EndpointsChanged') this.services.setSlice('Mock', event.key, event.part, event.slice)
  }

  take(mailbox: Mailbox): boolean {
    const entry = mailbox.take()
    if (!entry) return false
    if (!('mark' in entry)) {
      this.#register.heard(entry[1] as SourceEvent)
      this.receive(entry[1] as SourceEvent)
    } else if (entry.mark === 'begin') this.#register.begin(entry.replay)
    else for (const event of this.#register.end(entry.replay, true) ?? []) this.receive(event)
    return true
  }
}

const stateOf = (services: MergedServices) =>
  [...services.merge().services]
    .flatMap(([, states]) => states.map(({ service: of, endpoints }) => [of.hostname, of.addresses, endpoints.map(({ address }) => address)]))
    .sort()

describe('the events of a registry', () => {
  it('lead to what the registry holds, however they coalesce, through replays that it was restarted in the middle of', () => {
    const step = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          type: fc.constant('slice' as const),
          key: fc.constantFrom(...keys),
          part: fc.constantFrom(...parts),
          there: fc.boolean(),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({ type: fc.constantFrom('whole' as const, 'definition' as const, 'gone' as const), key: fc.constantFrom(...keys) }),
      },
      fc.record({
        type: fc.constant('restart' as const),
        lost: fc.array(fc.tuple(fc.constantFrom(...keys), fc.constantFrom(...parts)), { maxLength: 3 }),
        told: fc.nat(4),
        ends: fc.boolean(),
      }),
      { weight: 3, arbitrary: fc.record({ type: fc.constant('take' as const), count: fc.nat(4) }) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const [mailbox, receiver] = [new Mailbox(), new Receiver()]
        const held: Held = new Map()
        let [version, replay] = [0, 0]
        /** Whether a slice was lost that no finished replay has left out yet. */
        let isBehind = false
        const tell = (event: SourceEvent) => mailbox.put([coalescingKey(event), event])
        const whole = (key: string) => {
          const there = held.get(key)
          tell({ type: 'ServiceChanged', registry, key, service: there && service(key, there.definition), slices: slicesIn(held, key), at: 0 })
        }
        const restart = (told: number, ends: boolean) => {
          mailbox.put({ mark: 'begin', replay: ++replay })
          for (const key of keys.slice(0, ends ? keys.length : told)) if (held.has(key)) whole(key)
          if (ends) mailbox.put({ mark: 'end', replay })
          if (ends) isBehind = false
        }
        for (const each of steps) {
          if (each.type === 'take') for (let count = 0; count < each.count; count++) receiver.take(mailbox)
          else if (each.type === 'restart') {
            // The new incarnation does not have what was removed while nobody told it.
            for (const [key, part] of each.lost) if (held.get(key)?.slices.delete(part)) isBehind = true
            restart(each.told, each.ends)
          } else if (each.type === 'slice') {
            const there = held.get(each.key)
            if (!there) continue
            if (each.there) there.slices.set(each.part, ++version)
            else there.slices.delete(each.part)
            tell({
              type: 'EndpointsChanged',
              registry,
              key: each.key,
              part: each.part,
              slice: each.there ? slice(each.part, version) : undefined,
              at: 0,
            })
          } else if (each.type === 'gone') {
            if (held.delete(each.key)) whole(each.key)
          } else if (each.type === 'whole' || !held.has(each.key)) {
            held.set(each.key, { definition: ++version, slices: held.get(each.key)?.slices ?? new Map() })
            whole(each.key)
          } else {
            const there = held.get(each.key) as { definition: number }
            there.definition = ++version
            tell({ type: 'ServiceChanged', registry, key: each.key, service: service(each.key, version), slices: undefined, at: 0 })
          }
        }
        if (isBehind) restart(0, true)
        while (receiver.take(mailbox)) {}
        const fresh = new MergedServices(new Faults())
        for (const [key, { definition }] of held) fresh.set('Mock', key, { service: service(key, definition), slices: slicesIn(held, key) })
        expect(stateOf(receiver.services)).to.deep.equal(stateOf(fresh))
      }),
      { numRuns: runs(500), seed },
    )
  })
})
