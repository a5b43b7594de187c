/** Remote secrets: which configurations of connections are refused, and which clusters follow from Secrets in any order (docs/operation.md, J1 to J3). */
import { expect } from 'chai'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { longestRemoteConfig, readRemoteAccess } from '../../../src/orchestrator/remote-access.ts'
import { cutRemoteSecret, RemoteSecrets } from '../../../src/orchestrator/remote-secrets.ts'
import { runs } from '../../harness/seed.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const certificate = base64('-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n')
const key = base64('-----BEGIN EC PRIVATE KEY-----\nMIIB\n-----END EC PRIVATE KEY-----\n')

/** A configuration with more fields of its cluster and its user. */
const config = (cluster: object = {}, user: object = { token: 'secret-token' }, more: object = {}) =>
  stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    contexts: [
      { name: 'other', context: { cluster: 'none', user: 'none' } },
      { name: 'x', context: { cluster: 'c', user: 'u' } },
    ],
    clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443', 'certificate-authority-data': certificate, ...cluster } }],
    users: [
      { name: 'unused', user: { exec: { command: 'sh' } } },
      { name: 'u', user },
    ],
    ...more,
  })
const faultOf = (text: string): string => {
  const read = readRemoteAccess(text)
  return 'fault' in read ? `${read.fault.path}: ${read.fault.reason}` : 'accepted'
}

describe('the id of another cluster', () => {
  it('is not that of the own cluster, nor the name of a registry', () => {
    const secrets = new RemoteSecrets('own')
    const data = Object.fromEntries(['own', 'Mock', 'ServiceEntry', 'Orchestrator', 'west'].map((id) => [id, base64(config())]))
    secrets.set('a/b', cutRemoteSecret({ metadata: {}, data }))
    const { clusters, faults } = secrets.result()
    expect([...clusters.keys()]).to.deep.equal(['west'])
    const registry = (id: string) => `Secret a/b, cluster ${id}: it is the name of a registry, which no cluster may have; the key is left out`
    expect(faults).to.deep.equal([
      ...['Mock', 'Orchestrator', 'ServiceEntry'].map(registry),
      'Secret a/b, cluster own: it is the cluster of this process; the key is left out',
    ])
  })
})

