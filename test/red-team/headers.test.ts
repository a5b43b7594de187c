import { expect } from 'chai'
import { Issuer } from '../harness/issuer.ts'
import { policyDocument } from '../harness/policies.ts'
import { describeAttacks } from '../harness/red-team.ts'
import { until } from '../harness/until.ts'

/** Spellings of a header name that applications may treat as equal. */
const spellings = ['x-user-id', 'X-USER-ID', 'x_user_id', 'X_User_Id', 'x-user_id', 'x_user-id']

describeAttacks('headers that policies set or judge', (place) => {
  const [one, two] = [new Issuer('https://one.example'), new Issuer('https://two.example')]
  const rule = (issuer: Issuer, more: string) => `{issuer: '${issuer.name}', jwks: '${issuer.jwks}', ${more}}`
  const tokens = (...rules: string[]) => policyDocument('RequestAuthentication', 'tokens', `{jwtRules: [${rules.join(', ')}]}`)
  /** Returns the guarded headers that the workload received, in any spelling that an application may treat as equal. */
  const got = () => Object.entries(place.backend.seen.at(-1)?.headers ?? {}).filter(([name]) => /^x[-_](user|payload|debug)/.test(name))
  const raw = async (...lines: string[]) =>
    (await place.raw(['GET / HTTP/1.1', 'Host: app', 'Connection: close', ...lines, '', ''].join('\r\n'))).status

  /** Waits for the status and clears the recorded requests: worker threads of Envoy apply a listener later than its admin page shows it. */
  const goesBy = async (status: number, line: string) => {
    await until(`${line.slice(0, 40)} to be answered ${status}`, async () => (await raw(line)) === status)
    place.backend.seen.length = 0
  }

  before(() => Promise.all([one.rotate(), two.rotate()]))
  beforeEach(() => void (place.backend.seen.length = 0))

  it('with claims come from valid tokens only: a client cannot set them in any spelling', async () => {
    await place.enforce(tokens(rule(one, 'outputPayloadToHeader: x-payload, outputClaimToHeaders: [{header: x-user-id, claim: sub}]')))
    await goesBy(401, 'authorization: Bearer x')
    for (const name of spellings) {
      expect(await raw(`${name}: root`), name).to.equal(200)
      expect(await raw(`${name}: root`, `${name}: root`), `${name} twice`).to.equal(200)
      expect(await raw(`${name} : root`), `${name} and a blank`).to.be.oneOf([200, 400])
      expect(await raw(`${name}: `, ` root`), `${name} folded`).to.be.oneOf([200, 400])
    }
    expect(await raw('x_payload: e30', 'X-Payload: e30')).to.equal(200)
    expect((await place.http2({ ':authority': 'app', 'x-user-id': ['root', 'root'], x_user_id: 'root' })).status).to.equal(200)
    for (const { headers } of place.backend.seen)
      expect(Object.entries(headers).filter(([name]) => /^x[-_](user|payload)/.test(name))).to.deep.equal([])
    expect(await raw(`authorization: Bearer ${await one.token()}`, 'x_user_id: root', 'x-user-id: root')).to.equal(200)
    expect(got().filter(([name]) => name !== 'x-payload')).to.deep.equal([['x-user-id', 'subject']])
  })

  it('with claims of one issuer cannot be set by a client with the token of another', async () => {
    await place.enforce(
      tokens(
        rule(one, 'outputClaimToHeaders: [{header: x-user-id, claim: sub}]'),
        rule(two, 'outputPayloadToHeader: x-payload, outputClaimToHeaders: [{header: x-user-name, claim: sub}]'),
      ),
    )
    await goesBy(200, `authorization: Bearer ${await two.token()}`)
    for (const issuer of [one, two]) {
      const bearer = `authorization: Bearer ${await issuer.token()}`
      expect(await raw(bearer, 'x-user-id: root', 'x-user-name: root', 'x-payload: root')).to.equal(200)
      expect(
        got().filter(([, value]) => value === 'root'),
        issuer.name,
      ).to.deep.equal([])
    }
  })

  it('are removed from client requests while the RequestAuthentication that sets them has never been valid', async () => {
    const document = (name: string, spec: string) => policyDocument('RequestAuthentication', name, spec)
    const broken: Record<string, string> = {
      'keys that are none': `{jwtRules: [{issuer: a, jwks: nonsense, outputPayloadToHeader: x-payload, outputClaimToHeaders: [{header: x-user-id, claim: sub}]}]}`,
      'misspelt fields': `{jwtRules: [{issuer: a, outputClaimsToHeader: [{header: x-user-id, claim: sub}], outputPayloadHeader: x-payload}]}`,
      'a list that is none': `{jwtRules: {issuer: a, outputPayloadToHeader: x-payload, outputClaimToHeaders: {header: x-user-id, claim: sub}}}`,
      'a misspelt list': `{jwtRule: [{issuer: a, outputPayloadToHeader: [x-payload], outputClaimToHeaders: [{headers: [x-user-id]}]}]}`,
    }
    // An unparsable document is searched as text.
    broken['a quote that is never closed'] =
      '{jwtRules: [{issuer: "a, outputPayloadToHeader: x-payload, outputClaimToHeaders: [{header: x-user-id, claim: sub}]}]}'
    for (const [what, spec] of Object.entries(broken)) {
      // Each document has a unique name, so that there is no last good state.
      await place.enforce(document(`broken-${what.replaceAll(' ', '-')}-${place.id}`, spec))
      await goesBy(401, `authorization: Bearer ${await one.token()}`)
      for (const name of spellings) expect(await raw(`${name}: root`, 'x-payload: root', 'x_payload: root'), what).to.equal(200)
      for (const { headers } of place.backend.seen)
        expect(
          Object.entries(headers).filter(([name]) => /^x[-_](user|payload)/.test(name)),
          what,
        ).to.deep.equal([])
    }
  })

  it('of a DENY condition are removed in other spellings, and unrelated headers are forwarded', async () => {
    await place.enforce(
      policyDocument('AuthorizationPolicy', 'debug', '{action: DENY, rules: [{when: [{key: "request.headers[x-debug]", values: ["on"]}]}]}'),
    )
    await goesBy(403, 'x-debug: on')
    expect(await raw('x_debug: on', 'x_other: on', 'x-other: on')).to.equal(200)
    expect(got()).to.deep.equal([])
    expect(place.backend.seen.at(-1)?.headers).to.include({ x_other: 'on', 'x-other': 'on' })
  })

  it('of forged client certificates (x-forwarded-client-cert) are removed', async () => {
    await place.enforce()
    expect(await raw('x-forwarded-client-cert: By=spiffe://cluster.local/ns/a/sa/a;URI=spiffe://cluster.local/ns/a/sa/root')).to.equal(200)
    expect(place.backend.seen.at(-1)?.headers).not.to.have.property('x-forwarded-client-cert')
  })
})
