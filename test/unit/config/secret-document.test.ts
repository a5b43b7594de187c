/** Secrets of gateways as documents (docs/resources.md, K3 to K5). */
import { X509Certificate } from 'node:crypto'
import { expect } from 'chai'
import fc from 'fast-check'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { newKey, type Pair, pairValues, SiteCertificates, secretDocument } from '../../harness/gateway-secrets.ts'
import '../../harness/seed.ts'
import { runs } from '../../harness/seed.ts'

const parse = (content: string) => parseConfigFile('f.yaml', content, meshNames('mesh.io'))

describe('gateway secrets', () => {
  const made = new SiteCertificates()
  let root: Pair
  let site: Pair
  let other: Pair
  before(() => {
    root = made.authority('root')
    site = made.issue('site.example', root)
    other = made.issue('other.example', root)
  })
  after(() => made.dispose())

  /** Returns the faults of a Secret with these values, as `<field>: <reason>`. */
  const faultsOf = (values: Record<string, string>, type?: string) => {
    const { faults, secrets, objects } = parse(secretDocument('edge/site', values, type))
    expect(objects).to.deep.equal([])
    if (faults.length > 0) expect(secrets).to.deep.equal([])
    expect(faults.every(({ key }) => key === 'Secret/edge/site')).to.equal(true)
    return faults.map(({ path, reason }) => `${path}: ${reason}`)
  }

  it('are read under both key names, as data or stringData, with their validity period', () => {
    for (const [values, type] of [
      [pairValues(site, root), 'kubernetes.io/tls'],
      [{ cert: site.chain, key: site.key, cacert: root.chain }, 'Opaque'],
    ] as const) {
      const { secrets, objects, faults } = parse(secretDocument('edge/site', values, type))
      expect(faults).to.deep.equal([])
      expect(objects).to.deep.equal([])
      const [secret] = secrets
      expect(secret).to.include({ kind: 'Secret', namespace: 'edge', name: 'site', type, place: 'f.yaml, document 1' })
      expect(Buffer.from(secret?.material.pair?.chain ?? []).toString()).to.equal(site.chain)
      expect(Buffer.from(secret?.material.pair?.key ?? []).toString()).to.equal(site.key)
      expect(Buffer.from(secret?.material.authorities ?? []).toString()).to.equal(root.chain)
      expect(secret?.validity.pair?.notAfter).to.equal(new X509Certificate(site.chain).validToDate.getTime())
    }
    const text = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'n' }, data: { cert: 'bm8=' } }
    const { secrets } = parse(JSON.stringify({ ...text, stringData: { cert: `of the site\n${site.chain}${root.chain}`, key: site.key } }))
    expect(Buffer.from(secrets[0]?.material.pair?.chain ?? []).toString()).to.equal(site.chain + root.chain)
  })

  it('name service accounts in an annotation, under either domain', () => {
    const read = (annotations: unknown) => {
      const document = JSON.parse(secretDocument('edge/site', pairValues(site)))
      const { secrets, faults, warnings } = parse(JSON.stringify({ ...document, metadata: { ...document.metadata, annotations } }))
      expect(faults).to.deep.equal([])
      return [secrets[0]?.serviceAccounts, ...warnings.map(({ path, reason }) => `${path}: ${reason}`)]
    }
    const key = 'security.mesh.io/service-accounts'
    const path = `metadata.annotations[${key}]`
    expect(read({ [key]: 'gateway' })).to.deep.equal([['gateway']])
    expect(read({ 'security.istio.io/service-accounts': 'a , b' })).to.deep.equal([['a', 'b']])
    expect(read({ 'security.istio.io/service-accounts': 'a', [key]: 'b' })).to.deep.equal([['b']])
    const missing = `${path}: required, but missing: it names the service accounts whose gateways get the Secret, and nobody gets it`
    for (const none of [undefined, null, 7, {}, { other: 'x' }, { [key]: undefined }]) expect(read(none)).to.deep.equal([undefined, missing])
    const invalid = (value: unknown, said: string) =>
      expect(read({ [key]: value })).to.deep.equal([[], `${path}: ${said}; expected names separated by commas, and nobody gets the Secret`])
    for (const other of [7, null, ['gateway'], { a: 'b' }, true]) invalid(other, 'expected text')
    invalid('', '"" is not the name of a service account')
    invalid('*', '"*" is not the name of a service account')
    invalid('edge/gateway', '"edge/gateway" is not the name of a service account')
    invalid('a,,b', '"" is not the name of a service account')
    invalid(`a,${'x'.repeat(400)}`, `"${'x'.repeat(100)}" is not the name of a service account`)
  })

  it('may hold CA certificates only', () => {
    const { secrets, faults } = parse(secretDocument('edge/site-cacert', { cacert: root.chain }, 'Opaque'))
    expect(faults).to.deep.equal([])
    expect(secrets[0]?.material.pair).to.equal(undefined)
    expect(secrets[0]?.validity.authorities?.notAfter).to.equal(new X509Certificate(root.chain).validToDate.getTime())
  })

  it('are ignored if they are not for gateways', () => {
    for (const [values, type] of [
      [{ password: 'x' }, 'Opaque'],
      [pairValues(site), 'helm.sh/release.v1'],
      [{ 'ca.crt': '' }, 'Opaque'],
    ] as const)
      expect(parse(secretDocument('edge/x', values, type))).to.deep.include({ secrets: [], faults: [] })
    expect(parse(secretDocument('edge/x', pairValues(site)).replace('"v1"', '"v2"'))).to.deep.include({ secrets: [], faults: [] })
  })

  it('treat an empty CA list as absent', () => {
    expect(faultsOf({ ...pairValues(site), 'ca.crt': '' })).to.deep.equal([])
  })

  it('report field and reason of every fault', () => {
    const cut = site.key.slice(0, 60)
    const rows: [Record<string, string>, string, string?][] = [
      [{}, 'data: kubernetes.io/tls needs tls.crt and tls.key'],
      [{ 'tls.crt': site.chain }, 'data.tls.key: required beside tls.crt, but missing'],
      [{ key: site.key }, 'data.cert: required beside key, but missing', 'Opaque'],
      [{ ...pairValues(site), 'tls.crt': '' }, 'data.tls.crt: is empty'],
      [{ ...pairValues(site), 'tls.crt': 'no' }, 'data.tls.crt: holds no certificate in PEM'],
      [{ ...pairValues(site), 'tls.crt': site.chain.slice(0, 200) }, 'data.tls.crt: ends within a block of PEM'],
      [{ ...pairValues(site), 'tls.crt': site.chain.replace('M', '!') }, 'data.tls.crt: certificate 1 cannot be read'],
      [{ ...pairValues(site), 'tls.key': '' }, 'data.tls.key: is empty'],
      [{ ...pairValues(site), 'tls.key': site.chain }, 'data.tls.key: holds no private key in PEM'],
      [{ ...pairValues(site), 'tls.key': cut }, 'data.tls.key: ends within a block of PEM'],
      [{ ...pairValues(site), 'tls.key': site.key.replace('M', '!') }, 'data.tls.key: the key cannot be read'],
      [{ ...pairValues(site), 'tls.key': site.key + other.key }, 'data.tls.key: holds several private keys in PEM'],
      [{ ...pairValues(site), 'tls.key': other.key }, 'data.tls.key: not the key of the first certificate of tls.crt'],
      [{ ...pairValues(site), 'tls.key': 'x'.repeat(70_000) }, 'data.tls.key: more than 65536 bytes'],
      [{ ...pairValues(site), 'ca.crt': 'x' }, 'data.ca.crt: holds no certificate in PEM'],
      [{ ...pairValues(site), 'ca.crt': 'x'.repeat(1_048_577) }, 'data: more than 1048576 bytes'],
    ]
    for (const [values, fault, type] of rows) expect(faultsOf(values, type)).to.include(fault)
    const weak = made.issue('weak.example', root, { key: ['-newkey', 'rsa:1024', '-nodes'] })
    expect(faultsOf(pairValues(weak))).to.deep.equal(['data.tls.key: an RSA key of 1024 bits: it must have 2048 to 8192'])
    const edwards = made.issue('odd.example', root, { key: ['-newkey', 'ed25519', '-nodes'] })
    expect(faultsOf(pairValues(edwards))).to.deep.equal(['data.tls.key: the key is neither RSA nor ECDSA'])
    const curve = made.issue('odd.example', root, { key: newKey('secp256k1') })
    expect(faultsOf(pairValues(curve))).to.deep.equal(['data.tls.key: the curve of the ECDSA key is none of P-256, P-384 and P-521'])
    const encrypted = made.issue('locked.example', root, { key: ['-newkey', 'rsa:2048', '-passout', 'pass:x'] })
    expect(faultsOf(pairValues(encrypted))).to.deep.equal(['data.tls.key: the key is encrypted: there is no password for it'])
  })

  it('accept the key types that Envoy accepts', () => {
    for (const key of [newKey('secp384r1'), newKey('secp521r1'), ['-newkey', 'rsa:2048', '-nodes']])
      expect(faultsOf(pairValues(made.issue('site.example', root, { key })))).to.deep.equal([])
  })

  it('are rejected without name or namespace, with values that are not text, or if defined twice', () => {
    const document = JSON.parse(secretDocument('edge/site', pairValues(site))) as Record<string, object>
    const faults = (change: object) => parse(JSON.stringify({ ...document, ...change })).faults.map(({ path, reason }) => `${path}: ${reason}`)
    expect(faults({ metadata: { name: 'site' } })).to.deep.equal(['metadata.namespace: required, but missing'])
    expect(faults({ metadata: { namespace: 'edge' } })).to.deep.equal(['metadata.name: required, but missing'])
    expect(faults({ data: 'x' })).to.include('data: expected a mapping')
    expect(faults({ data: { 'tls.crt': 7, 'tls.key': '***' } })).to.include.members(['data.tls.crt: expected text', 'data.tls.key: not base64'])
    const twice = parse(`${JSON.stringify(document)}`.replace(/^/, '---\n').repeat(2).replaceAll('}---', '}\n---'))
    expect(twice.secrets).to.have.length(1)
    expect(twice.faults.map(({ reason }) => reason)).to.deep.equal(['the same object is already in document 1'])
  })

  it('are parsed within a second of CPU, whatever their content', () => {
    const begin = '-----BEGIN CERTIFICATE-----'
    const texts = [' '.repeat(1_000_000) + '=!', 'A'.repeat(1_000_000) + '!', '='.repeat(1_000_000), '\n='.repeat(500_000)]
    const values = [
      begin.repeat(35_000),
      '-----BEGIN '.repeat(90_000),
      `${'-----BEGIN a-----'.repeat(60_000)}-----END a-----`,
      site.chain.repeat(1400),
    ]
    const documents = [
      ...texts.map((cert) => JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'b' }, data: { cert, key: 'x' } })),
      ...values.map((cert) => secretDocument('b/a', { cert, key: site.key }, 'Opaque')),
    ]
    for (const document of documents) {
      const before = process.cpuUsage()
      expect(parse(document).faults).to.have.length.above(0)
      const { user, system } = process.cpuUsage(before)
      expect((user + system) / 1e6, `CPU seconds for ${document.slice(0, 150)}`).to.be.below(1)
    }
  })

  it('never appear in the text of a fault, however the document is corrupted', () => {
    const indented = site.key.replace(/^/gm, '    ').trimEnd()
    const document = `apiVersion: v1\nkind: Secret\nmetadata: {name: site, namespace: edge}\nstringData:\n  tls.key: |\n${indented}\n  tls.crt: |\n${site.chain.replace(/^/gm, '    ')}\ntype: kubernetes.io/tls\n`
    expect(parse(document)).to.deep.include({ faults: [] })
    const lines = site.key.split('\n').slice(1, -2)
    const pieces = lines.flatMap((line) => [line.slice(0, 12), line.slice(-12)])
    const odd = ['"', "'", '{', '[', '|', '>', '!', '&', '*', '%', '@', '\t', '\n', ': ', '- ', '#', '\\', '---\n', '| ', '? ']
    const expectNoKey = (text: string) => {
      const { faults, warnings } = parse(text)
      const reported = JSON.stringify([faults, warnings])
      for (const piece of pieces) expect(reported, text).not.to.contain(piece)
    }
    for (const [from, to] of [
      ['tls.key: |\n', 'tls.key: '],
      ['tls.key: |\n', 'tls.key: | '],
      ['tls.key: |\n', 'tls.key: !'],
      ['tls.key: |\n', 'tls.key: *'],
      ['tls.key: |\n', `tls.key: |${lines[0]}\n`],
      ['tls.key: |\n', `tls.key: !${lines[0]} |\n`],
      [indented, site.key],
      [indented, lines.join(': ')],
      ['stringData:', 'data:'],
      ['kind: Secret', 'kind: DestinationRule'],
      ['apiVersion: v1\nkind: Secret', 'apiVersion: networking.mesh.io/v1\nkind: DestinationRule'],
    ] as const)
      expectNoKey(document.replace(from, to))
    fc.assert(
      fc.property(fc.nat(document.length), fc.constantFrom(...odd), fc.nat(3), (at, text, less) =>
        expectNoKey(document.slice(0, at) + text + document.slice(at + less)),
      ),
      { numRuns: runs(400) },
    )
  })
})
