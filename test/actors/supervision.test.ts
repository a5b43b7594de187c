import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { expect } from 'chai'
import { createLogger } from '../../actors/runtime/logger.ts'
import { restartPolicy } from '../../actors/runtime/restarts.ts'
import { Supervisor } from '../../actors/runtime/supervisor.ts'
import { every } from '../../actors/runtime/timers.ts'
import { watchPolicy } from '../../actors/runtime/watchdog.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import { OwnTime } from '../harness/own-time.ts'
import { until } from '../harness/until.ts'
import { seen } from './parts/troubled.ts'

const off = { fallback: 'none', scopes: {} } as const
const logOptions = { output: off, stackTrace: off, callers: [] }
const module = new URL('parts/troubled.ts', import.meta.url)

for (const mode of ['threads', 'in-thread'] as const) {
  describe(`actors that fail (${mode})`, () => {
    let supervisor: Supervisor
    const start = (deadline = 0, policy = restartPolicy) => {
      const watch = { ...watchPolicy(deadline), ...(deadline > 0 ? { startDeadline: 4 * deadline } : {}) }
      supervisor = new Supervisor({ mode, log: createLogger(logOptions, () => {}), logOptions, logged, answers: {}, watch, policy })
    }
    let said: string[] = []
    const logged = (records: readonly LogRecord[]) => void said.push(...records.map(({ message }) => message))
    const state = (name: string) => supervisor.states().find((known) => known.name === name)
    const restarted = (name: string, times = 1) =>
      until(`${name} to be restarted`, () => state(name)?.state === 'running' && state(name)?.restarts === times)
    afterEach(() => supervisor.drain([], 1000))

    for (const [way, message] of [
      ['throw', 'thrown'],
      ['reject', 'rejected'],
    ] as const) {
      it(`in a timer or a promise (${way}) are ended and restarted, and no other actor is`, async () => {
        start()
        for (const name of ['troubled/0', 'troubled/1']) supervisor.start({ name, module, config: {} })
        await supervisor.started()
        const port = await supervisor.ask<number>('troubled/0', 'port')
        seen.length = 0
        // The actor may have ended before its answer arrives.
        await supervisor.ask('troubled/0', 'later', way).catch(() => undefined)
        await restarted('troubled/0')
        expect(state('troubled/0')?.lastError?.message).to.equal(message)
        expect([state('troubled/0')?.health, state('troubled/1')?.health]).to.deep.equal(['unstable', 'well'])
        // Its resources are closed, as when a thread ends.
        await until('its server to be closed', () => refuses(port))
        if (mode === 'in-thread') {
          expect(seen.filter((entry) => entry === 'troubled/0 drained')).to.have.length(1)
          await until('the other to tick on', () => seen.includes('troubled/1 ticks'))
        }
      })
    }

    it('on receiving a message are restarted, with new links', async () => {
      start()
      for (const name of ['troubled/0', 'troubled/1']) supervisor.start({ name, module, config: {} })
      supervisor.connect('troubled/0', 'troubled/1')
      await supervisor.started()
      await supervisor.ask('troubled/0', 'send', 'before')
      await supervisor.ask('troubled/0', 'send', 'throw')
      await supervisor.ask('troubled/0', 'send', 'lost with the actor it was for')
      await restarted('troubled/1')
      await until('the new link', async () => (await supervisor.ask<string[]>('troubled/0', 'events')).length === 3)
      expect(await supervisor.ask('troubled/0', 'events')).to.deep.equal(['linked troubled/1', 'unlinked troubled/1', 'linked troubled/1'])
      await supervisor.ask('troubled/0', 'send', 'after')
      await until('the message', async () => (await supervisor.ask<string[]>('troubled/1', 'events')).length === 2)
      expect(await supervisor.ask('troubled/1', 'events')).to.deep.equal(['linked troubled/0', 'after'])
    })

    it('when a peer is unlinked are restarted, and no other actor is', async () => {
      start()
      for (const name of ['troubled/0', 'troubled/1', 'troubled/2'])
        supervisor.start({ name, module, config: { throwsWhenUnlinked: name === 'troubled/1' } })
      supervisor.connect('troubled/0', 'troubled/1')
      await supervisor.started()
      supervisor.kill('troubled/0')
      await restarted('troubled/1')
      expect(state('troubled/1')?.lastError?.message).to.equal('thrown when unlinked')
      expect(state('troubled/2')?.health).to.equal('well')
    })

    it('stop their timers when they are killed', async () => {
      start()
      supervisor.start({ name: 'troubled/0', module, config: {} })
      await supervisor.started()
      supervisor.kill('troubled/0')
      await restarted('troubled/0')
      const ticks = () => seen.filter((entry) => entry === 'troubled/0 ticks').length
      if (mode === 'threads') return
      // One timer ticks, not two: at most as many ticks as fit into the time, whatever the load.
      const before = ticks()
      const since = performance.now()
      await until('some ticks', () => ticks() > before + 20)
      expect(ticks() - before).to.be.at.most((performance.now() - since) / 5 + 2)
    })

    it('that are restarted on purpose have not failed, and lose nothing of their links', async () => {
      start()
      for (const name of ['troubled/0', 'troubled/1']) supervisor.start({ name, module, config: {} })
      supervisor.connect('troubled/0', 'troubled/1')
      await supervisor.started()
      const before = state('troubled/0')?.startedAt ?? 0
      supervisor.restart('troubled/0')
      await until('the new link', async () => (await supervisor.ask<string[]>('troubled/1', 'events')).length === 3)
      await until('the actor', () => state('troubled/0')?.state === 'running')
      expect(state('troubled/0')?.startedAt).to.be.greaterThan(before)
      expect(state('troubled/0')).to.include({ health: 'well', ends: 0, restarts: 0, lastError: undefined })
    })

    it('log with the configured levels, also after a restart', async () => {
      start()
      said = []
      supervisor.start({ name: 'troubled/0', module, config: {} })
      const say = (words: string) => supervisor.ask('troubled/0', 'say', words)
      await supervisor.started()
      await say('unheard')
      await supervisor.setLogLevels({ ...logOptions, output: { fallback: 'none', scopes: { default: 'debug' } } })
      await say('first')
      await until('the first', () => said.includes('first'))
      supervisor.kill('troubled/0')
      await restarted('troubled/0')
      await say('second')
      await until('the second', () => said.includes('second'))
      await supervisor.setLogLevels(logOptions)
      await say('unheard again')
      await supervisor.drain([], 1000)
      expect(said).to.deep.equal(['first', 'second'])
    })

    it('reject pending questions when they end', async () => {
      start()
      supervisor.start({ name: 'troubled/0', module, config: {} })
      await supervisor.started()
      const asked = supervisor.ask('troubled/0', 'port').then(
        () => 'answered',
        (error: Error) => error.message,
      )
      supervisor.kill('troubled/0')
      expect(await asked).to.equal('actor troubled/0 has ended')
      await restarted('troubled/0')
    })

    it('at their start are retried, and leave no timer behind', async () => {
      start(0, { firstMs: 10, longestMs: 50, intensity: 3, window: 60_000 })
      seen.length = 0
      supervisor.start({ name: 'troubled/0', module, config: { throwsAtStart: true } })
      await until('the limit', () => state('troubled/0')?.health === 'failing')
      expect(state('troubled/0')?.lastError?.message).to.equal('no start')
      await supervisor.drain([], 100)
      const ticks = seen.length
      let own = 0
      const ticking = every(5, () => own++)
      await until('a timer of the same period to tick', () => own >= 5)
      ticking.cancel()
      expect(seen.length).to.equal(ticks)
    })
  })
}

