/** Questions with deadlines of their own: what is left is passed on, and nobody works for an asker that has gone. */
import { expect } from 'chai'
import { patient } from '../../actors/runtime/ask.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { Supervisor } from '../../actors/runtime/supervisor.ts'
import type { TokenQuestion } from '../../protocols/messages/identity.ts'
import { until } from '../harness/until.ts'

const off = { fallback: 'none', scopes: {} } as const
const logOptions = { output: off, stackTrace: off, callers: [] }
const module = new URL('parts/waiting.ts', import.meta.url)

for (const mode of ['threads', 'in-thread'] as const)
  describe(`a question with a deadline of its own (${mode})`, () => {
    let supervisor: Supervisor
    beforeEach(async () => {
      const answers = {
        authenticate: (question: TokenQuestion, asking = patient) => supervisor.askFor(asking, 'waiting/answers', 'authenticate', question),
      }
      supervisor = new Supervisor({ mode, log: createLogger(logOptions, () => {}), logOptions, logged: () => undefined, answers })
      for (const name of ['waiting/answers', 'waiting/asks']) supervisor.start({ name, module, config: {} })
      await supervisor.started()
    })
    afterEach(() => supervisor.drain([], 1000))

    const seen = (name: string) => supervisor.ask<string[]>(name, 'seen')
    const asked = (token: string) => until(`${token} to be asked`, async () => (await seen('waiting/answers')).length > 0)

    it('reaches the one who answers with what is left of it, and ends there before it ends for the asker', async () => {
      await supervisor.ask('waiting/asks', 'begin', 'a token', 200)
      await until('the end', async () => (await seen('waiting/answers')).length === 2)
      const [began, end] = await seen('waiting/answers')
      expect(began).to.equal('a token with little left')
      expect(end).to.match(/^a token: the (deadline has passed|asker has given up)$/)
    })

    it('has its own deadline without another one', async () => {
      await supervisor.ask('waiting/asks', 'begin', 'a token', 0)
      await asked('a token')
      expect(await seen('waiting/answers')).to.deep.equal(['a token with nearly eight seconds left'])
    })

    it('is given up when its asker ends', async () => {
      await supervisor.ask('waiting/asks', 'begin', 'a token', 0)
      await asked('a token')
      supervisor.kill('waiting/asks')
      await until('the end', async () => (await seen('waiting/answers')).length === 2)
      expect((await seen('waiting/answers'))[1]).to.equal('a token: the asker has given up')
    })

    it('fails when the one who answers ends', async () => {
      await supervisor.ask('waiting/asks', 'begin', 'a token', 0)
      await asked('a token')
      supervisor.kill('waiting/answers')
      await until('the failure', async () => (await seen('waiting/asks')).length === 1)
      expect(await seen('waiting/asks')).to.deep.equal(['a token: actor waiting/answers has ended'])
    })

    it('is not sent for an asker that has gone', async () => {
      const gone = { ...patient, signal: AbortSignal.abort() }
      const failure = await supervisor.askFor(gone, 'waiting/answers', 'authenticate', { token: 'a token' }).catch((error: Error) => error.message)
      expect(failure).to.equal('request authenticate was not sent: nobody waits for its answer')
      expect(await seen('waiting/answers')).to.deep.equal([])
    })
  })
