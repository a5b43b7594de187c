/** What a followed resource makes of the answers of an API server, which is the test here (docs/operation.md, C3 to C6). */
import { expect } from 'chai'
import type { ApiCall, RequestEvents } from '../../actors/discovery/cluster/api-session.ts'
import { FollowedResource } from '../../actors/discovery/cluster/followed-resource.ts'
import { coreResource } from '../../src/orchestrator/resources.ts'
import { keyAndVersion } from '../../src/orchestrator/responses.ts'
import { until } from '../harness/until.ts'

/** A resource, and the requests that it has sent. */
class Subject {
  readonly sent: (ApiCall & RequestEvents & { isAbandoned: boolean })[] = []
  readonly told: string[] = []
  readonly failures: string[] = []
  readonly resource: FollowedResource<string>

  constructor(listMs = 60_000) {
    const session = {
      send: (call: ApiCall, events: RequestEvents) => {
        const request = { ...call, ...events, isAbandoned: false }
        this.sent.push(request)
        return { abandon: () => void (request.isAbandoned = true) }
      },
      refused: () => undefined,
    }
    const tell = (line: string) => () => void this.told.push(line)
    this.resource = new FollowedResource<string>(
      coreResource('Pod', 'pods'),
      session,
      {
        read: (value) => {
          const [key, version] = keyAndVersion(value) ?? ['', '']
          return { key, version, object: version }
        },
        set: (key, version) => void this.told.push(`${key} ${version}`),
        remove: (key) => void this.told.push(`${key} is gone`),
        ...{ same: tell('same'), complete: tell('complete'), recovered: tell('recovered'), settled: () => undefined, audited: tell('audited') },
        failed: (_verb, _refusal, reason) => void this.failures.push(reason),
        auditFailed: (_refusal, reason) => void this.failures.push(`audit: ${reason}`),
      },
      { watchMs: 60_000, listMs },
    )
  }

  /** The last request. */
  get last(): Subject['sent'][number] {
    return this.sent.at(-1) as Subject['sent'][number]
  }

  /** Answers the last request with lines in one piece. */
  answer(...lines: readonly object[]): void {
    const { last } = this
    last.answered(200, {})
    if (lines.length > 0) last.received(Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join('')))
  }

  more(...lines: readonly object[]): void {
    this.last.received(Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join('')))
  }
}

const event = (type: string, name: string, version: number) => ({
  type,
  object: { metadata: { namespace: 'a', name, resourceVersion: `${version}` } },
})
const end = (version: number) => ({
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: `${version}`, annotations: { 'k8s.io/initial-events-end': 'true' } } },
})
const gone = { type: 'ERROR', object: { code: 410, message: 'too old' } }

describe('a followed resource', () => {
  it('takes what stands behind an error in the same bytes for no part of the list that the error begins', () => {
    const subject = new Subject()
    subject.resource.start(0)
    subject.answer(event('ADDED', 'x', 3), end(5))
    subject.more(event('MODIFIED', 'x', 6))
    subject.told.length = 0
    subject.more(gone, event('ADDED', 'late', 7), end(7))
    expect([subject.sent.length, subject.sent[0]?.isAbandoned, subject.told]).to.deep.equal([2, true, []])
    subject.answer(event('ADDED', 'y', 8), end(9))
    expect(subject.told).to.deep.equal(['a/y 8', 'a/x is gone', 'complete'])
    subject.resource.close()
  })

  it('reads a list in pages whose server does not go on with a streamed one, and begins it again when pages stand still too', async () => {
    const subject = new Subject(30)
    subject.resource.start(0)
    subject.answer(event('ADDED', 'x', 3))
    await until('another request', () => subject.sent.length > 1)
    expect(subject.last.path).to.equal('/api/v1/pods?limit=500')
    subject.answer()
    await until('the next request', () => subject.sent.length > 2)
    expect(subject.failures).to.deep.equal(Array(2).fill('nothing came for 0.03 s'))
    expect(subject.sent.map(({ isAbandoned }) => isAbandoned)).to.deep.equal([true, true, false])
    subject.resource.close()
  })

  it('waits longer for an event than in the middle of a list', async () => {
    const [subject, other] = [new Subject(1), new Subject(20)]
    for (const each of [subject, other]) each.resource.start(0)
    subject.answer(event('ADDED', 'x', 3), end(5))
    other.answer(event('ADDED', 'x', 3))
    await until('the end of a longer wait', () => other.failures.length > 0)
    expect([subject.failures, subject.sent.length]).to.deep.equal([[], 1])
    for (const each of [subject, other]) each.resource.close()
  })

  it('says whole milliseconds', () => {
    const subject = new Subject()
    subject.resource.start(0)
    subject.answer(event('ADDED', 'x', 3))
    subject.last.broken('lost')
    const { ageMs, lastErrorMs } = subject.resource.status
    expect([ageMs, lastErrorMs].map(Number.isInteger)).to.deep.equal([true, true])
    subject.resource.close()
  })
})