describe('actors that hang', () => {
  let supervisor: Supervisor
  const deadline = 1000
  const state = (name: string) => supervisor.states().find((known) => known.name === name)
  beforeEach(() => {
    const watch = { deadline, startDeadline: 5 * deadline }
    supervisor = new Supervisor({ mode: 'threads', log: createLogger(logOptions, () => {}), logOptions, logged: () => {}, answers: {}, watch })
  })
  afterEach(() => supervisor.drain([], 1000))

  it('in a loop are ended, restarted and counted, and no other actor is', async () => {
    for (const name of ['troubled/0', 'troubled/1']) supervisor.start({ name, module, config: {} })
    supervisor.start({ name: 'here', module, config: {}, mode: 'in-thread' })
    await supervisor.started()
    await supervisor.ask('troubled/0', 'later', 'hang')
    await until('it to be seen', () => (state('troubled/0')?.silentMs ?? 0) > 0)
    // Who asks all of them does not wait for it.
    const asked = new OwnTime()
    expect(await supervisor.askAll('troubled', 'events')).to.have.length(1)
    expect(asked.ms()).to.be.lessThan(deadline)
    await until('the restart', () => state('troubled/0')?.state === 'running' && (state('troubled/0')?.restarts ?? 0) > 0)
    expect(state('troubled/0')?.lastError?.message).to.equal('did not answer for 1 s')
    expect([state('troubled/1')?.restarts, state('here')?.restarts]).to.deep.equal([0, 0])
    expect([state('troubled/0')?.watched, state('here')?.watched]).to.deep.equal([true, false])
  })

  it('are ended later while their threads have no processor', async function () {
    if (process.platform !== 'linux') return this.skip()
    await supervisor.drain([], 1000)
    const asked = new Set<number>()
    const processorWaitMs = (thread: number) => {
      asked.add(thread)
      return performance.now()
    }
    const options = { mode: 'threads', log: createLogger(logOptions, () => {}), logOptions, logged: () => {}, answers: {}, processorWaitMs } as const
    supervisor = new Supervisor({ ...options, watch: { deadline, startDeadline: 5 * deadline } })
    for (const name of ['troubled/0', 'troubled/1']) supervisor.start({ name, module, config: {} })
    await supervisor.started()
    const from = performance.now()
    await supervisor.ask('troubled/0', 'later', 'hang')
    await until('the restart', () => (state('troubled/0')?.restarts ?? 0) > 0)
    expect(performance.now() - from).to.be.greaterThan(3 * deadline)
    // Each has a thread of its own, which the system knows.
    expect(asked.size).to.be.greaterThan(1)
    expect([...asked].some((thread) => existsSync(`/proc/self/task/${thread}`))).to.equal(true)
  })

  it('at their start are ended too', async () => {
    supervisor.start({ name: 'troubled/0', module, config: { startsNever: true } })
    await until('the restart', () => (state('troubled/0')?.restarts ?? 0) > 0)
    expect(state('troubled/0')?.lastError?.message).to.equal('did not answer for 5 s')
  })

  it('do not include actors that the supervisor itself delayed', async () => {
    for (const name of ['troubled/0', 'troubled/1']) supervisor.start({ name, module, config: {} })
    await supervisor.started()
    const end = performance.now() + 3 * deadline
    while (performance.now() < end);
    await supervisor.ask('troubled/1', 'later', 'hang')
    await until('one that hangs to be ended', () => (state('troubled/1')?.restarts ?? 0) > 0)
    expect(state('troubled/0')?.restarts).to.equal(0)
  })
})

/** Whether a port refuses connections. */
function refuses(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => resolve(true))
    socket.on('connect', () => {
      socket.destroy()
      resolve(false)
    })
  })
}
