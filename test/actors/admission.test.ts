import { expect } from 'chai'
import { Admission, type Admitted, isRefused } from '../../actors/discovery/xds-writer/admission.ts'
import type { Caller, TokenAnswer, TokenQuestion } from '../../protocols/messages/identity.ts'

const caller: Caller = { identities: ['spiffe://cluster.local/ns/a/sa/b'], via: 'token', method: 'test', expiresAt: 1e15 }
const certified: Caller = { ...caller, via: 'certificate' }

describe('admission of streams', () => {
  /** An authenticator whose answers the test gives. */
  function examiner() {
    const asked: { question: TokenQuestion; answer: (answer: TokenAnswer) => void; fail: (error: Error) => void }[] = []
    const admission = new Admission((question) => new Promise((answer, fail) => asked.push({ question, answer, fail })))
    return { asked, admission }
  }
  const asker = (authorization?: string, connection = {}, certificateCaller?: Caller) => ({
    isSecure: true,
    certificateCaller,
    connection,
    headers: authorization === undefined ? {} : { authorization },
  })
  const outcome = (admitted: Admitted) => (isRefused(admitted) ? `${admitted.code} ${admitted.message}` : admitted.via)

  it('prefers the client certificate, and then authenticates no token', async () => {
    const { asked, admission } = examiner()
    expect(await admission.admit(asker('Bearer abc', {}, certified))).to.equal(certified)
    expect(asked).to.deep.equal([])
  })

  it('refuses plaintext, missing credentials and malformed headers', async () => {
    const { asked, admission } = examiner()
    expect(outcome(await admission.admit({ ...asker('Bearer abc', {}, certified), isSecure: false }))).to.equal('16 authentication failure')
    for (const header of [undefined, '', 'Bearer', 'Bearer ', 'Basic abc', 'Bearer a b', `Bearer ${'x'.repeat(16_385)}`])
      expect(outcome(await admission.admit(asker(header)))).to.equal('16 authentication failure')
    expect(asked).to.deep.equal([])
  })

  it('accepts the caller of a token, and distinguishes an invalid token from one that cannot be checked', async () => {
    const { asked, admission } = examiner()
    const answers: readonly ((open: (typeof asked)[number]) => void)[] = [
      ({ answer }) => answer({ caller }),
      ({ answer }) => answer({ refused: 'of another issuer' }),
      ({ answer }) => answer({ refused: 'no keys', unavailable: true }),
      ({ fail }) => fail(new Error('nobody to ask')),
    ]
    const outcomes: string[] = []
    for (const settle of answers) {
      const admitted = admission.admit({ ...asker('bearer  abc '), headers: { authorization: 'bearer  abc ', clusterid: 'one' } }, 'ca')
      settle(asked.shift() as (typeof asked)[number])
      outcomes.push(outcome(await admitted))
    }
    const unavailable = '14 credentials cannot be checked at present'
    expect(outcomes).to.deep.equal(['token', '16 authentication failure', unavailable, unavailable])
    void admission.admit({ ...asker('bearer  abc '), headers: { authorization: 'bearer  abc ', clusterid: 'one' } }, 'ca')
    expect(asked[0]?.question).to.deep.equal({ token: 'abc', service: 'ca', clusterId: 'one' })
  })

  it('asks once for all streams of a connection with the same token, and limits the tokens of one connection', async () => {
    const { asked, admission } = examiner()
    const connection = {}
    const same = [1, 2, 3].map(() => admission.admit(asker('Bearer same', connection)))
    expect(asked).to.have.length(1)
    const others = ['b', 'c', 'd'].map((token) => admission.admit(asker(`Bearer ${token}`, connection)))
    expect(outcome(await admission.admit(asker('Bearer e', connection)))).to.equal('14 credentials cannot be checked at present')
    expect(asked).to.have.length(4)
    void admission.admit(asker('Bearer e', {}))
    expect(asked).to.have.length(5)
    for (const { answer } of asked) answer({ caller })
    expect((await Promise.all([...same, ...others])).map(outcome)).to.deep.equal(Array.from({ length: 6 }, () => 'token'))
    void admission.admit(asker('Bearer e', connection))
    expect(asked).to.have.length(6)
  })

  it('limits the tokens of a writer that are checked at a time to a thousand', async () => {
    const { asked, admission } = examiner()
    for (let index = 0; index < 1000; index++) void admission.admit(asker(`Bearer ${index}`))
    expect(outcome(await admission.admit(asker('Bearer one-more')))).to.equal('14 credentials cannot be checked at present')
    expect(asked).to.have.length(1000)
  })
})
