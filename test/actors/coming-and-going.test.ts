import { expect } from 'chai'
import fc from 'fast-check'
import { createLogger } from '../../actors/runtime/logger.ts'
import { restartPolicy } from '../../actors/runtime/restarts.ts'
import { Supervisor } from '../../actors/runtime/supervisor.ts'
import { until } from '../harness/until.ts'
import type { AnnouncingConfig } from './parts/announcing.ts'

const off = { fallback: 'none', scopes: {} } as const
const logOptions = { output: off, stackTrace: off, callers: [] }
const module = new URL('parts/announcing.ts', import.meta.url)
const many = Array.from({ length: 2000 }, (_, index) => `o${String(index).padStart(4, '0')}`)

for (const mode of ['threads', 'in-thread'] as const) {
  describe(`actors that come and go (${mode})`, () => {
    let supervisor: Supervisor
    let lines: string[]
    const begin = (policy = restartPolicy) => {
      lines = []
      const shown = { ...logOptions, output: { fallback: 'debug', scopes: {} } } as const
      const log = createLogger(shown, ({ message }) => void lines.push(message))
      supervisor = new Supervisor({ mode, log, logOptions, logged: () => {}, answers: {}, policy })
      supervisor.start({ name: 'keeper', module, config: {} })
    }
    const start = (name: string, config: AnnouncingConfig) => supervisor.start({ name, module, config }, ['keeper'])
    const held = () => supervisor.ask<string[]>('keeper', 'held')
    const events = () => supervisor.ask<string[]>('keeper', 'events')
    const holds = (what: string, objects: readonly string[]) =>
      until(what, async () => JSON.stringify(await held()) === JSON.stringify([...objects].sort()))
    const names = () => supervisor.states().map(({ name }) => name)
    afterEach(() => supervisor.drain([], 1000))

    it('are linked when they come; what they announced goes with them, and other announcements stay', async () => {
      begin()
      start('source/a', { objects: ['shared', 'a'] })
      start('source/b', { objects: ['shared', 'b'] })
      await holds('all objects', ['shared', 'a', 'b'])
      await supervisor.stop('source/a', 1000)
      expect(names()).to.deep.equal(['keeper', 'source/b'])
      await holds('those of the other', ['shared', 'b'])
      expect((await events()).slice(-2)).to.deep.equal(['unlinked source/a', 'forgotten source/a'])
      await supervisor.stop('source/a', 1000)
      // The name can be used again, with another configuration, and nothing of the first remains.
      start('source/a', { objects: ['new'] })
      await holds('the new one', ['shared', 'b', 'new'])
    })

    it('are not withdrawn when they are killed, and are when they are stopped meanwhile', async () => {
      begin({ ...restartPolicy, firstMs: 3_600_000, longestMs: 3_600_000 })
      start('source/a', { objects: ['a'] })
      await holds('the object', ['a'])
      supervisor.kill('source/a')
      await until('its end', async () => (await events()).at(-1) === 'unlinked source/a')
      expect(await held()).to.deep.equal(['a'])
      expect(supervisor.states().find(({ name }) => name === 'source/a')?.state).to.equal('restarting')
      await supervisor.stop('source/a', 1000)
      await holds('nothing', [])
      expect((await events()).at(-1)).to.equal('forgotten source/a')
      expect(names()).to.deep.equal(['keeper'])
    })

    it('are stopped in the middle of a replay and under load', async () => {
      begin()
      start('source/half', { objects: many, stopsAfter: 1500 })
      start('source/busy', { objects: many, keepsOn: true })
      await holds('all objects', many)
      await Promise.all([supervisor.stop('source/busy', 1000), supervisor.stop('source/half', 1000)])
      await holds('nothing', [])
      start('source/half', { objects: many.slice(0, 10), stopsAfter: 5 })
      await holds('the half', many.slice(0, 5))
    })

    it('that do not end in time are ended, once, and a killed one is not started again', async () => {
      begin()
      start('source/slow', { objects: ['a'], endsAfterMs: 3_600_000 })
      await holds('the object', ['a'])
      const stopped = [supervisor.stop('source/slow', 10), supervisor.stop('source/slow', 3_600_000)]
      expect(() => start('source/slow', {})).to.throw('there is an actor source/slow already')
      await Promise.all(stopped)
      await holds('nothing', [])
      expect(lines).to.deep.equal(['actor source/slow ended before it had finished its work: the actor was killed'])
      start('source/slow', { objects: ['b'], endsAfterMs: 3_600_000 })
      await holds('the object of the next', ['b'])
      const again = supervisor.stop('source/slow', 3_600_000)
      supervisor.kill('source/slow')
      await again
      expect(names()).to.deep.equal(['keeper'])
      await holds('nothing again', [])
    })

    it('that are starting are stopped, and none is started while everything ends', async () => {
      begin()
      start('source/a', { objects: ['a'] })
      await supervisor.stop('source/a', 1000)
      expect(names()).to.deep.equal(['keeper'])
      start('source/b', { objects: ['b'], endsAfterMs: 5 })
      await holds('the object', ['b'])
      const stopped = supervisor.stop('source/b', 1000)
      await Promise.all([supervisor.drain([], 1000), stopped])
      start('source/c', {})
      expect(names()).to.deep.equal(['keeper'])
    })

    it('leave exactly what the present ones announce, after any history of starts, stops and kills', async () => {
      begin({ ...restartPolicy, firstMs: 1, longestMs: 5, intensity: 1000 })
      await supervisor.started()
      const step = fc.tuple(fc.constantFrom('start', 'stop', 'kill', 'kill keeper', 'wait'), fc.constantFrom('a', 'b', 'c'))
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
          const there = new Map<string, string[]>()
          for (const [act, id] of steps) {
            const name = `source/${id}`
            const objects = ['shared', id, ...many.slice(0, 50 * there.size)]
            if (act === 'start' && !there.has(id)) {
              await supervisor.stop(name, 1000)
              start(name, { objects })
              there.set(id, objects)
            } else if (act === 'stop') {
              void supervisor.stop(name, 1000)
              there.delete(id)
            } else if (act === 'kill') supervisor.kill(name)
            else if (act === 'kill keeper') supervisor.kill('keeper')
            else await new Promise((resolve) => setImmediate(resolve))
          }
          await supervisor.started()
          const expected = JSON.stringify([...new Set([...there.values()].flat())].sort())
          await until('the objects of the present actors', async () => JSON.stringify(await held().catch(() => undefined)) === expected)
          await Promise.all(['a', 'b', 'c'].map((id) => supervisor.stop(`source/${id}`, 1000)))
        }),
        { numRuns: mode === 'threads' ? 8 : 40 },
      )
    })
  })
}
