/** Authority files that the `ca` command exports and imports. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { exportAuthority, exportTrustStore, importAuthority } from '../../actors/discovery/authority/authority-files.ts'
import { storeKey } from '../../actors/discovery/authority/key-storage.ts'
import type { AuthorityStatus } from '../../protocols/messages/authority-status.ts'
import { pemOf } from '../../src/identity/pem.ts'
import { type MadeRoot, rootOf, signedBy } from '../harness/authorities.ts'
import { certificatesIn, hasKeytool, keytool, openssl } from '../harness/key-stores.ts'
import { madeAuthority } from '../harness/made-authority.ts'

const pem = ({ key }: MadeRoot) => key.export({ type: 'pkcs8', format: 'pem' }) as string
const faultOf = (work: Promise<unknown>) =>
  work.then(
    () => '',
    ({ message }: Error) => message,
  )
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe('authority files', () => {
  let dir: string
  const at = (name: string) => join(dir, name)
  const write = (name: string, content: string) => {
    writeFileSync(at(name), content)
    return at(name)
  }
  const root = rootOf('root')
  const below = rootOf('below')
  beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'mesh-ca-files-'))))
  afterEach(() => rmSync(dir, { recursive: true }))

  const statusOf = (signing: string, chain: string, source: AuthorityStatus['source'] = 'own'): AuthorityStatus => ({
    source,
    keptIn: dir,
    roots: [
      {
        id: '',
        subject: '',
        serial: '',
        notBefore: '',
        notAfter: '',
        uses: ['signs workload certificates', 'sent to workloads'],
        certificate: root.record.root,
      },
      { id: '', subject: '', serial: '', notBefore: '', notAfter: '', uses: ['accepted from clients'], certificate: below.record.root },
    ],
    intermediates: { workloads: [], serving: [] },
    signing: { certificate: signing, chain },
    rotation: { stage: '', next: '', since: undefined, blocking: 0, blockers: [], plaintextProxies: 0, plaintext: [], waits: undefined },
    clock: { verdict: 'agreed', wall: '', believed: '' },
    keptKeys: [],
    faults: [],
    serving: [],
    holders: 0,
    replicas: [],
  })
  const files = (change: Partial<Parameters<typeof importAuthority>[0]> = {}) => ({
    cert: write('own-cert', root.record.certificate),
    key: write('own-key', pem(root)),
    chain: '',
    root: '',
    pkcs12: '',
    passwordFile: '',
    ...change,
  })
  const importing = (change: Parameters<typeof files>[0], replace = false) => importAuthority(files(change), at('plugged'), replace, Date.now())

  it('are exported with or without the key, readable for their user only', async () => {
    mkdirSync(at('keys'))
    storeKey({ kind: 'directory', directory: at('keys') }, root.record.id, root.key)
    const status = statusOf(root.record.certificate, '')
    expect(exportAuthority(status, at('public'), false, '')).to.deep.equal([at('public/root-cert.pem'), at('public/ca-cert.pem')])
    expect(readFileSync(at('public/root-cert.pem'), 'utf8'), 'what answers hold').to.equal(root.record.root)
    const paths = exportAuthority(status, at('all'), true, '')
    expect(readFileSync(at('all/ca-key.pem'), 'utf8')).to.equal(pem(root))
    expect(paths.map(mode)).to.deep.equal(paths.map(() => '600'))
    expect(() => exportAuthority(status, at('all'), false, '')).to.throw(`${at('all/root-cert.pem')}: is there already`)
    // Exported files can be plugged in.
    await importing({ cert: at('all/ca-cert.pem'), key: at('all/ca-key.pem'), root: at('all/root-cert.pem') })
    const plugged = statusOf(root.record.certificate, '', 'plugged-in')
    exportAuthority(plugged, at('again'), true, at('plugged'))
    expect(readFileSync(at('again/ca-key.pem'), 'utf8')).to.equal(pem(root))
    expect(() => exportAuthority(statusOf(below.record.certificate, '', 'plugged-in'), at('wrong'), true, at('plugged'))).to.throw(
      `${at('plugged/ca-key.pem')}: is not the key of the signing certificate`,
    )
  })

  it('are imported with the intermediates', async () => {
    const intermediate = signedBy(root, below)
    const paths = await importing({ cert: write('cert', intermediate), key: write('key', pem(below)), root: write('root', root.record.root) })
    expect(paths.map((path) => path.slice(at('plugged/').length))).to.deep.equal(['root-cert.pem', 'ca-cert.pem', 'cert-chain.pem', 'ca-key.pem'])
    expect(readFileSync(at('plugged/cert-chain.pem'), 'utf8').replace(/\s/g, '')).to.equal(intermediate.replace(/\s/g, ''))
    expect(mode(at('plugged/ca-key.pem'))).to.equal('600')
  })

  it("that do not match are rejected with the file's name, and nothing is written", async () => {
    const refused: [string, Parameters<typeof files>[0]][] = [
      [`${at('other-key')}: is not the key of the signing certificate`, { key: write('other-key', pem(below)) }],
      [`${at('garbled-key')}: holds no private key in PEM`, { key: write('garbled-key', 'secret words') }],
      [`${at('empty-cert')}: holds no certificate in PEM`, { cert: write('empty-cert', '') }],
      [`${at('own-cert')}: the signing certificate does not lead to a root`, { root: write('other-root', below.record.root) }],
      [`${at('nowhere')}: ENOENT`, { key: at('nowhere') }],
      [`${dir}: is not a file`, { root: dir }],
    ]
    for (const [reason, change] of refused) {
      const said = await faultOf(importing(change))
      expect(said).to.include(reason)
      expect(said).not.to.include('secret')
      expect(readdirSync(dir)).not.to.include('plugged')
    }
  })

  it('replace others only if requested', async () => {
    await importing({})
    const other = { cert: write('cert', below.record.certificate), key: write('key', pem(below)) }
    expect(await faultOf(importing(other))).to.include('root-cert.pem: is there already')
    expect(readFileSync(at('plugged/ca-cert.pem'), 'utf8').replace(/\s/g, '')).to.equal(root.record.certificate.replace(/\s/g, ''))
    await importing(other, true)
    expect(readFileSync(at('plugged/ca-key.pem'), 'utf8')).to.equal(pem(below))
    expect(readdirSync(at('plugged'))).to.have.length(4)
  })

  for (const type of ['rsa', 'ec'] as const)
    describe(`in key stores (${type})`, () => {
      const made = madeAuthority(type)
      const [rootPem, betweenPem] = [made.root, made.between].map((bytes) => pemOf('CERTIFICATE', bytes)) as [string, string]
      const password = 'größer'
      const passwordFile = (word = password) => write('password', `${word}\nnot this\n`)
      /** Has OpenSSL make a PKCS #12 file. */
      const packed = (name: string, certificates: string, options: readonly string[] = [], word = password): string => {
        write('packed.pem', certificates)
        write('packed.key', made.key.export({ type: 'pkcs8', format: 'pem' }) as string)
        const from = ['-in', at('packed.pem'), '-inkey', at('packed.key'), '-name', 'the authority', '-passout', `file:${passwordFile(word)}`]
        openssl('pkcs12', '-export', ...from, ...options, '-out', at(name))
        return at(name)
      }
      const stored = (pkcs12: string, change: Parameters<typeof files>[0] = {}) =>
        importing({ cert: '', key: '', pkcs12, passwordFile: passwordFile(), ...change }, true)
      const plugged = (name: string) => readFileSync(at(`plugged/${name}`), 'utf8')

      it('are imported from PKCS #12 files of OpenSSL, whatever its algorithms and the order of certificates', async () => {
        const kinds: readonly (readonly string[])[] = [
          [],
          ['-legacy'],
          ['-nomac'],
          ['-keypbe', 'NONE', '-certpbe', 'NONE'],
          ['-keypbe', 'aes-128-cbc', '-certpbe', 'des-ede3-cbc', '-macalg', 'sha512', '-iter', '20000'],
          ['-legacy', '-keypbe', 'PBE-SHA1-3DES', '-certpbe', 'PBE-SHA1-RC2-40', '-macalg', 'sha1'],
        ]
        for (const [index, options] of kinds.entries()) {
          const certificates = index % 2 === 0 ? betweenPem + rootPem : rootPem + betweenPem
          const paths = await stored(packed('ca.p12', certificates, options))
          expect(paths.map(mode)).to.deep.equal(paths.map(() => '600'))
          expect(certificatesIn(plugged('ca-cert.pem')), options.join(' ')).to.deep.equal(certificatesIn(betweenPem))
          expect(certificatesIn(plugged('cert-chain.pem'))).to.deep.equal(certificatesIn(betweenPem))
          expect(certificatesIn(plugged('root-cert.pem'))).to.deep.equal(certificatesIn(rootPem))
          expect(plugged('ca-key.pem')).to.equal(made.key.export({ type: 'pkcs8', format: 'pem' }))
        }
      })

      it('are imported without a password, where there is none', async () => {
        write('packed.pem', betweenPem + rootPem)
        write('packed.key', made.key.export({ type: 'pkcs8', format: 'pem' }) as string)
        openssl('pkcs12', '-export', '-in', at('packed.pem'), '-inkey', at('packed.key'), '-passout', 'pass:', '-out', at('open.p12'))
        await stored(at('open.p12'), { passwordFile: '' })
        expect(plugged('ca-key.pem')).to.equal(made.key.export({ type: 'pkcs8', format: 'pem' }))
      })

      it('are imported with the chain and the roots in PKCS #7 files', async () => {
        write('both.pem', rootPem + betweenPem)
        const [chain, roots] = [at('chain.p7b'), at('roots.p7c')]
        openssl('crl2pkcs7', '-nocrl', '-certfile', write('between.pem', betweenPem), '-outform', 'DER', '-out', chain)
        openssl('crl2pkcs7', '-nocrl', '-certfile', write('root.pem', rootPem), '-out', roots)
        const key = write('key', made.key.export({ type: 'pkcs8', format: 'pem' }) as string)
        await importing({ cert: write('cert', betweenPem), key, chain, root: roots })
        expect(certificatesIn(plugged('root-cert.pem'))).to.deep.equal(certificatesIn(rootPem))
      })

      it('trust only the root of their own chain, or those of another file', async () => {
        const other = rootOf('root').record.certificate
        const file = packed('ca.p12', betweenPem + rootPem + other)
        await stored(file)
        expect(certificatesIn(plugged('root-cert.pem'))).to.deep.equal(certificatesIn(rootPem))
        await stored(file, { root: write('roots', rootPem + other) })
        expect(certificatesIn(plugged('root-cert.pem'))).to.deep.equal(certificatesIn(rootPem + other))
      })

      it('are refused by name with the reason, and nothing is written', async () => {
        const good = packed('good.p12', betweenPem + rootPem)
        write('any.pem', rootPem)
        openssl('pkcs12', '-export', '-nokeys', '-in', at('any.pem'), '-passout', `file:${passwordFile()}`, '-out', at('no-key.p12'))
        const refused: readonly (readonly [string, string, Parameters<typeof files>[0]])[] = [
          ['its password is another one, or the file is damaged', good, { passwordFile: write('wrong', 'other\n') }],
          ['it has a password, which --password-file has to name', good, { passwordFile: '' }],
          ['it holds no private key', at('no-key.p12'), {}],
          ['it holds no root, which --root has to name then', packed('no-root.p12', betweenPem), {}],
          ['the PKCS #12 file cannot be read', write('garbled', 'secret words'), {}],
          ['has more than 1048576 bytes', write('large', 'x'.repeat(1_048_577)), {}],
          ['ENOENT', at('nowhere'), {}],
          ['is not a file', dir, {}],
          ['does not lead to a root', good, { root: write('other', rootOf('root').record.certificate) }],
        ]
        for (const [reason, file, change] of refused) {
          const said = await faultOf(stored(file, change))
          expect(said).to.include(`${file}: `).and.include(reason)
          expect(said).not.to.match(/secret|größer/)
          expect(readdirSync(dir)).not.to.include('plugged')
        }
        expect(await faultOf(stored(good, { passwordFile: at('nowhere') }))).to.match(/nowhere: ENOENT/)
      })

      it('are imported from a key store of Java, and refused when it has several keys', async function () {
        if (!hasKeytool()) return this.skip()
        const java = at('java.p12')
        const store = ['-keystore', java, '-storetype', 'PKCS12', '-storepass', 'changeit']
        const from = ['-srckeystore', packed('ca.p12', betweenPem + rootPem, [], 'changeit'), '-srcstorepass', 'changeit']
        keytool('-importkeystore', '-noprompt', ...from, '-destkeystore', java, '-deststoretype', 'PKCS12', '-deststorepass', 'changeit')
        const passwordOfJava = write('java-password', 'changeit')
        await stored(java, { passwordFile: passwordOfJava })
        expect(plugged('ca-key.pem')).to.equal(made.key.export({ type: 'pkcs8', format: 'pem' }))
        keytool('-genkeypair', '-alias', 'second', '-keyalg', 'EC', '-dname', 'O=second', ...store)
        expect(await faultOf(stored(java, { passwordFile: passwordOfJava }))).to.equal(
          `${java}: it holds 2 private keys ("the authority", "second"), not one`,
        )
      })

      const status = () => {
        const made = statusOf(betweenPem, betweenPem)
        return { ...made, roots: made.roots.map((one) => (one.uses.includes('sent to workloads') ? { ...one, certificate: rootPem } : one)) }
      }

      it('give programs the roots, in PKCS #12 and PKCS #7', async () => {
        const [p12] = await exportTrustStore(status(), at('roots.p12'), passwordFile('changeit'))
        const [p7b] = await exportTrustStore(status(), at('deep/er/roots.p7b'), '')
        expect([p12, p7b].map((path) => mode(path as string))).to.deep.equal(['600', '600'])
        const held = openssl('pkcs12', '-in', p12 as string, '-nokeys', '-passin', `file:${at('password')}`)
        expect(certificatesIn(held)).to.deep.equal(certificatesIn(rootPem))
        expect(certificatesIn(openssl('pkcs7', '-inform', 'DER', '-in', p7b as string, '-print_certs'))).to.deep.equal(certificatesIn(rootPem))
        const refused: readonly (readonly [string, string, string])[] = [
          [`${at('roots.p12')}: is there already`, at('roots.p12'), at('password')],
          ['ends neither in .p12 or .pfx (PKCS #12) nor in .p7b or .p7c (PKCS #7)', at('roots.jks'), at('password')],
          ['--password-file is needed', at('more.pfx'), ''],
          [`${at('empty')}: its first line, the password of a key store, is empty`, at('more.pfx'), write('empty', '\n')],
          [`${at('odd')}: character 3 of the password is not printable ASCII`, at('more.pfx'), write('odd', 'größer')],
          ['--password-file has no effect: a PKCS #7 file has no password', at('more.p7c'), at('password')],
        ]
        for (const [reason, path, file] of refused) expect(await faultOf(exportTrustStore(status(), path, file))).to.include(reason)
      })

      it('give Java roots that it trusts', async function () {
        if (!hasKeytool()) return this.skip()
        await exportTrustStore(status(), at('roots.p12'), write('java-password', 'changeit'))
        const listed = keytool('-list', '-keystore', at('roots.p12'), '-storepass', 'changeit')
        expect(listed)
          .to.match(/contains 1 entry/)
          .and.match(/^root-[0-9a-f]{16}, .*, trustedCertEntry/m)
      })
    })
})
