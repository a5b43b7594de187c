/** The bounds of reviews of tokens (docs/identity.md, K11), with an API server that the test plays. */
import { expect } from 'chai'
import { ApiFailure } from '../../actors/discovery/cluster/cluster-api.ts'
import { type CreateReview, reviewMetrics, TokenReviews } from '../../actors/discovery/cluster/token-reviews.ts'
import { createLogger } from '../../actors/runtime/logger.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { TokenVerdict } from '../../protocols/messages/identity.ts'
import { until } from '../harness/until.ts'

const off = { fallback: 'none', scopes: {} } as const
const status = { authenticated: true, user: { username: 'system:serviceaccount:shop:cart', groups: ['system:serviceaccounts'] } }

/** Reviews with their log. */
function reviews(create: CreateReview) {
  const log: string[] = []
  const output = { fallback: 'debug', scopes: {} } as const
  const logger = createLogger({ output, stackTrace: off, callers: [] }, ({ level, message }) => log.push(`${level} ${message}`))
  const made = new TokenReviews(create, logger, reviewMetrics(new MetricRegistry()))
  const ask = (token: string, client = 'one', signal = new AbortController().signal): Promise<TokenVerdict> =>
    made.answers.reviewToken({ token, audiences: undefined, expiresAt: undefined, client }, { signal, restMs: () => 7000 })
  return { ask, log }
}

describe('reviews of tokens', () => {
  it('are made once for the same token, at the same time and shortly after', async () => {
    const seen: string[] = []
    const { ask } = reviews(async (token) => {
      seen.push(token)
      return token === 'good' ? status : { authenticated: false }
    })
    const verdicts = await Promise.all([ask('good', 'one'), ask('good', 'two'), ask('bad')])
    expect(verdicts.map((verdict) => 'account' in verdict)).to.deep.equal([true, true, false])
    await ask('good')
    await ask('bad')
    expect(seen).to.deep.equal(['good', 'bad'])
  })

  it('are bounded: clients take turns, and the newest token of the client with the most is told to try again', async () => {
    const open: (() => void)[] = []
    const { ask } = reviews(() => new Promise((resolve) => open.push(() => resolve(status))))
    const outcomes = new Map<string, TokenVerdict>()
    const send = (token: string, client: string) => void ask(token, client).then((verdict) => outcomes.set(token, verdict))
    for (let index = 0; index < 1100; index++) send(`flood ${index}`, 'flood')
    await until('the refusals', () => outcomes.size > 0)
    expect(open.length, 'reviews of one client at a time').to.equal(8)
    expect([...outcomes.values()].every((verdict) => 'refused' in verdict && verdict.unavailable)).to.equal(true)
    send('other', 'other')
    await until('the review of another client', () => open.length === 9)
    for (let index = 0; outcomes.size < 1101; index++) {
      await until('the next review', () => index < open.length || outcomes.size === 1101)
      open[index]?.()
    }
    expect(outcomes.get('other')).to.have.property('account')
  })

  it('that nobody waits for any more are not begun', async () => {
    const seen: string[] = []
    const open: (() => void)[] = []
    const { ask } = reviews((token) => {
      seen.push(token)
      return new Promise((resolve) => open.push(() => resolve(status)))
    })
    const first = Array.from({ length: 8 }, (_, index) => ask(`${index}`))
    const gone = new AbortController()
    const [left, stays] = [ask('left', 'one', gone.signal), ask('stays')]
    gone.abort()
    for (const end of open.splice(0)) end()
    await Promise.all(first)
    await until('the next one', () => open.length > 0)
    for (const end of open) end()
    expect(await stays).to.have.property('account')
    expect(await left).to.include({ unavailable: true })
    expect(seen).not.to.include('left')
  })

  it('that fail refuse nobody, are not kept, and are told of once', async () => {
    let failure: ApiFailure | undefined = new ApiFailure('forbidden by a role', 403, 'Forbidden')
    const { ask, log } = reviews(() => (failure ? Promise.reject(failure) : Promise.resolve(status)))
    for (const token of ['a', 'b']) expect(await ask(token)).to.deep.equal({ refused: 'forbidden by a role', unavailable: true })
    failure = undefined
    expect(await ask('a')).to.have.property('account')
    expect(log).to.deep.equal([
      'error tokens of service accounts cannot be reviewed, their callers are told to try again: forbidden by a role',
      'info tokens of service accounts are reviewed again',
    ])
  })
})
