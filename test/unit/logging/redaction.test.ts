import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openLog } from '../../../actors/runtime/log.ts'
import { Issuer } from '../../harness/issuer.ts'
import { cpuMs } from '../../harness/own-time.ts'
import { SecretTraces } from '../../harness/secret-traces.ts'

describe('secrets in the log', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-log-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))
  const off = { fallback: 'none', scopes: {} } as const
  /** The lines of a log with a text in every place that a record has. */
  const logged = (text: string, asJson: boolean, label = 'label') => {
    const path = join(dir, `${asJson}`)
    const opened = openLog({ output: { fallback: 'info', scopes: {} }, stackTrace: off, callers: [], asJson, targets: [path], rotate: undefined })
    const record = { time: 0, level: 'info', scope: 'default', message: text, labels: { [label]: text }, stack: `Error: ${text}\n at x` } as const
    opened.write(record)
    const lines = readFileSync(path, 'utf8')
    rmSync(path)
    return lines
  }

  it('are not written: tokens and private keys in any text, whole or cut off, in both layouts', async () => {
    const traces = new SecretTraces()
    const token = await (await new Issuer('i').rotateOnly('ES256')).token()
    traces.addToken('token', token)
    const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
    traces.addKey('key', key)
    const base64 = Buffer.from(key).toString('base64')
    const texts = [token, `Bearer ${token}`, JSON.stringify({ token }), `${token}.${token}`, key, key.slice(0, 200), JSON.stringify({ key }), base64]
    for (const text of texts)
      for (const asJson of [true, false]) {
        const lines = logged(`before ${text}`, asJson)
        expect(traces.in(lines), lines).to.deep.equal([])
        expect(lines).to.contain('before ').and.to.contain('[redacted]')
      }
  })

  it('are not written when they have no form of their own, after the name of a credential or in a label with such a name', () => {
    for (const text of [
      'authorization: Bearer 0123456789abcdef0123',
      'POST /token?subject_token=0123456789abcdef0123&x=y',
      '{"accessToken":"0123456789abcdef0123"}',
      JSON.stringify('{"accessToken":"0123456789abcdef0123"}'),
      'GET https://user:0123456789abcdef0123@host/keys',
    ])
      for (const asJson of [true, false]) expect(logged(text, asJson)).not.to.contain('0123456789abcdef')
    for (const text of [
      'authorization: Basic hunter',
      'POST /token?password=hunter&x=y',
      'password=hun!ter+2 was refused',
      '{"client_secret": "hun!ter 2"}',
      JSON.stringify('{"password":"hunter"}'),
    ])
      for (const asJson of [true, false]) expect(logged(text, asJson)).not.to.match(/hun|ter/)
    expect(logged('0123', false, 'password').split('\n')[0]).to.equal('1970-01-01T00:00:00.000000Z\tinfo\t0123\tpassword=[redacted]')
  })

  it('leave all else as it is', () => {
    for (const text of [
      'a Bearer token is missing',
      'FLAG: --tokenFile=/var/run/secrets/tokens/mesh-token',
      'token: not valid at present',
      'https://host:443/a@b spiffe://cluster.local/ns/shop/sa/cart',
      'key.pem and cert-chain.pem do not match',
    ])
      expect(logged(text, false)).to.contain(`\t${text}\tlabel=${text}\n`)
  })

  it('are looked for in time that grows with the length of the text', () => {
    for (const piece of [
      'eyJ',
      'eyJ.',
      'eyJa.eyJa.',
      '-----BEGIN PRIVATE KEY-----',
      '://a:',
      '://a:b',
      'Bearer ',
      'token=',
      'token"=',
      'token": "',
      'password=a',
      'authorization: Basic ',
      'LS0tLS1CRUdJT',
    ])
      expect(
        cpuMs(() => logged(piece.repeat(100_000), true)),
        piece,
      ).to.be.lessThan(2000)
  })
})
