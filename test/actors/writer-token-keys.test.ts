import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { WriterTokenKeys } from '../../actors/discovery/xds-writer/token-keys.ts'
import { monotonicMs } from '../../actors/runtime/clock.ts'
import type { TokenKeySet, TokenKeysQuestion } from '../../protocols/messages/identity.ts'
import type { TokenRule } from '../../src/identity/token-rules.ts'
import { until } from '../harness/until.ts'

const keySet = (kid: string) =>
  JSON.stringify({ keys: [{ ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }), kid, alg: 'ES256' }] })
const rule: TokenRule = {
  authenticator: 'jwt-rule',
  issuer: 'https://issuer.example',
  audiences: ['mesh-ca'],
  origin: { type: 'remote', source: 'https://issuer.example/keys' },
  onlyForCa: false,
}

describe('keys of tokens in a writer', () => {
  /** The keys of one rule, with an authenticator whose answers the test gives. */
  function held() {
    const asked: { question: TokenKeysQuestion; answer: (keys: TokenKeySet) => void; fail: (error: Error) => void }[] = []
    const keys = new WriterTokenKeys([rule], (question) => new Promise((answer, fail) => asked.push({ question, answer, fail })))
    const receive = (content: string | undefined, isUnknown = false) => keys.receive({ type: 'TokenKeysChanged', rule: 0, keys: content, isUnknown })
    return { asked, receive, source: keys.of(rule) }
  }

  it('are those that the authenticator sent last, without a question', async () => {
    const { asked, receive, source } = held()
    receive(keySet('one'))
    receive(keySet('two'))
    expect((await source.ready())?.has('two')).to.equal(true)
    expect(asked).to.deep.equal([])
  })

  it('are asked for once by all tokens that wait for the first ones, and by later ones again after a failure', async () => {
    const { asked, source } = held()
    const waiting = [source.ready(), source.ready()]
    expect(asked.map(({ question }) => question)).to.deep.equal([{ rule: 0, renewed: false }])
    asked[0]?.fail(new Error('the authenticator starts'))
    expect((await Promise.allSettled(waiting)).map(({ status }) => status)).to.deep.equal(['rejected', 'rejected'])
    const again = source.ready()
    asked[1]?.answer({ keys: undefined, isUnknown: true })
    expect(await again).to.equal(undefined)
    expect(source.isUnknown).to.equal(true)
  })

  it('are asked for once a second, however many tokens name unknown keys', async () => {
    const { asked, receive, source } = held()
    receive(keySet('one'))
    const started = monotonicMs()
    const waiting = Array.from({ length: 100 }, () => source.renewed())
    asked[0]?.answer({ keys: keySet('two'), isUnknown: false })
    for (const keys of await Promise.all(waiting)) expect(keys?.has('two')).to.equal(true)
    await until('the next question', async () => {
      const next = source.renewed()
      if (asked.length > 1) return true
      await next
      return false
    })
    expect(asked.map(({ question }) => question.renewed)).to.deep.equal([true, true])
    expect(monotonicMs() - started, 'milliseconds until the second question').to.be.at.least(1000)
  })

  it('stay while an authenticator that starts again does not know them yet, and go when the issuer has none', async () => {
    const { receive, source, asked } = held()
    receive(keySet('one'))
    receive(undefined, true)
    expect((await source.ready())?.has('one')).to.equal(true)
    receive(undefined)
    const gone = source.ready()
    asked[0]?.answer({ keys: undefined, isUnknown: false })
    expect(await gone).to.equal(undefined)
    expect(source.isUnknown).to.equal(false)
  })
})
