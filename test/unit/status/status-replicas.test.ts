/** The leader goes while proxies move between three replicas: what is written to a status by whom (docs/status.md, S6 to S8). */
import { expect } from 'chai'
import fc from 'fast-check'
import type { HeldStatus, MeshObject, StatusOutcome } from '../../../protocols/messages/object-status.ts'
import { type DueStatus, ObjectStatuses } from '../../../src/status/object-statuses.ts'
import { runs } from '../../harness/seed.ts'

const key = 'VirtualService/ns/a'
const parts = { reconciled: true, analysis: false, perSecond: 0, burst: 1, others: true }
const date = '2026-11-29T03:00:00Z'

/** A replica: what it has heard of the object and pushed, and the pushes that its proxies have. */
class Replica {
  readonly statuses = new ObjectStatuses(parts, 0, 0)
  push = 0
  /** The generation in its last push. */
  generation = 0
  heardVersion = 0
}

/** A server with one object, and three replicas of which at most one leads. */
class Model {
  readonly #replicas = [new Replica(), new Replica(), new Replica()]
  /** The replica and the push of each proxy. */
  readonly #proxies: { at: number; has: number }[] = Array.from({ length: 4 }, (_, index) => ({ at: index % 3, has: 0 }))
  #object: MeshObject = {
    ...{ key, group: 'networking.mesh.io', version: 'v1', plural: 'virtualservices', namespace: 'ns', name: 'a' },
    ...{ uid: 'u', resourceVersion: '1', generation: 1, fault: '', status: undefined },
  }
  #version = 1
  #now = 0
  #leader = 0
  #underWay: { readonly by: number; readonly due: DueStatus } | undefined
  writes = 0

  /** The object is changed; `isPushed`: the leader is the first that pushes it. */
  edit(isPushed: boolean): void {
    this.#set({ generation: this.#object.generation + 1 })
    if (isPushed) this.publish(this.#leader)
  }

  /** A replica hears of the object as it is now, and pushes it later. */
  hear(of: number): void {
    const replica = this.#of(of)
    if (replica.heardVersion === this.#version) return
    replica.heardVersion = this.#version
    replica.statuses.set('o a', this.#object)
  }

  publish(of: number): void {
    const replica = this.#of(of)
    this.hear(of)
    if (replica.generation === this.#object.generation) return
    replica.generation = this.#object.generation
    replica.push++
    replica.statuses.published(replica.push, [{ key, uid: 'u', generation: replica.generation, isSame: false }], this.#now)
    this.#tellReached()
  }

  /** A proxy connects to another replica, where it has nothing yet. */
  move(proxy: number, to: number): void {
    this.#proxies[proxy] = { at: to, has: 0 }
    this.#tellReached()
  }

  acknowledge(proxy: number): void {
    const of = this.#proxies[proxy] as { at: number; has: number }
    of.has = this.#of(of.at).push
    this.#tellReached()
  }

  /** Another replica leads. What the last leader has under way may have been made before, and is refused otherwise. */
  lead(next: number, wasMade: boolean): void {
    if (next === this.#leader) return
    this.#end(wasMade)
    this.#leader = next
    this.#of(next).statuses.again()
  }

  /** Time goes by, in which the leader asks the others and writes. */
  pass(ms: number): void {
    this.#now += ms
    this.#end(true)
    const { statuses } = this.#of(this.#leader)
    const asked = statuses.toAsk()
    if (asked.length > 0) {
      const answers = this.#replicas.flatMap((each, index) => (index === this.#leader ? [] : [each.statuses.counted(asked, this.#now)]))
      const all = answers.reduce((sum, answer) => sum + (answer?.all ?? 0), 0)
      const have = asked.map((_, index) => answers.reduce((sum, answer) => sum + (answer?.have[index] ?? 0), 0))
      statuses.othersCounted(asked, { all, have, silent: answers.includes(undefined) ? ['other'] : [] })
    }
    const due = statuses.next(this.#now, date)
    if (due) this.#underWay = { by: this.#leader, due }
  }

  /** All replicas and proxies have what there is. Returns what the status says then. */
  settle(): [generation: number | undefined, isReconciled: string | undefined] {
    for (const each of [0, 1, 2]) this.publish(each)
    for (const proxy of this.#proxies.keys()) this.acknowledge(proxy)
    for (let round = 0; round < 40; round++) {
      for (const each of [0, 1, 2]) this.hear(each)
      this.pass(10_000)
    }
    const { status } = this.#object
    const own = (JSON.parse(status?.conditions || '[]') as { type: string; status: string }[]).find(({ type }) => type === 'Reconciled')
    return [status?.observedGeneration, own?.status]
  }

  get generation(): number {
    return this.#object.generation
  }

  /** What is under way ends. The server refuses a patch of a status that is another by now. */
  #end(isMade: boolean): void {
    if (!this.#underWay) return
    const { by, due } = this.#underWay
    this.#underWay = undefined
    const isThere = JSON.stringify(due.object.status) === JSON.stringify(this.#object.status)
    const outcome = (): StatusOutcome => {
      if (!isMade) return { outcome: 'lost' }
      if (!isThere) return { outcome: 'conflict' }
      this.#write(due.status)
      return { outcome: 'written', resourceVersion: String(this.#version) }
    }
    this.#of(by).statuses.ended(due, outcome(), this.#now, 0.5)
  }

  #write(status: HeldStatus): void {
    const before = this.#object.status
    expect(JSON.stringify(status), 'what is said is not written again').not.to.equal(JSON.stringify(before))
    expect(status.observedGeneration ?? 0, 'an earlier generation').to.be.at.least(before?.observedGeneration ?? 0)
    this.writes++
    this.#set({ status })
  }

  #set(change: Partial<MeshObject>): void {
    this.#object = { ...this.#object, ...change, resourceVersion: String(++this.#version) }
  }

  #of(index: number): Replica {
    return this.#replicas[index] as Replica
  }

  #tellReached(): void {
    for (const [index, { statuses }] of this.#replicas.entries()) {
      const pushes = this.#proxies.flatMap(({ at, has }) => (at === index ? [has] : [])).sort((one, other) => one - other)
      const counts = [...Map.groupBy(pushes, (push) => push)].flatMap(([push, all]) => [push, all.length])
      statuses.reached(Float64Array.from(counts))
    }
  }
}

describe('the status of an object whose writer changes', () => {
  it('ends right, is never that of an earlier generation, and nothing is written twice', () => {
    const replica = fc.nat(2)
    const proxy = fc.nat(3)
    const step: fc.Arbitrary<(model: Model) => void> = fc.oneof(
      fc.boolean().map((isPushed) => (model: Model) => model.edit(isPushed)),
      replica.map((of) => (model: Model) => model.hear(of)),
      { weight: 2, arbitrary: replica.map((of) => (model: Model) => model.publish(of)) },
      fc.tuple(proxy, replica).map(
        ([of, to]) =>
          (model: Model) =>
            model.move(of, to),
      ),
      { weight: 2, arbitrary: proxy.map((of) => (model: Model) => model.acknowledge(of)) },
      {
        weight: 2,
        arbitrary: fc.tuple(replica, fc.boolean()).map(
          ([next, wasMade]) =>
            (model: Model) =>
              model.lead(next, wasMade),
        ),
      },
      { weight: 4, arbitrary: fc.integer({ min: 1, max: 20_000 }).map((ms) => (model: Model) => model.pass(ms)) },
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
        const model = new Model()
        model.settle()
        for (const each of steps) each(model)
        expect(model.settle()).to.deep.equal([model.generation, 'True'])
        const before = model.writes
        for (const leader of [0, 1, 2]) {
          model.lead(leader, true)
          model.settle()
        }
        expect(model.writes, 'the next leaders write nothing again that is right').to.equal(before)
      }),
      { numRuns: runs(3000) },
    )
  })
})
