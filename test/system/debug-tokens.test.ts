/** Debug pages over the network, with workload tokens. */

import { connect } from 'node:net'
import { expect } from 'chai'
import { Issuer } from '../harness/issuer.ts'
import { textOf } from '../harness/page-text.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'

describe('debug pages with tokens', () => {
  const issuer = new Issuer('test-issuer')
  const stranger = new Issuer('test-issuer')
  let service: Service
  const token = (namespace: string, claims: object = {}, by = issuer) =>
    by.token({ sub: `system:serviceaccount:${namespace}:reader`, aud: 'mesh-ca', exp: Math.floor(Date.now() / 1000) + 600, ...claims })
  const ask = async (page: string, bearer?: string, init: RequestInit = {}) => {
    const answer = await fetch(`http://127.0.0.1:${service.httpPort}/debug/${page}`, {
      ...init,
      headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
    })
    return { status: answer.status, text: await textOf(answer), challenge: answer.headers.get('www-authenticate') }
  }

  before(async () => {
    await issuer.rotate('ES256')
    await stranger.rotate('ES256')
    service = new Service({
      env: {
        ENABLE_DEBUG_ON_LOOPBACK: 'false',
        JWT_RULE: JSON.stringify({ issuer: issuer.name, audiences: ['mesh-ca'], jwks: JSON.parse(issuer.jwks) }),
      },
    })
    service.write('a.yaml', `${serviceEntry('a').replaceAll('namespace: ns', 'namespace: shop')}`)
    service.write('b.yaml', `${serviceEntry('b').replaceAll('namespace: ns', 'namespace: bank')}`)
    await service.start()
    await until('the objects', async () => (await service.debug<unknown[]>('configz')).length === 2)
  })
  after(() => service.dispose())

  it('show the namespace of the token, and everything to the root namespace', async () => {
    const shop = await ask('configz', await token('shop'))
    expect(shop.status).to.equal(200)
    expect(shop.text).to.contain('"namespace": "shop"').and.not.to.contain('bank')
    const root = await ask('configz', await token('mesh-system'))
    expect(root.text).to.contain('"namespace": "shop"').and.to.contain('"namespace": "bank"')
    expect((await ask('mesh', await token('shop'))).status).to.equal(403)
    expect((await ask('mesh', await token('mesh-system'))).status).to.equal(200)
    expect((await ask('registryz?namespace=bank', await token('shop'))).text).to.equal('namespace "bank": callers see their own namespace only')
  })

  it('execute actions for the root namespace only', async () => {
    expect((await ask('adsz?push=true', await token('shop'), { method: 'POST' })).status).to.equal(403)
    expect((await ask('adsz?push=true', await token('mesh-system'), { method: 'POST' })).text).to.equal('Pushed to 0 servers')
    await service.output.says('POST /debug/adsz by spiffe://cluster.local/ns/mesh-system/sa/reader')
  })

  it('are refused without a token, and with an invalid one', async () => {
    expect(await ask('configz')).to.deep.equal({
      status: 401,
      text: 'a token of the mesh is required (header authorization: Bearer)',
      challenge: 'Bearer',
    })
    const past = Math.floor(Date.now() / 1000) - 10
    for (const [what, bad] of [
      ['expired', await token('mesh-system', { exp: past })],
      ['of another audience', await token('mesh-system', { aud: 'other' })],
      ['of another key', await token('mesh-system', {}, stranger)],
      ['cut off', (await token('mesh-system')).slice(0, -5)],
      ['no token', 'x.y.z'],
    ] as const) {
      const { status, text, challenge } = await ask('configz', bad)
      expect([status, text, challenge], what).to.deep.equal([401, 'the token is not accepted', 'Bearer'])
    }
    expect((await ask('configz', 'x'.repeat(100_000))).status).to.equal(431)
    await service.output.says('debug page refused to 127.0.0.1')
  })

  it('refuse a request before its body is read', async () => {
    const socket = connect(service.httpPort, '127.0.0.1')
    socket.write('POST /debug/authz HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000000\r\n\r\nx')
    let answer = ''
    socket.on('data', (bytes) => (answer += bytes)).on('error', () => undefined)
    await until('the answer', () => answer.includes('a token of the mesh is required (header authorization: Bearer)'))
    expect(answer)
      .to.match(/^HTTP\/1\.1 401 /)
      .and.to.match(/\r\nconnection: close\r\n/i)
    socket.destroy()
  })

  it('leave readiness, metrics and version open', async () => {
    for (const [port, path] of [
      [service.httpPort, 'ready'],
      [service.monitoringPort, 'metrics'],
      [service.monitoringPort, 'version'],
    ])
      expect((await fetch(`http://127.0.0.1:${port}/${path}`)).status).to.equal(200)
  })
})
