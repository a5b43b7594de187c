import { expect } from 'chai'
import { ReadinessJudge, readiness } from '../../../actors/discovery/admin/readiness.ts'
import type { ActorState } from '../../../actors/runtime/supervisor.ts'
import { attentionNote, servingNote, unopenedNote, unsyncedNote } from '../../../protocols/messages/notes.ts'

const actor = (name: string, more: Partial<ActorState> = {}): ActorState => ({
  name,
  state: 'running',
  health: 'well',
  ends: 0,
  restarts: 0,
  lastError: undefined,
  silentMs: 0,
  watched: true,
  notes: new Map(),
  startedAt: 0,
  ...more,
})
const error = { name: 'Error', message: 'boom', stack: '' }
const serving = (name: string, more: Partial<ActorState> = {}) => actor(name, { notes: new Map([[servingNote, true]]), ...more })
const synced = (more: Partial<ActorState> = {}) => actor('push-queue', { notes: new Map([[unsyncedNote, []]]), ...more })
const sources = ['source/files', 'source/mock']
const all = () => [synced(), ...sources.map((name) => actor(name)), serving('xds-writer/0'), serving('xds-writer/1')]
const without = (name: string) => all().filter((state) => state.name !== name)

describe('readiness', () => {
  it('is given without a message when every writer serves', () => {
    expect(readiness(all(), sources, false)).to.deep.equal({ ready: true, text: '' })
  })

  it('is told to nobody before what has to be done first, which is done once', () => {
    let [states, done]: [ActorState[], number] = [[synced({ state: 'starting' })], 0]
    const judge = new ReadinessJudge(
      () => states,
      sources,
      undefined,
      () => [],
      () => done++,
    )
    expect([judge.judge().ready, done]).to.deep.equal([false, 0])
    states = all()
    expect([judge.judge().ready, done]).to.deep.equal([true, 1])
    states = without('xds-writer/0').map((state) => ({ ...state, health: 'failing' as const }))
    expect(judge.judge().ready).to.equal(false)
    states = all()
    expect([judge.judge().ready, done]).to.deep.equal([true, 1])
  })

  it('is not given the first time while it is held for a port that is not open, and says why', () => {
    let held = ['others have open ports']
    const closed = serving('xds-writer/0', {
      notes: new Map<string, unknown>([
        [servingNote, true],
        [unopenedNote, ['it is not signed']],
      ]),
    })
    const states = [...without('xds-writer/0'), closed]
    const judge = new ReadinessJudge(
      () => states,
      sources,
      undefined,
      () => [],
      () => undefined,
      (unopened) => (unopened.length > 0 ? held : []),
    )
    const text = 'discovery is not ready: a port has no certificate\nothers have open ports\nit is not signed'
    expect(judge.judge()).to.deep.equal({ ready: false, text })
    held = []
    expect(judge.judge()).to.deep.equal({ ready: true, text: 'it is not signed' })
    held = ['others have open ports']
    expect(judge.judge().ready, 'once it was ready').to.equal(true)
  })

  it('is given with what needs attention, once for all actors that say the same', () => {
    const notes = (lines: readonly string[], more: [string, unknown][] = []) => ({
      notes: new Map<string, unknown>([[attentionNote, lines], ...more]),
    })
    const writers = ['xds-writer/0', 'xds-writer/1'].map((name) => actor(name, notes(['the root has expired'], [[servingNote, true]])))
    const authority = actor('certificate-authority', notes(['the clock is wrong', 'the root has expired']))
    const judged = readiness([synced(), ...sources.map((name) => actor(name)), ...writers, authority], sources, false)
    expect(judged).to.deep.equal({ ready: true, text: 'the root has expired\nthe clock is wrong' })
  })

  it('is not given before the first complete state, and names missing sources and unhealthy actors', () => {
    const queue = actor('push-queue', { notes: new Map([[unsyncedNote, ['source/mock']]]) })
    const mock = actor('source/mock', { state: 'restarting', health: 'unstable', ends: 2, restarts: 2, lastError: error })
    const judged = readiness([queue, mock, actor('xds-writer/0')], sources, false)
    expect(judged.ready).to.equal(false)
    expect(judged.text.split('\n')).to.deep.equal([
      'discovery is not ready: the complete configuration is not served yet',
      'source/mock has not delivered its complete state yet',
      'actor source/mock ended 2 times recently (restarting), last: boom',
    ])
    expect(readiness([actor('push-queue', { state: 'starting' })], sources, false).text).to.equal(
      [
        'discovery is not ready: the complete configuration is not served yet',
        ...sources.map((source) => `${source} has not delivered its complete state yet`),
        'actor push-queue is starting',
      ].join('\n'),
    )
  })

  it('requires at first all writers, and all actors to have started', () => {
    const late = [...without('xds-writer/1'), actor('xds-writer/1')]
    expect([readiness(late, sources, false).ready, readiness(late, sources, true).ready]).to.deep.equal([false, true])
    const starting = [...without('source/files'), actor('source/files', { state: 'starting' })]
    expect(readiness(starting, sources, false).ready).to.equal(false)
  })

  it('is kept while writers serve the last complete state, and names restarting and hung actors', () => {
    const queue = actor('push-queue', { state: 'starting', health: 'unstable', ends: 1, restarts: 1, lastError: error })
    const hung = serving('xds-writer/1', { silentMs: 7500 })
    const judged = readiness([queue, ...sources.map((name) => actor(name)), serving('xds-writer/0'), hung], sources, true)
    expect(judged.ready).to.equal(true)
    expect(judged.text.split('\n')).to.deep.equal([
      ...sources.map((source) => `${source} has not delivered its complete state yet`),
      'actor push-queue ended once recently (starting), last: boom',
      'actor xds-writer/1 has not answered for 7.5 s',
    ])
  })

  it('is lost if an actor exceeds its restart limit or if no writer serves', () => {
    const flapping = [synced({ health: 'failing', ends: 9, restarts: 9, lastError: error }), ...without('push-queue')]
    const judged = readiness(flapping, sources, true)
    expect(judged.ready).to.equal(false)
    expect(judged.text.split('\n')).to.deep.equal([
      'discovery is not ready: an actor keeps failing',
      'actor push-queue keeps failing (runs again): ended 9 times, last: boom',
    ])
    const silent = [synced(), actor('xds-writer/0', { state: 'restarting', health: 'unstable', ends: 1, restarts: 1, lastError: error })]
    expect(readiness(silent, [], true).ready).to.equal(false)
  })
})