describe('the configuration in a remote secret', () => {
  it('names a server, its authority, and a token, a certificate or a password', () => {
    const read = (user: object, cluster: object = {}) => {
      const result = readRemoteAccess(config(cluster, user))
      return 'access' in result ? result.access : result.fault
    }
    const server = {
      server: 'https://10.0.0.1:6443',
      proxy: undefined,
      ca: Buffer.from(certificate, 'base64').toString(),
      serverName: undefined,
      verifies: true,
    }
    expect(read({ token: ' a.b ' })).to.deep.equal({ ...server, cert: undefined, key: undefined, headers: { authorization: 'Bearer a.b' } })
    expect(read({ username: 'jane', password: 'p' })).to.deep.include({ headers: { authorization: `Basic ${base64('jane:p')}` } })
    expect(read({ 'client-certificate-data': certificate, 'client-key-data': key })).to.deep.include({
      cert: Buffer.from(certificate, 'base64').toString(),
      key: Buffer.from(key, 'base64').toString(),
      headers: {},
    })
    const behind = { 'proxy-url': 'http://10.0.0.2:3128', 'tls-server-name': 'api.example', 'insecure-skip-tls-verify': false }
    expect(read({ token: 'a' }, behind)).to.deep.include({ proxy: 'http://10.0.0.2:3128', serverName: 'api.example', verifies: true })
  })

  it('runs no program, reads no file and trusts no unverified server: the field is named', () => {
    const users: [field: string, value: unknown][] = [
      ['exec', { command: 'sh', args: ['-c', 'id'] }],
      ['auth-provider', { name: 'gcp', config: { 'cmd-path': '/bin/sh' } }],
      ['tokenFile', '/etc/shadow'],
      ['client-certificate', '/etc/shadow'],
      ['client-key', '/etc/shadow'],
      ['as', 'system:admin'],
      ['as-groups', ['system:masters']],
    ]
    for (const [field, value] of users)
      expect(faultOf(config({}, { token: 'a', [field]: value }))).to.match(new RegExp(`^users\\[1\\]\\.user\\.${field}: `))
    expect(faultOf(config({ 'certificate-authority': '/etc/shadow' }))).to.match(/^clusters\[0\]\.cluster\.certificate-authority: files are not read/)
    const verify = 'clusters[0].cluster.insecure-skip-tls-verify'
    expect(faultOf(config({ 'insecure-skip-tls-verify': true }))).to.equal(
      `${verify}: a server that does not prove who it is would have the credential`,
    )
    for (const value of ['true', 'false', 1])
      expect(faultOf(config({ 'insecure-skip-tls-verify': value }))).to.equal(`${verify}: expected false or true, not in quotes`)
    expect(faultOf(config({ made: 1 }))).to.equal('clusters[0].cluster.made: it is not known')
    expect(faultOf(config({}, { token: 'a', exec: null, tokenFile: '' })), 'a field without a value').to.equal('accepted')
  })

  it('is refused where it lacks something, or is malformed', () => {
    for (const server of ['', 'http://10.0.0.1', '10.0.0.1:6443', 'https://a:b@10.0.0.1', 'file:///etc/shadow', 7])
      expect(faultOf(config({ server }))).to.match(/^clusters\[0\]\.cluster\.server: /)
    for (const proxy of ['ftp://a', 'nothing']) expect(faultOf(config({ 'proxy-url': proxy }))).to.match(/^clusters\[0\]\.cluster\.proxy-url: /)
    expect(faultOf(config({ 'certificate-authority-data': '/etc/ssl/ca.pem' }))).to.match(/certificate-authority-data: expected the base64 form/)
    expect(faultOf(config({}, {}))).to.match(/^users\[1\]\.user: there is no credential/)
    expect(faultOf(config({}, { token: 'a\r\nhost: b' }))).to.match(/^users\[1\]\.user\.token: /)
    expect(faultOf(config({}, { 'client-certificate-data': certificate }))).to.match(/client-key-data: a certificate needs its key/)
    expect(faultOf(config({}, {}, { 'current-context': 'none' }))).to.equal('current-context: there is none of this name in contexts')
    expect(faultOf(config({}, {}, { 'current-context': 'other' }))).to.equal('contexts[0].context.cluster: there is none of this name in clusters')
    for (const text of ['', '[]', 'a', '{a: 1}\n---\n{a: 1}', '{', '\u0000', '['.repeat(50_000)]) expect(faultOf(text)).to.not.equal('accepted')
    expect(faultOf('a'.repeat(longestRemoteConfig + 1))).to.match(/longer than/)
    const broken: [text: string, reason: string][] = [
      ['users: []\nusers: []', 'it is not YAML, line 2: a key is given twice'],
      [`a: &a [b, b]\nc: [${'*a,'.repeat(200)}*a]`, 'it is not YAML, line 2: more than 100 aliases'],
      ['users: *a', 'it is not YAML, line 1: an alias without an anchor before it'],
      ['users:\n  - {name: a\n', 'it is not YAML, line 3'],
      [Buffer.from('users: []', 'utf16le').toString('utf8'), 'it is not YAML, line 1: a control character'],
      [`a: ${'['.repeat(100)}${']'.repeat(100)}`, 'it is nested deeper than 64 levels'],
      ...['', ' \n', '# nothing'].map((text): [string, string] => [text, 'it is empty']),
      ['{a: 1}\n---\n{a: 1}', 'expected one YAML document, and it has several'],
      ['- a', 'expected a mapping in YAML'],
    ]
    for (const [text, reason] of broken) expect(faultOf(text)).to.equal(`: ${reason}`)
  })

  it('never shows in what is said of it', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 0, max: 400 }), (noise, at) => {
        const text = config({}, { token: 'secret-token' })
        const said = faultOf(`${text.slice(0, at)}${noise}${text.slice(at)}`)
        expect(said).to.not.contain('secret-token')
        expect(faultOf(`{"users": "secret-token ${noise}`)).to.not.contain('secret-token')
      }),
      { numRuns: runs(100) },
    )
  })
})

