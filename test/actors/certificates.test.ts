import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { readCertificate, validityFault } from '../../actors/http/certificate.ts'
import { CertificateWatch } from '../../actors/http/certificate-watch.ts'
import { Page, PageServer } from '../../actors/http/page-server.ts'
import { wallClockMs } from '../../actors/runtime/clock.ts'
import { freePort } from '../../bench/ports.ts'
import type { ServingCertificate } from '../../protocols/messages/certificates.ts'
import { ServingCertificates, servedName } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'

describe('certificate files', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-serving-'))
  const made = new ServingCertificates(dir)
  const files = {
    cert: { flag: 'tlsCertFile', path: join(dir, 'tls.crt') },
    key: { flag: 'tlsKeyFile', path: join(dir, 'tls.key') },
    ca: undefined,
  }
  const put = (name: string, changed: { readonly 'tls.crt'?: string; readonly 'tls.key'?: string | undefined } = {}) =>
    made.mount({ ...made.pair(name), ...changed })
  before(() => {
    made.authority('ca')
    for (const name of ['one', 'two', 'three']) made.issue(name, 'ca')
    made.issue('expired', 'ca', -1)
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  /** A watch that starts with the certificate `one`. */
  async function watched() {
    put('one')
    const changed: ServingCertificate[] = []
    const refused: string[] = []
    const watch = new CertificateWatch(files, await readCertificate(files), {
      changed: (certificate) => changed.push(certificate),
      refused: (reason) => refused.push(reason),
      unwatchable: (_, error) => refused.push(error.message),
    })
    return { watch, changed, refused }
  }

  it('are reloaded when certificate and key match, and a mismatch is reported once', async () => {
    const { watch, changed, refused } = await watched()
    try {
      put('two')
      await until('the second to be used', () => changed.length === 1)
      expect(changed[0]?.cert).to.equal(made.text('two.pem'))
      put('three', { 'tls.key': made.text('two-key.pem') })
      await until('the half that does not fit to be refused', () => refused.length === 1)
      expect(refused).to.deep.equal([`--tlsKeyFile ${dir}/tls.key: is not the key of the certificate in ${dir}/tls.crt`])
      await watch.read()
      await watch.read()
      expect(refused, 'looked at three times').to.have.length(1)
      expect(watch.certificate).to.equal(changed[0])
      put('three')
      await until('the third to be used', () => changed.length === 2)
      put('three', { 'tls.crt': made.text('two.pem') + made.text('ca.pem').slice(0, 200) })
      await until('a chain that is cut off to be refused', () => refused.length === 2)
      expect(refused[1]).to.equal(`--tlsCertFile ${dir}/tls.crt: the CERTIFICATE has no end`)
      put('expired')
      await until('one that has expired to be refused', () => refused.length === 3)
      expect(refused[2]).to.match(/--tlsCertFile .*: the certificate has expired on /)
      put('three', { 'tls.key': undefined })
      await until('a missing key to be refused', () => refused.length === 4)
      expect(refused[3]).to.contain('--tlsKeyFile').and.to.contain('ENOENT')
      put('three')
      await watch.read()
      expect([changed.length, refused.length], 'back to what is in force').to.deep.equal([2, 4])
      put('three', { 'tls.key': undefined })
      await until('a fault to be reported again', () => refused.length === 5)
    } finally {
      watch.close()
    }
  })

  it('are not refused for a pair that is exchanged while it is read', async () => {
    const { watch, refused } = await watched()
    try {
      for (let time = 0; time < 2000; time++) {
        const reading = watch.read()
        // Other threads open the files meanwhile: at each time another step of the exchange falls between the two.
        const exchangeAt = process.hrtime.bigint() + BigInt(time % 100) * 5000n
        while (process.hrtime.bigint() < exchangeAt);
        put(time % 2 === 0 ? 'two' : 'one')
        await reading
      }
      expect(refused).to.deep.equal([])
    } finally {
      watch.close()
    }
  })

  for (const [first, second] of [
    ['tls.key', 'tls.crt'],
    ['tls.crt', 'tls.key'],
  ] as const)
    it(`keep the pair in force while only ${first} is replaced, and are reloaded with ${second}`, async () => {
      const { watch, changed, refused } = await watched()
      const inForce = watch.certificate
      made.replace(first, made.pair('two')[first])
      await until('the half to be refused', () => refused.length === 1)
      for (let time = 0; time < 20; time++) await watch.read()
      expect([watch.certificate, changed, refused.length]).to.deep.equal([inForce, [], 1])
      made.replace(second, made.pair('two')[second])
      await until('the whole pair to be used', () => changed.length === 1)
      expect(changed[0]).to.include({ cert: made.text('two.pem'), key: made.text('two-key.pem') })
      watch.close()
      for (const name of [first, second]) rmSync(join(dir, name))
    })

  it('are rejected with the reason, whatever is wrong', async () => {
    const bad = (cert: string, key: string) =>
      readCertificate({ cert: { flag: 'c', path: cert }, key: { flag: 'k', path: key }, ca: undefined }).then(
        () => 'taken',
        (error: Error) => error.message,
      )
    writeFileSync(made.file('empty'), '')
    writeFileSync(made.file('large'), 'x'.repeat(1_048_577))
    writeFileSync(made.file('garbled.pem'), made.text('one.pem').replace(/\n[A-Za-z0-9+/]{20}/, '\nAAAA'))
    expect(await bad(made.file('empty'), made.file('one-key.pem'))).to.equal(`--c ${dir}/empty: holds no certificate in PEM`)
    expect(await bad(made.file('large'), made.file('one-key.pem'))).to.equal(`--c ${dir}/large: has more than 1048576 bytes`)
    expect(await bad(made.file('garbled.pem'), made.file('one-key.pem'))).to.match(/^--c .*garbled.pem: /)
    expect(await bad(dir, made.file('one-key.pem'))).to.equal(`--c ${dir}: is not a file`)
    expect(await bad(made.file('one.pem'), made.file('one.pem'))).to.match(/^--k .*one.pem: /)
    const read = await readCertificate({
      cert: { flag: 'c', path: made.file('one.pem') },
      key: { flag: 'k', path: made.file('one-key.pem') },
      ca: undefined,
    })
    expect(validityFault(read, wallClockMs())).to.equal(undefined)
    expect(validityFault(read, 0)).to.match(/is not valid before/)
  })

  it('serve pages over TLS, and are replaced without closing connections', async () => {
    const { watch, changed } = await watched()
    const server = new PageServer({ certificate: await readCertificate(files) })
    server.add('/', () => new Page('hello'))
    const port = await freePort()
    await server.listen('127.0.0.1', port)
    expect(await servedName(port)).to.equal('one')
    put('two')
    await until('the second to be used', () => changed.length === 1)
    server.useCertificate(changed[0] as ServingCertificate)
    expect(await servedName(port)).to.equal('two')
    watch.close()
    await server.close()
  })
})
