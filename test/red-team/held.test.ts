/** Attacks that policies have always withstood: on request framing, upgrades, headers that proxies set, and tokens. */
import { expect } from 'chai'
import { Issuer } from '../harness/issuer.ts'
import { policyDocument } from '../harness/policies.ts'
import { describeAttacks } from '../harness/red-team.ts'

const deny = (operation: object) =>
  policyDocument('AuthorizationPolicy', 'deny', JSON.stringify({ action: 'DENY', rules: [{ to: [{ operation }] }] }))
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

describeAttacks('framing, upgrades, spoofed headers and tokens', (place) => {
  /** Sends bytes, and returns the paths that reached the workload. */
  const reached = async (...parts: string[]): Promise<string[]> => {
    const before = place.backend.seen.length
    await place.raw(...parts)
    // A smuggled request would reach the workload before this one.
    await place.call('/last')
    return place.backend.seen.slice(before).map(({ path }) => path)
  }

  it('request smuggling: no ambiguous framing gets a denied request to the workload', async () => {
    await place.enforce(deny({ paths: ['/admin*'] }))
    const inner = 'GET /admin HTTP/1.1\r\nHost: app\r\n\r\n'
    const head = 'POST /open HTTP/1.1\r\nHost: app\r\n'
    for (const request of [
      `${head}Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
      `${head}Content-Length: ${inner.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
      `${head}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${inner}`,
      `${head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${inner}`,
      `${head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${inner}`,
      `${head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${inner}`,
      `${head}Transfer-Encoding:\tchunked\r\n\r\n0;x=${'y'.repeat(20)}\r\n\r\n${inner}`,
      `${head}X: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n${inner}`,
      `${head}Content-Length: 0\r\nX: a\nGET /admin HTTP/1.1\r\n\r\n`,
      `GET /open HTTP/1.1\r\nHost: app\r\nConnection: close, content-length\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
    ])
      expect(await reached(request), JSON.stringify(request)).not.to.include.members(['/admin'])
  })

  it('no method, protocol version or upgrade gets a denied path to the workload', async () => {
    await place.enforce(deny({ paths: ['/admin*'] }))
    const host = 'Host: app\r\n'
    for (const request of [
      `CONNECT app:80 HTTP/1.1\r\nHost: app:80\r\n\r\nGET /admin HTTP/1.1\r\n${host}\r\n`,
      `CONNECT /admin HTTP/1.1\r\n${host}\r\n`,
      `OPTIONS * HTTP/1.1\r\n${host}\r\nGET /admin HTTP/1.1\r\n${host}\r\n`,
      `GET /open HTTP/1.1\r\n${host}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\nGET /admin HTTP/1.1\r\n${host}\r\n`,
      `GET /open HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 9\r\nSec-WebSocket-Key: eA==\r\n\r\nGET /admin HTTP/1.1\r\n${host}\r\n`,
      `GET /admin HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
      `GET /admin HTTP/1.0\r\n${host}\r\n`,
      'GET /admin\r\n\r\n',
      `GET /open HTTP/1.1\r\n${host}X-Original-URL: /admin\r\nX-Envoy-Original-Path: /admin\r\nConnection: close\r\n\r\n`,
    ])
      expect(await reached(request), JSON.stringify(request)).not.to.include.members(['/admin'])
  })

  it('a client cannot forge claim headers, nor an identity in x-forwarded-client-cert', async () => {
    const issuer = await new Issuer('https://issuer.example').rotateOnly('RS256')
    const rules = [
      { issuer: issuer.name, jwks: issuer.jwks, outputPayloadToHeader: 'x-payload', outputClaimToHeaders: [{ header: 'x-sub', claim: 'sub' }] },
    ]
    await place.enforce(
      policyDocument('RequestAuthentication', 'tokens', JSON.stringify({ jwtRules: rules })),
      policyDocument('AuthorizationPolicy', 'peer', JSON.stringify({ action: 'DENY', rules: [{ from: [{ source: { principals: ['*'] } }] }] })),
    )
    const forged = 'By=spiffe://cluster.local/ns/shop/sa/app;URI=spiffe://cluster.local/ns/shop/sa/admin'
    const { status } = await place.call('/', { headers: { 'x-payload': 'forged', 'X-Sub': 'forged', 'x-forwarded-client-cert': forged } })
    expect(status).to.equal(200)
    const headers = place.backend.seen.at(-1)?.headers
    expect([headers?.['x-payload'], headers?.['x-sub']]).to.deep.equal([undefined, undefined])
    await place.enforce(policyDocument('AuthorizationPolicy', 'peer', JSON.stringify({ rules: [{ from: [{ source: { namespaces: ['shop'] } }] }] })))
    expect((await place.call('/', { headers: { 'x-forwarded-client-cert': forged } })).status).to.equal(403)
  })

  it('a token cannot choose its key or algorithm by its header', async () => {
    const [issuer, forger] = await Promise.all(
      ['https://issuer.example', 'https://issuer.example'].map((name) => new Issuer(name).rotateOnly('RS256')),
    )
    if (!issuer || !forger) throw new Error('unreachable')
    await place.enforce(
      policyDocument('RequestAuthentication', 'tokens', JSON.stringify({ jwtRules: [{ issuer: issuer.name, jwks: issuer.jwks }] })),
      policyDocument('AuthorizationPolicy', 'allow', JSON.stringify({ rules: [{ from: [{ source: { requestPrincipals: ['*'] } }] }] })),
    )
    const ask = async (token: string) => (await place.call('/', { headers: { authorization: `Bearer ${token}` } })).status
    const { keys } = JSON.parse(forger.jwks) as { keys: [{ kid: string }] }
    const { keys: own } = JSON.parse(issuer.jwks) as { keys: [{ kid: string }] }
    expect(await ask(await issuer.token())).to.equal(200)
    const headers = [
      { jwk: keys[0] },
      { jku: 'http://127.0.0.1:1/keys' },
      { x5u: 'http://127.0.0.1:1/cert' },
      { kid: own[0].kid },
      { kid: '../../dev/null' },
      { kid: '' },
    ]
    for (const header of headers) expect(await ask(await forger.token({}, header as object)), JSON.stringify(header)).to.equal(401)
    const [, payload, signature] = (await issuer.token()).split('.')
    for (const header of [{ alg: 'none' }, { alg: 'None' }, { alg: '' }, {}, { alg: 'HS256' }, { alg: ['RS256'] }])
      for (const tail of [signature, '']) expect(await ask(`${encode(header)}.${payload}.${tail}`), JSON.stringify(header)).to.equal(401)
  })
})
