import { expect } from 'chai'
import { type Authenticated, Authentication, isRefused } from '../../actors/discovery/xds-writer/authentication.ts'
import type { Caller, TokenAnswer, TokenQuestion } from '../../protocols/messages/identity.ts'
import { until } from '../harness/until.ts'

const caller: Caller = { identities: ['spiffe://cluster.local/ns/a/sa/b'], via: 'token', method: 'test', expiresAt: 1e15 }
const certified: Caller = { ...caller, via: 'certificate' }

describe('authentication of streams', () => {
  /** An authenticator whose answers the test gives. */
  function examiner() {
    const asked: { question: TokenQuestion; signal: AbortSignal; answer: (answer: TokenAnswer) => void; fail: (error: Error) => void }[] = []
    const authentication = new Authentication((question, signal) => new Promise((answer, fail) => asked.push({ question, signal, answer, fail })))
    return { asked, authentication }
  }
  const asker = (authorization?: string, connection = {}, certificateCaller?: Caller, peer = '10.0.0.1') => ({
    isSecure: true,
    peer,
    certificateCaller,
    connection,
    headers: authorization === undefined ? {} : { authorization },
  })
  const outcome = (authenticated: Authenticated) => (isRefused(authenticated) ? `${authenticated.code} ${authenticated.message}` : authenticated.via)

  it('prefers the client certificate, and then authenticates no token', async () => {
    const { asked, authentication } = examiner()
    expect(await authentication.authenticate(asker('Bearer abc', {}, certified))).to.equal(certified)
    expect(asked).to.deep.equal([])
  })

  it('accepts a certificate for which another cluster vouches as long as a remote secret names the cluster, and asks once at a time', async () => {
    const asked: { readonly cluster: string; readonly answer: (isNamed: boolean) => void; readonly fail: (error: Error) => void }[] = []
    const isNamed = (cluster: string) => new Promise<boolean>((answer, fail) => asked.push({ cluster, answer, fail }))
    const authentication = new Authentication(() => Promise.reject(new Error('no token')), undefined, isNamed)
    const of = (id: string, isOwn = false): Caller => ({ ...certified, cluster: { id, isOwn } })
    const streams = [1, 2].map(() => authentication.authenticate(asker(undefined, {}, of('west'))))
    expect(asked.map(({ cluster }) => cluster)).to.deep.equal(['west'])
    asked.shift()?.answer(true)
    expect((await Promise.all(streams)).map(outcome)).to.deep.equal(['certificate', 'certificate'])
    const removed = authentication.authenticate(asker(undefined, {}, of('west')))
    asked.shift()?.answer(false)
    expect(outcome(await removed)).to.equal('16 authentication failure')
    const unknown = authentication.authenticate(asker(undefined, {}, of('west')), 'ca')
    asked.shift()?.fail(new Error('not listed yet'))
    expect(outcome(await unknown)).to.equal('14 credentials cannot be checked at present')
    expect(outcome(await authentication.authenticate(asker(undefined, {}, of('own', true))))).to.equal('certificate')
    expect(asked).to.deep.equal([])
  })

  it('refuses plaintext, missing credentials and malformed headers', async () => {
    const { asked, authentication } = examiner()
    expect(outcome(await authentication.authenticate({ ...asker('Bearer abc', {}, certified), isSecure: false }))).to.equal(
      '16 authentication failure',
    )
    for (const header of [undefined, '', 'Bearer', 'Bearer ', 'Basic abc', 'Bearer a b', `Bearer ${'x'.repeat(16_385)}`])
      expect(outcome(await authentication.authenticate(asker(header)))).to.equal('16 authentication failure')
    expect(asked).to.deep.equal([])
  })

  it('accepts the caller of a token, and distinguishes an invalid token from one that cannot be checked', async () => {
    const { asked, authentication } = examiner()
    const answers: readonly ((open: (typeof asked)[number]) => void)[] = [
      ({ answer }) => answer({ caller }),
      ({ answer }) => answer({ refused: 'of another issuer' }),
      ({ answer }) => answer({ refused: 'no keys', unavailable: true }),
      ({ fail }) => fail(new Error('nobody to ask')),
    ]
    const outcomes: string[] = []
    for (const settle of answers) {
      const authenticated = authentication.authenticate(
        { ...asker('bearer  abc '), headers: { authorization: 'bearer  abc ', clusterid: 'one' } },
        'ca',
      )
      settle(asked.shift() as (typeof asked)[number])
      outcomes.push(outcome(await authenticated))
    }
    const unavailable = '14 credentials cannot be checked at present'
    expect(outcomes).to.deep.equal(['token', '16 authentication failure', unavailable, unavailable])
    void authentication.authenticate({ ...asker('bearer  abc '), headers: { authorization: 'bearer  abc ', clusterid: 'one' } }, 'ca')
    expect(asked[0]?.question).to.deep.equal({ token: 'abc', service: 'ca', clusterId: 'one', client: '10.0.0.1' })
  })

  it('asks once for all streams of a connection with the same token', async () => {
    const { asked, authentication } = examiner()
    const connection = {}
    const same = [1, 2, 3].map(() => authentication.authenticate(asker('Bearer same', connection)))
    expect(asked).to.have.length(1)
    void authentication.authenticate(asker('Bearer same', {}))
    void authentication.authenticate(asker('Bearer other', connection))
    expect(asked).to.have.length(3)
    asked[0]?.answer({ caller })
    expect((await Promise.all(same)).map(outcome)).to.deep.equal(Array.from({ length: 3 }, () => 'token'))
    void authentication.authenticate(asker('Bearer same', connection))
    expect(asked).to.have.length(4)
  })

  it('limits the tokens of a client and of a writer that are checked at a time, and those that wait: those of the client with the most', async () => {
    const { asked, authentication } = examiner()
    const from = (client: number, token: string) => authentication.authenticate(asker(`Bearer ${token}`, {}, undefined, `10.0.0.${client}`))
    const greedy = Array.from({ length: 4200 }, (_, index) => from(1, `greedy-${index}`))
    expect(asked).to.have.length(8)
    const unavailable = '14 credentials cannot be checked at present'
    expect((await Promise.all(greedy.slice(4104))).map(outcome)).to.deep.equal(Array.from({ length: 96 }, () => unavailable))
    for (let client = 2; client < 5; client++) for (let index = 0; index < 8; index++) void from(client, `${client}-${index}`)
    expect(asked).to.have.length(32)
    void from(5, 'late')
    expect(outcome(await (greedy[4103] as Promise<Authenticated>))).to.equal(unavailable)
    asked[0]?.answer({ caller })
    asked[1]?.answer({ caller })
    await until('the token of another client', () => asked.length === 34)
    expect(asked.slice(32).map(({ question }) => question.token)).to.deep.equal(['greedy-8', 'late'])
  })

  it('gives a check up when all who wait for it have ended, and begins another for who comes after them', () => {
    const { asked, authentication } = examiner()
    const connection = {}
    const [one, other] = [new AbortController(), new AbortController()]
    for (const { signal } of [one, other]) void authentication.authenticate(asker('Bearer shared', connection), 'xds', signal)
    one.abort()
    expect(asked.map(({ signal }) => signal.aborted)).to.deep.equal([false])
    other.abort()
    expect(asked.map(({ signal }) => signal.aborted)).to.deep.equal([true])
    void authentication.authenticate(asker('Bearer shared', connection))
    expect(asked.map(({ signal }) => signal.aborted)).to.deep.equal([true, false])
  })

  it('does not check a token for which nobody waits when it is its turn', async () => {
    const { asked, authentication } = examiner()
    for (let index = 0; index < 8; index++) void authentication.authenticate(asker(`Bearer ${index}`))
    const gone = new AbortController()
    const connection = {}
    const given = [1, 2].map(() => authentication.authenticate(asker('Bearer given-up', connection), 'xds', gone.signal))
    void authentication.authenticate(asker('Bearer next'))
    gone.abort()
    asked[0]?.answer({ caller })
    await until('the next token', () => asked.length === 9)
    expect(asked[8]?.question.token).to.equal('next')
    expect((await Promise.all(given)).map(outcome)).to.deep.equal(Array.from({ length: 2 }, () => '14 credentials cannot be checked at present'))
  })
})