describe('the clusters of remote secrets', () => {
  const secret = (createdAt: number, texts: Readonly<Record<string, string>>) =>
    cutRemoteSecret({
      metadata: { creationTimestamp: new Date(createdAt * 1000).toISOString() },
      data: Object.fromEntries(Object.entries(texts).map(([id, text]) => [id, base64(text)])),
    })
  const shown = (secrets: RemoteSecrets) => {
    const { clusters, faults } = secrets.result()
    return { clusters: [...clusters].map(([id, { secret: from, access }]) => `${id} ${from} ${access.server}`), faults }
  }
  const at = (server: string) => config({ server: `https://${server}` })

  it('are those of all keys; the oldest Secret that names one counts, and the own cluster is none', () => {
    const secrets = new RemoteSecrets('own')
    secrets.set('mesh-system/young', secret(9, { b: at('young'), c: at('c') }))
    secrets.set('mesh-system/old', secret(1, { b: at('old'), own: at('own') }))
    const taken = {
      clusters: ['b mesh-system/old https://old', 'c mesh-system/young https://c'],
      faults: [
        'Secret mesh-system/old, cluster own: it is the cluster of this process; the key is left out',
        'Secret mesh-system/young, cluster b: Secret mesh-system/old names it too and is older; the key is left out',
      ],
    }
    expect(shown(secrets)).to.deep.equal(taken)
    secrets.set('mesh-system/old', undefined)
    expect(shown(secrets)).to.deep.equal({ clusters: ['b mesh-system/young https://young', 'c mesh-system/young https://c'], faults: [] })
  })

  it('are not taken away by an older Secret whose value cannot be used; one that could be used keeps its claim', () => {
    const secrets = new RemoteSecrets('own')
    secrets.set('a/young', secret(9, { b: at('young') }))
    secrets.set('a/old', secret(1, { b: 'x' }))
    expect(shown(secrets).clusters).to.deep.equal(['b a/young https://young'])
    expect(shown(secrets).faults).to.have.length(1)
    expect(shown(secrets).faults[0]).to.match(/^Secret a\/old, cluster b: .*; Secret a\/young counts$/)
    secrets.set('a/old', secret(1, { b: at('old') }))
    expect(shown(secrets).clusters).to.deep.equal(['b a/old https://old'])
    secrets.set('a/old', secret(1, { b: 'x' }))
    expect(shown(secrets).clusters).to.deep.equal(['b a/old https://old'])
  })

  it('have a bounded number of faults that are told', () => {
    const secrets = new RemoteSecrets('own')
    const keys = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, 'x']))
    for (let at = 0; at < 20; at++) secrets.set(`a/s${at}`, secret(1, keys))
    const { faults } = shown(secrets)
    expect(faults).to.have.length(101)
    expect(faults[100]).to.equal('more than 100 keys of remote secrets have faults; the others are not told')
  })

  it('stay beside as many keys as a Secret can have, of which those that are not read are told', () => {
    const secrets = new RemoteSecrets('own')
    secrets.set('a/s', secret(1, { zfar: at('far') }))
    expect(shown(secrets).clusters).to.deep.equal(['zfar a/s https://far'])
    const junk = Object.fromEntries(Array.from({ length: 1200 }, (_, index) => [`k${index}`, 'x']))
    secrets.set('a/s', secret(1, { ...junk, zfar: at('far') }))
    expect(shown(secrets).clusters).to.deep.equal(['zfar a/s https://far'])
    expect(shown(secrets).faults[0]).to.equal('Secret a/s has more than 1000 keys: 201 are not read')
  })

  it('keep their place where an older Secret names one more than can be followed, which is told', () => {
    const named = (prefix: string, count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${String(index).padStart(3, '0')}`, at(`${prefix}${index}`)]))
    const secrets = new RemoteSecrets('own')
    secrets.set('a/young', secret(9, named('c', 50)))
    secrets.set('a/old', secret(1, named('b', 50)))
    const before = shown(secrets)
    expect([before.clusters.length, before.faults]).to.deep.equal([100, []])
    secrets.set('a/old', secret(1, { ...named('b', 50), a: at('a') }))
    const after = shown(secrets)
    expect(after.clusters.sort()).to.deep.equal(before.clusters.sort())
    expect(after.faults).to.deep.equal(['Secret a/old, cluster a: there are more than 100 clusters; it is left out'])
    secrets.set('a/young', secret(9, named('c', 49)))
    expect(shown(secrets).clusters).to.include('a a/old https://a')
  })

  it('keep their last good state while the text cannot be used, and go with their key', () => {
    const secrets = new RemoteSecrets('own', ({ server }) => (server === 'https://odd' ? 'its key is odd' : undefined))
    secrets.set('a/s', secret(1, { b: at('one'), c: 'x' }))
    secrets.set('a/s', secret(1, { b: config({ 'insecure-skip-tls-verify': true }), c: 'x' }))
    const [one, other] = shown(secrets).faults
    expect(shown(secrets).clusters).to.deep.equal(['b a/s https://one'])
    expect(one).to.match(/^Secret a\/s, cluster b: field clusters\[0\]\.cluster\.insecure-skip-tls-verify: .*; its last good state stays$/)
    expect(other).to.match(/^Secret a\/s, cluster c: .*; it is not followed$/)
    secrets.set('a/s', secret(1, { b: at('odd') }))
    expect(shown(secrets)).to.deep.equal({
      clusters: ['b a/s https://one'],
      faults: ['Secret a/s, cluster b: its key is odd; its last good state stays'],
    })
    secrets.set('a/s', secret(1, { c: at('two') }))
    expect(shown(secrets)).to.deep.equal({ clusters: ['c a/s https://two'], faults: [] })
  })

  it('do not depend on the order of events, against a model', () => {
    const name = fc.constantFrom('a', 'b', 'c')
    const usable = fc.constantFrom('one', 'two')
    const event = fc.record({
      name,
      age: fc.integer({ min: 0, max: 2 }),
      keys: fc.dictionary(fc.constantFrom('east', 'west', 'own'), usable),
      gone: fc.boolean(),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), (events) => {
        const secrets = new RemoteSecrets('own')
        const held = new Map<string, { age: number; keys: Record<string, string> }>()
        for (const each of events) {
          const texts = Object.fromEntries(Object.entries(each.keys).map(([id, server]) => [id, at(server)]))
          secrets.set(`n/${each.name}`, each.gone ? undefined : secret(each.age, texts))
          if (each.gone) held.delete(each.name)
          else held.set(each.name, each)
        }
        const model = new Map<string, string>()
        for (const [of, { keys }] of [...held].sort(([one, { age }], [other, { age: otherAge }]) => age - otherAge || (one < other ? -1 : 1)))
          for (const [id, server] of Object.entries(keys)) if (id !== 'own' && !model.has(id)) model.set(id, `${id} n/${of} https://${server}`)
        expect(shown(secrets).clusters.sort()).to.deep.equal([...model.values()].sort())
      }),
      { numRuns: runs(100) },
    )
  })
})
