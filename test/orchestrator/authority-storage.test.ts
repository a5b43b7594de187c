/**
 * The state of the certificate authority in Secrets of a real API server: what the storage of a directory promises too, and what replicas
 * that share it need (docs/certificates.md, K8 to K13).
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openFileStorage } from '../../actors/discovery/authority/file-storage.ts'
import { HeldKeys } from '../../actors/discovery/authority/held-keys.ts'
import { storeKey } from '../../actors/discovery/authority/key-storage.ts'
import { RootRotation } from '../../actors/discovery/authority/root-rotation.ts'
import { newSecret, SecretAccess, textsOf, withTexts } from '../../actors/discovery/authority/secret-access.ts'
import { openSecretStorage } from '../../actors/discovery/authority/secret-storage.ts'
import { type CaStorage, StaleVersionError, StorageAwayError } from '../../actors/discovery/authority/storage.ts'
import { ClusterApi } from '../../actors/discovery/cluster/cluster-api.ts'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { type CallSecret, secretCalls } from '../../actors/discovery/cluster/secret-calls.ts'
import { sharedSecrets } from '../../actors/discovery/own-keys/process-secrets.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { type AuthorityState, emptyState } from '../../src/ca/state.ts'
import { rootOf, signedBy } from '../harness/authorities.ts'
import { TestCluster } from '../harness/cluster.ts'
import { until } from '../harness/until.ts'

const day = 86_400_000
const withRoot = (name: string): AuthorityState => ({ ...emptyState, authorities: [rootOf(name).record] })
const pem = (name: string): string => rootOf(name).key.export({ type: 'pkcs8', format: 'pem' }) as string
const failure = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(
    () => Promise.reject(new Error('nothing failed')),
    (error: Error) => error,
  )

describe('the state of the certificate authority in Secrets', () => {
  let cluster: TestCluster
  let api: ClusterApi
  let namespace: string
  let count = 0
  let lines: string[]
  const opened: { close(): Promise<void> }[] = []

  const log = (message: string) => void lines.push(message)
  const logger = { debug: log, info: log, warn: log, error: log }
  const access = () => new SecretAccess(secretCalls(api, namespace), namespace)
  /** Opens the storage as a replica of its own, which has made these roots. */
  const open = async (roots: readonly string[] = [], secrets = access(), followMs = 50): Promise<{ storage: CaStorage; held: HeldKeys }> => {
    const held = new HeldKeys()
    held.set('made', new Map(roots.map((name) => [rootOf(name).record.id, pem(name)])))
    const storage = await openSecretStorage({ access: secrets, held, log: logger, now: Date.now, times: { followMs, ledgerMs: 50 } })
    opened.push(storage)
    return { storage, held }
  }
  const secret = async (name: string) => {
    const found = await access().get(name)
    return found && { ...found, texts: textsOf(found) }
  }
  /** Replaces the values of a Secret, or makes it. */
  const edit = async (name: string, texts: Record<string, string>) => {
    const before = (await access().get(name)) ?? newSecret(name, 'Opaque')
    expect(await access().write(withTexts(before, texts))).to.not.equal(undefined)
  }

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    api = new ClusterApi(new ClusterConnection({ from: 'file', path: cluster.adminConfig }), { perSecond: 1000, burst: 1000, userAgent: 'test' })
  })
  after(async () => {
    api?.close()
    await cluster?.dispose()
  })
  beforeEach(() => {
    namespace = `mesh-${++count}`
    lines = []
    cluster.kubectl(['create', 'namespace', namespace])
  })
  afterEach(async () => {
    for (const each of opened.splice(0)) await each.close()
  })

  it('is empty at first, and then what was last written, with the keys that it names, and the root where users look for it', async () => {
    const { storage } = await open(['one'])
    const { state, version } = await storage.read()
    expect(state).to.deep.equal(emptyState)
    expect(await secret('mesh-ca-secret'), 'no root is shown before there is one').to.equal(undefined)
    const next = await storage.write(withRoot('one'), version)
    expect(await storage.read()).to.deep.equal({ state: withRoot('one'), version: next })
    await storage.writeNote('ledger', 'text')
    const again = await open()
    expect((await again.storage.read()).state).to.deep.equal(withRoot('one'))
    expect(again.held.get(rootOf('one').record.id)).to.equal(pem('one'))
    expect(await again.storage.readNote('ledger')).to.equal('text')
    expect(await again.storage.readNote('other')).to.equal(undefined)
    const shown = await secret('mesh-ca-secret')
    expect(shown?.type).to.equal('mesh.io/ca-root')
    expect(shown?.texts).to.deep.equal({
      'ca-cert.pem': rootOf('one').record.root,
      'ca-key.pem': pem('one'),
      ...{ 'cert-chain.pem': '', 'root-cert.pem': '', 'key.pem': '' },
    })
    again.held.set('made', new Map([[rootOf('two').record.id, pem('two')]]))
    await again.storage.write(withRoot('two'), next)
    await again.storage.keepKeys([rootOf('two').record.id])
    expect(Object.keys((await secret('mesh-ca-state'))?.texts ?? {}).sort()).to.deep.equal([`${rootOf('two').record.id}.pem`, 'state.json'])
    expect((await secret('mesh-ca-secret'))?.texts['ca-cert.pem']).to.equal(rootOf('two').record.root)
  })

  it('begins with the root of an installation before, of which nothing is known that it issued, and with no other one', async () => {
    await edit('istio-ca-secret', { 'ca-cert.pem': rootOf('old').record.root, 'ca-key.pem': pem('old') })
    const { storage, held } = await open()
    const { state } = await storage.read()
    expect(state.authorities).to.deep.equal([{ ...rootOf('old').record, origin: 'imported' }])
    expect([held.get(rootOf('old').record.id), state.inForce]).to.deep.equal([pem('old'), [rootOf('old').record.root]])
    expect((await secret('mesh-ca-secret'))?.texts['ca-cert.pem']).to.equal(rootOf('old').record.root)
    // The state was lost: the root that was shown is the first one again.
    cluster.kubectl(['delete', 'secret', '-n', namespace, 'mesh-ca-state', 'istio-ca-secret'])
    const again = await open()
    expect((await again.storage.read()).state.authorities.map(({ id }) => id)).to.deep.equal([rootOf('old').record.id])
  })

  it('that is damaged is rejected with the name of the Secret and the value, without a key, and is left as it is', async () => {
    const name = `Secret ${namespace}/mesh-ca-secret`
    const good = { 'ca-cert.pem': rootOf('one').record.root, 'ca-key.pem': pem('one') }
    for (const [reason, texts] of [
      ['ca-key.pem: is missing', { ...good, 'ca-key.pem': '' }],
      ['ca-cert.pem: holds no certificate in PEM', { ...good, 'ca-cert.pem': 'garbage' }],
      ['ca-key.pem: holds no private key in PEM, or one that is encrypted', { ...good, 'ca-key.pem': 'secret words' }],
      ['ca-key.pem: is not the key of ca-cert.pem', { ...good, 'ca-key.pem': pem('two') }],
    ] as const) {
      await edit('mesh-ca-secret', texts)
      expect((await failure(open())).message).to.equal(`${name}: ${reason}; restore it, or remove it to begin with a new root`)
      expect(await secret('mesh-ca-state'), 'no root is made in its place').to.equal(undefined)
    }
    await edit('mesh-ca-secret', good)
    const { storage } = await open(['two'])
    const { version } = await storage.read()
    const state = await secret('mesh-ca-state')
    const text = state?.texts['state.json'] ?? ''
    const key = `${rootOf('one').record.id}.pem`
    for (const [reason, texts] of [
      ['state.json: is missing', { [key]: pem('one') }],
      ['is not valid JSON', { 'state.json': 'garbage', [key]: pem('one') }],
      ['format 2 is not 1', { 'state.json': text.replace('"format": 1', '"format": 2'), [key]: pem('one') }],
      [`${key}: is missing`, { 'state.json': text }],
    ] as const) {
      await edit('mesh-ca-state', texts)
      for (const [each, advice] of [
        [() => storage.write(withRoot('two'), version), 'restore it, or remove it, and it is written again as it was'],
        [
          () => open(),
          'restore it, or remove it: a replica that runs writes it again as it was; if none does, it begins with the root of mesh-ca-secret',
        ],
      ] as const) {
        const { message } = await failure(each())
        expect(message).to.match(new RegExp(`^Secret ${namespace}/mesh-ca-state: is damaged and stays as it is: .*; ${advice}`))
        expect(message).to.include(reason)
        expect(message).not.to.include('PRIVATE')
      }
      expect((await secret('mesh-ca-state'))?.texts).to.deep.equal(texts)
    }
    storage.follow?.(() => undefined)
    await edit('mesh-ca-state', { 'state.json': 'garbage' })
    await until('the follower to tell', () => lines.some((line) => line.includes('mesh-ca-state: is damaged')))
    expect(storage.fault).to.match(/mesh-ca-state: is damaged and stays as it is: state[.]json: .*; the authority in force stays$/)
    await edit('mesh-ca-state', { 'state.json': text, [key]: pem('one') })
    await until('the follower to tell', () => lines.some((line) => line.endsWith('mesh-ca-state can be read again')))
    expect(storage.fault).to.equal(undefined)
    expect(
      lines.filter((line) => line.includes('is damaged')),
      'once',
    ).to.have.length(1)
  })
  it('detects a write of another replica, and tells of it; other fields of the Secret are kept', async () => {
    const [mine, theirs] = [await open(['one']), await open(['two'])]
    const { version } = await mine.storage.read()
    let changes = 0
    mine.storage.follow?.(() => changes++)
    cluster.kubectl(['label', 'secret', '-n', namespace, 'mesh-ca-state', 'owner=me'])
    const next = await theirs.storage.write(withRoot('two'), version)
    expect(await failure(mine.storage.write(withRoot('one'), version))).to.be.instanceOf(StaleVersionError)
    await until('the change', () => changes > 0)
    expect(await mine.storage.read()).to.deep.equal({ state: withRoot('two'), version: next })
    expect(mine.held.get(rootOf('two').record.id), 'the key of the other one').to.equal(pem('two'))
    expect(cluster.kubectl(['get', 'secret', '-n', namespace, 'mesh-ca-state', '-o', 'jsonpath={.metadata.labels.owner}'])).to.equal('me')
    expect((await failure(mine.storage.write({ ...withRoot('three') }, next))).message).to.include('the key of')
  })

  it('is written again when it is removed in use, and a root that is shown is not replaced by the one of the state', async () => {
    const { storage } = await open(['one'])
    const version = await storage.write(withRoot('one'), (await storage.read()).version)
    cluster.kubectl(['delete', 'secret', '-n', namespace, 'mesh-ca-state'])
    await until('the storage to write it again', async () => (await storage.read()).version === version)
    expect(await storage.read()).to.deep.equal({ state: withRoot('one'), version })
    expect((await secret('mesh-ca-state'))?.texts[`${rootOf('one').record.id}.pem`]).to.equal(pem('one'))
    await edit('mesh-ca-secret', { 'ca-cert.pem': rootOf('two').record.root, 'ca-key.pem': pem('two') })
    await storage.write({ ...withRoot('one'), since: 1 }, version)
    expect(lines.at(-1)).to.match(/mesh-ca-secret has another content than the root that signs and stays as it is: Secret \S+ counts$/)
    expect((await secret('mesh-ca-secret'))?.texts['ca-cert.pem']).to.equal(rootOf('two').record.root)
  })

  it('is written again by a replica that runs when it is removed as another one begins, and so is the root that is shown', async () => {
    const { storage } = await open(['one'], access(), 500)
    const later = { ...withRoot('one'), since: 1 }
    await storage.write(later, (await storage.read()).version)
    storage.follow?.(() => undefined)
    cluster.kubectl(['delete', 'secret', '-n', namespace, 'mesh-ca-state'])
    const next = await open([], access(), 1000)
    expect((await next.storage.read()).state, 'not only the root that is shown').to.deep.equal(later)
    cluster.kubectl(['delete', 'secret', '-n', namespace, 'mesh-ca-secret'])
    await until('the root to be shown again', async () => (await secret('mesh-ca-secret'))?.texts['ca-cert.pem'] === rootOf('one').record.root)
  })

  it('is written again as it was last, not as a replica knows it that was stopped meanwhile, unless that is the only one', async () => {
    const remove = async () => {
      cluster.kubectl(['delete', 'secret', '-n', namespace, 'mesh-ca-state'])
      const removed = performance.now()
      await until('its last look to be long ago', () => performance.now() > removed + 1000)
    }
    const stopped = (await open(['one'])).storage
    const version = await stopped.write(withRoot('one'), (await stopped.read()).version)
    const running = (await open([], access(), 60_000)).storage
    const later = { ...withRoot('one'), since: 1 }
    await running.write(later, version)
    await remove()
    const refusal = () => stopped.read().catch((error: Error) => error.message)
    const reason = /mesh-ca-state: was removed while this replica did not look: another one may know more, and writes it again$/
    expect(await refusal()).to.match(reason)
    expect(await secret('mesh-ca-state')).to.equal(undefined)
    expect((await running.read()).state).to.deep.equal(later)
    expect((await stopped.read()).state).to.deep.equal(later)
    await remove()
    for (let look = 0; look < 2; look++) expect(await refusal()).to.match(reason)
    expect((await stopped.read()).state).to.deep.equal(later)
  })

  it('is not taken for missing when it cannot be read', async () => {
    const calls = secretCalls(api, namespace)
    const down: CallSecret = async (call) =>
      call.verb === 'get' && call.name === 'mesh-ca-secret' ? { outcome: 'failed', reason: 'no answer', mayPass: true } : calls(call)
    expect(await failure(open([], new SecretAccess(down, namespace)))).to.be.instanceOf(StorageAwayError)
    expect(await secret('mesh-ca-state')).to.equal(undefined)
    const account = cluster.tokenConfig('stranger', cluster.kubectl(['create', 'token', 'default', '-n', namespace]).trim())
    const stranger = new ClusterApi(new ClusterConnection({ from: 'file', path: account }), { perSecond: 100, burst: 100, userAgent: 'test' })
    const refused = await failure(open([], new SecretAccess(secretCalls(stranger, namespace), namespace)))
    stranger.close()
    expect(refused.message).to.match(/^the role of this service account does not permit "get" of "secrets": secrets "mesh-ca-state" is forbidden/)
    const nowhere = await failure(open([], new SecretAccess(secretCalls(api, 'nowhere'), 'nowhere')))
    expect(nowhere.message).to.equal('create of secrets nowhere/mesh-ca-state failed: namespaces "nowhere" not found')
  })

  it('has notes of any size, of which the one before is there until the next is complete, and those of other replicas are passed on', async () => {
    const [mine, theirs] = [await open(), await open()]
    const long = randomBytes(3_000_000).toString('hex')
    await mine.storage.writeNote('ledger', 'short')
    let others = ''
    await theirs.storage.writeNote('ledger', [long], (text) => (others = text))
    expect(others).to.equal('short')
    expect(await mine.storage.readNote('ledger')).to.equal(long)
    const names = cluster.kubectl(['get', 'secrets', '-n', namespace, '-o', 'name']).trim().split('\n')
    expect(names.filter((name) => name.includes('ledger-')).length).to.be.within(4, 12)
    // A replica that is killed as it divides the next one.
    const calls = secretCalls(api, namespace)
    const dying: CallSecret = async (call) => {
      const isPart = call.verb !== 'get' && call.secret.name === 'mesh-ca-ledger-b2'
      return isPart ? { outcome: 'failed', reason: 'killed', mayPass: true } : calls(call)
    }
    const dead = await open([], new SecretAccess(dying, namespace))
    const next = randomBytes(3_000_000).toString('hex')
    expect((await failure(dead.storage.writeNote('ledger', [next]))).message).to.equal('killed')
    expect(await mine.storage.readNote('ledger')).to.equal(long)
    expect((await failure(mine.storage.writeNote('ledger', [next]))).message).to.include('another replica writes it')
    await mine.storage.writeNote('ledger', 'short again')
    expect(await theirs.storage.readNote('ledger')).to.equal('short again')
  })

  it('leave a ledger that somebody has damaged as it is, with its name, until it is removed', async () => {
    const [mine, theirs] = [await open(), await open()]
    await mine.storage.writeNote('ledger', 'short')
    const patch = ['patch', 'secret', 'mesh-ca-ledger', '-n', namespace, '--type', 'merge', '-p']
    cluster.kubectl([...patch, JSON.stringify({ data: { 'ledger.json.gz': Buffer.from('damaged').toString('base64') } })])
    for (const { storage } of [mine, theirs])
      expect((await failure(storage.writeNote('ledger', 'mine', () => undefined))).message).to.match(
        new RegExp(`^Secret ${namespace}/mesh-ca-ledger: .*; it is damaged and stays as it is until somebody restores or removes it$`),
      )
    const kept = cluster.kubectl(['get', 'secret', 'mesh-ca-ledger', '-n', namespace, '-o', 'jsonpath={.data.ledger\\.json\\.gz}'])
    expect(Buffer.from(kept, 'base64').toString()).to.equal('damaged')
    cluster.kubectl(['delete', 'secret', 'mesh-ca-ledger', '-n', namespace])
    await mine.storage.writeNote('ledger', 'mine', () => undefined)
    expect(await theirs.storage.readNote('ledger')).to.equal('mine')
  })

  it('is what it was when its Secrets are lost and restored from a copy', async () => {
    const before = (await open(['one'])).storage
    await before.write(withRoot('one'), (await before.read()).version)
    await before.close()
    const kept = JSON.parse(cluster.kubectl(['get', 'secret', 'mesh-ca-state', '-n', namespace, '-o', 'json']))
    for (const field of ['uid', 'resourceVersion', 'creationTimestamp']) delete kept.metadata[field]
    cluster.kubectl(['delete', 'secret', '-n', namespace, 'mesh-ca-state', 'mesh-ca-secret', '--ignore-not-found'])
    cluster.apply(JSON.stringify(kept))
    const after = await open()
    expect((await after.storage.read()).state).to.deep.equal(withRoot('one'))
    expect(after.held.get(rootOf('one').record.id)).to.equal(pem('one'))
    expect((await secret('mesh-ca-secret'))?.texts['ca-cert.pem']).to.equal(rootOf('one').record.root)
  })

  it('takes a state directory as the documented commands copy it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'mesh-ca-'))
    try {
      const files = await openFileStorage(join(directory, 'ca'))
      storeKey(files.keys, rootOf('one').record.id, rootOf('one').key)
      await files.write(withRoot('one'), (await files.read()).version)
      await files.writeNote('ledger', 'lines')
      await files.close()
      const create = (name: string, ...from: string[]) =>
        cluster.kubectl(['--namespace', namespace, 'create', 'secret', 'generic', name, ...from.flatMap((each) => ['--from-file', each])])
      create('mesh-ca-state', `state.json=${directory}/ca/state.json`, `${directory}/ca/keys`)
      create('mesh-ca-ledger', `ledger.json=${directory}/ca/ledger.json`)
    } finally {
      rmSync(directory, { recursive: true })
    }
    const { storage, held } = await open()
    expect(await storage.read()).to.deep.equal({ state: withRoot('one'), version: '2' })
    expect(held.get(rootOf('one').record.id)).to.equal(pem('one'))
    expect(await storage.readNote('ledger')).to.equal('lines')
  })

  it('gives replicas that start at once one root, and each takes over the stages and the ledger of the other', async () => {
    let made = 0
    const stored = new Map<string, number>()
    const replica = async (name: string) => {
      const calls = secretCalls(api, namespace)
      const counted: CallSecret = async (call) => {
        if (call.verb !== 'get' && call.secret.name === 'mesh-ca-ledger') stored.set(name, (stored.get(name) ?? 0) + 1)
        return calls(call)
      }
      const { storage, held } = await open([], new SecretAccess(counted, namespace))
      const rotation = await RootRotation.open({
        storage,
        settings: { checkInterval: 0, jitter: false, gracePercent: 20, workloadLife: day },
        async makeRoot(before) {
          const root = rootOf(`made ${made++}`)
          held.set('made', new Map([[root.record.id, pem(`made ${made - 1}`)]]))
          const signer = before && [0, 1, 2].map((index) => rootOf(`made ${index}`)).find(({ record }) => record.id === before.id)
          return { ...root.record, cross: signer ? signedBy(signer, root) : '' }
        },
        changed: () => undefined,
        clocks: () => ({ wall: Date.now(), boot: Date.now(), bootId: 'boot' }),
        random: () => 0,
        log: () => logger,
        metrics: new MetricRegistry(),
      })
      opened.push(rotation)
      return rotation
    }
    const [one, other] = await Promise.all([replica('one'), replica('other')])
    await Promise.all([one.useOwn(), other.useOwn()])
    const ids = (rotation: RootRotation) => rotation.state.authorities.map(({ id }) => id)
    expect(ids(one)).to.deep.equal(ids(other))
    expect(ids(one)).to.have.length(1)
    expect((await secret('mesh-ca-secret'))?.texts['ca-cert.pem']).to.equal(one.state.authorities[0]?.root)

    const issued = { serial: 'ab', root: ids(one)[0] ?? '', issuedAt: Date.now(), notAfter: Date.now() + day, peer: '10.0.0.1:4000' }
    const writes = stored.get('other') ?? 0
    for (let index = 0; index < 1000; index++) other.issued({ identities: ['spiffe://td/ns/a/sa/b'], ...issued, serial: String(index) })
    await until('the ledger to be stored', () => (stored.get('other') ?? 0) > writes)
    expect(stored.get('other'), 'one write for many certificates').to.be.at.most(writes + 2)
    expect(await one.advance(false)).to.include({ went: 'announce' })
    const early = await one.advance(false)
    expect('refused' in early && early.refused).to.match(
      /^the rotation stays in stage announce: other replicas may need [1-3] s more to take it over/,
    )
    await until('the stage at the other replica', () => other.state.stage === 'announce')
    expect(ids(other)).to.deep.equal(ids(one))
    // The holder of a certificate of the other replica blocks here too.
    await until('the ledger of the other replica', async () => {
      const answer = await one.advance(false)
      return 'refused' in answer && answer.status.blockers.some(({ identity }) => identity === 'spiffe://td/ns/a/sa/b')
    })
    const answers = await Promise.all([one.advance(true), other.advance(true)])
    expect(answers.filter((answer) => 'went' in answer && answer.went === 'trust-both')).to.have.length(1)
  })

  it('has the secrets of versions, which replicas that start at once share', async () => {
    const calls = secretCalls(api, namespace)
    const [one, other] = await Promise.all([sharedSecrets({ call: calls, namespace }), sharedSecrets({ call: calls, namespace })])
    expect(one).to.deep.equal(other)
    expect([one.warning, (await sharedSecrets({ call: calls, namespace })).secrets]).to.deep.equal([undefined, one.secrets])
    await edit('mesh-version-secrets', { 'version-secrets.json': '{"versionKey": "secret"}' })
    const { secrets, warning } = await sharedSecrets({ call: calls, namespace })
    expect(secrets.versionKey).to.not.equal(one.secrets.versionKey)
    expect(warning).to.include(`Secret ${namespace}/mesh-version-secrets: does not hold the secrets of versions: remove it to have new ones made; `)
  })
})
