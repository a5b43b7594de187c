/** Authority files that the `ca` command exports and imports. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { exportAuthority, importAuthority } from '../../actors/discovery/authority/authority-files.ts'
import { storeKey } from '../../actors/discovery/authority/key-storage.ts'
import type { AuthorityPage } from '../../protocols/messages/authority-page.ts'
import { type MadeRoot, rootOf, signedBy } from '../harness/authorities.ts'

const pem = ({ key }: MadeRoot) => key.export({ type: 'pkcs8', format: 'pem' }) as string
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

  const pageOf = (signing: string, chain: string, source: AuthorityPage['source'] = 'own'): AuthorityPage => ({
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
  })
  const files = (change: Partial<Parameters<typeof importAuthority>[0]> = {}) => ({
    cert: write('own-cert', root.record.certificate),
    key: write('own-key', pem(root)),
    chain: '',
    root: '',
    ...change,
  })
  const importing = (change: Parameters<typeof files>[0], replace = false) => importAuthority(files(change), at('plugged'), replace, Date.now())

  it('are exported with or without the key, readable for their user only', () => {
    mkdirSync(at('keys'))
    storeKey({ kind: 'directory', directory: at('keys') }, root.record.id, root.key)
    const page = pageOf(root.record.certificate, '')
    expect(exportAuthority(page, at('public'), false, '')).to.deep.equal([at('public/root-cert.pem'), at('public/ca-cert.pem')])
    expect(readFileSync(at('public/root-cert.pem'), 'utf8'), 'what answers hold').to.equal(root.record.root)
    const paths = exportAuthority(page, at('all'), true, '')
    expect(readFileSync(at('all/ca-key.pem'), 'utf8')).to.equal(pem(root))
    expect(paths.map(mode)).to.deep.equal(paths.map(() => '600'))
    expect(() => exportAuthority(page, at('all'), false, '')).to.throw(`${at('all/root-cert.pem')}: is there already`)
    // Exported files can be plugged in.
    importAuthority(
      { cert: at('all/ca-cert.pem'), key: at('all/ca-key.pem'), chain: '', root: at('all/root-cert.pem') },
      at('plugged'),
      false,
      Date.now(),
    )
    const plugged = pageOf(root.record.certificate, '', 'plugged-in')
    exportAuthority(plugged, at('again'), true, at('plugged'))
    expect(readFileSync(at('again/ca-key.pem'), 'utf8')).to.equal(pem(root))
    expect(() => exportAuthority(pageOf(below.record.certificate, '', 'plugged-in'), at('wrong'), true, at('plugged'))).to.throw(
      `${at('plugged/ca-key.pem')}: is not the key of the signing certificate`,
    )
  })

  it('are imported with the intermediates', () => {
    const intermediate = signedBy(root, below)
    const paths = importing({ cert: write('cert', intermediate), key: write('key', pem(below)), root: write('root', root.record.root) })
    expect(paths.map((path) => path.slice(at('plugged/').length))).to.deep.equal(['root-cert.pem', 'ca-cert.pem', 'cert-chain.pem', 'ca-key.pem'])
    expect(readFileSync(at('plugged/cert-chain.pem'), 'utf8').replace(/\s/g, '')).to.equal(intermediate.replace(/\s/g, ''))
    expect(mode(at('plugged/ca-key.pem'))).to.equal('600')
  })

  it("that do not match are rejected with the file's name, and nothing is written", () => {
    const refused: [string, Parameters<typeof files>[0]][] = [
      [`${at('other-key')}: is not the key of the signing certificate`, { key: write('other-key', pem(below)) }],
      [`${at('garbled-key')}: holds no private key in PEM`, { key: write('garbled-key', 'secret words') }],
      [`${at('empty-cert')}: holds no certificate in PEM`, { cert: write('empty-cert', '') }],
      [`${at('own-cert')}: the signing certificate does not lead to a root`, { root: write('other-root', below.record.root) }],
      [`${at('nowhere')}: ENOENT`, { key: at('nowhere') }],
      [`${dir}: is not a file`, { root: dir }],
    ]
    for (const [reason, change] of refused) {
      let said = ''
      try {
        importing(change)
      } catch (error) {
        said = (error as Error).message
      }
      expect(said).to.include(reason)
      expect(said).not.to.include('secret')
      expect(readdirSync(dir)).not.to.include('plugged')
    }
  })

  it('replace others only if requested', () => {
    importing({})
    const other = { cert: write('cert', below.record.certificate), key: write('key', pem(below)) }
    expect(() => importing(other)).to.throw('root-cert.pem: is there already')
    expect(readFileSync(at('plugged/ca-cert.pem'), 'utf8').replace(/\s/g, '')).to.equal(root.record.certificate.replace(/\s/g, ''))
    importing(other, true)
    expect(readFileSync(at('plugged/ca-key.pem'), 'utf8')).to.equal(pem(below))
    expect(readdirSync(at('plugged'))).to.have.length(4)
  })
})
