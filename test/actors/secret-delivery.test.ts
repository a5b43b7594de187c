/** Delivery of Secrets from the configuration directory to writers, and to no other actor (docs/resources.md, K6, K8). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { actor } from '../../actors/discovery/sources/files/file-watcher.ts'
import { type SecretAccess, SecretDelivery } from '../../actors/discovery/sources/secret-delivery.ts'
import type { Behaviour } from '../../actors/runtime/actor.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { SecretCommand, SecretEvent, SecretReader } from '../../protocols/messages/secrets.ts'
import { readFeatures } from '../../src/config/features.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { type Pair, pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { until } from '../harness/until.ts'

const reader: SecretReader = { namespace: 'edge', account: 'gateway' }
const wanted = (...names: string[]): SecretCommand => ({ type: 'SecretsWanted', wanted: [{ reader, names }] })

describe('Secrets of the configuration directory', () => {
  const made = new SiteCertificates()
  let root: Pair
  let sites: Pair[]
  let dir: string
  let watcher: Behaviour<SecretCommand>
  before(() => {
    root = made.authority('root')
    sites = ['a', 'b', 'c'].map((name) => made.issue(`${name}.example`, root))
  })
  after(() => made.dispose())
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-secrets-'))
  })
  afterEach(async () => {
    await watcher?.drain?.()
    rmSync(dir, { recursive: true, force: true })
  })

  const write = (file: string, text: string) => writeFileSync(join(dir, file), text)
  const document = (name: string, site: number, namespace = 'edge') => secretDocument(`${namespace}/${name}`, pairValues(sites[site] as Pair))
  const start = async () => {
    const config = {
      features: readFeatures({}).features,
      allowUnreadable: false,
      source: 'files',
      configDir: dir,
      meshConfig: '',
      networksConfig: '',
      trustDomain: '',
    }
    watcher = (await startActor(actor, config)) as Behaviour<SecretCommand>
  }
  /** Links a writer. Returns the events that it received: `<name>=<number of the site>`, or `<name>-` for none. */
  const link = (name: string) => {
    const peer = new RecordingPeer<SecretEvent>(name)
    watcher.linked?.(peer)
    const keyOf = ({ material }: SecretEvent) => Buffer.from(material?.pair?.key ?? []).toString()
    const received = () =>
      peer.received
        .filter(({ type }) => type === 'SecretChanged')
        .map((event) => (event.material ? `${event.name}=${sites.findIndex(({ key }) => key === keyOf(event))}` : `${event.name}-`))
    return { peer, received }
  }

  it('are sent to writers that requested them only', async () => {
    write('a.json', document('a', 0))
    write('others.yaml', [document('b', 1), document('a', 2, 'other')].join('---\n'))
    await start()
    const [one, other] = [link('xds-writer/0'), link('xds-writer/1')]
    const queue = new RecordingPeer<object>('push-queue')
    watcher.linked?.(queue)
    watcher.receive(wanted('a', 'none'), one.peer)
    await until('the answers', () => one.received().length === 2)
    expect(one.received()).to.have.members(['a=0', 'none-'])
    write('a.json', document('a', 1))
    write('b.json', document('b', 2))
    await until('the change', () => one.received().length === 3)
    expect(one.received()[2]).to.equal('a=1')
    rmSync(join(dir, 'a.json'))
    await until('that it is gone', () => one.received().length === 4)
    expect(one.received()[3]).to.equal('a-')
    expect(other.received()).to.deep.equal([])
    expect(JSON.stringify(queue.received)).not.to.contain('Secret').and.not.to.contain('PRIVATE')
  })

  it('are sent again to a writer that requests them again, and not to one that is gone', async () => {
    write('a.json', document('a', 0))
    await start()
    const [one, successor] = [link('xds-writer/0'), link('xds-writer/0')]
    watcher.receive(wanted('a'), one.peer)
    await until('the answer', () => one.received().length === 1)
    watcher.receive(wanted(), one.peer)
    watcher.receive(wanted('a'), one.peer)
    await until('another answer', () => one.received().length === 2)
    watcher.unlinked?.(one.peer)
    watcher.receive(wanted('a'), successor.peer)
    await until('the answer', () => successor.received().length === 1)
    write('a.json', document('a', 1))
    await until('the change', () => successor.received().length === 2)
    expect(one.received()).to.deep.equal(['a=0', 'a=0'])
  })

  it('keep their last good state while they are invalid, and are sent once they are valid', async () => {
    write('a.json', document('a', 0))
    await start()
    const { peer, received } = link('xds-writer/0')
    watcher.receive(wanted('a', 'b'), peer)
    await until('the answers', () => received().length === 2)
    write('a.json', secretDocument('edge/a', { ...pairValues(sites[1] as Pair), 'tls.key': (sites[2] as Pair).key }))
    write('b.json', document('b', 2))
    await until('the other', () => received().includes('b=2'))
    write('a.json', document('a', 1))
    await until('the right one', () => received().includes('a=1'))
    expect(received()).to.have.members(['a=0', 'b-', 'b=2', 'a=1'])
  })

  it('are reported as missing only if all files are readable', async () => {
    write('unclear.yaml', 'kind: [\n')
    write('faulty.json', secretDocument('edge/faulty', { 'tls.crt': 'x', 'tls.key': 'y' }))
    write('a.json', document('a', 0))
    await start()
    const { peer, received } = link('xds-writer/0')
    watcher.receive(wanted('a', 'faulty', 'none'), peer)
    await until('the answer', () => received().length === 1)
    expect(received()).to.deep.equal(['a=0'])
    rmSync(join(dir, 'unclear.yaml'))
    await until('that there is none', () => received().length === 2)
    expect(received()[1]).to.equal('none-')
  })

  it('are summarised for debug pages without their content', async () => {
    write('a.json', secretDocument('edge/a', pairValues(sites[0] as Pair, root)))
    await start()
    const summaries = (await watcher.asks?.secrets?.()) as object[]
    expect(summaries).to.have.length(1)
    expect(summaries[0]).to.include({ namespace: 'edge', name: 'a', type: 'kubernetes.io/tls', place: 'a.json, document 1' })
    expect(summaries[0]).to.have.keys('namespace', 'name', 'type', 'place', 'serviceAccounts', 'refused', 'pair', 'authorities')
    expect(JSON.stringify(summaries)).not.to.contain('BEGIN')
  })

  it('in a large file, which another thread parses, are the same', async () => {
    write('large.yaml', [document('a', 0), `# ${'x'.repeat(70_000)}`, document('b', 1)].join('\n---\n'))
    await start()
    const { peer, received } = link('xds-writer/0')
    watcher.receive(wanted('a', 'b'), peer)
    await until('the answers', () => received().length === 2)
    expect(received()).to.have.members(['a=0', 'b=1'])
    const [event] = peer.received
    expect(event?.material?.pair?.key.buffer.byteLength, 'memory that is copied with a key').to.equal(event?.material?.pair?.key.byteLength)
  })

  it('go to the service accounts that their annotation names, as it says at the moment', async () => {
    const annotated = (accounts: string | null) => secretDocument('edge/a', pairValues(sites[0] as Pair), undefined, accounts)
    write('a.json', annotated('gateway, spare'))
    await start()
    const { peer } = link('xds-writer/0')
    const accounts = ['gateway', 'spare', 'other']
    watcher.receive({ type: 'SecretsWanted', wanted: accounts.map((account) => ({ reader: { namespace: 'edge', account }, names: ['a'] })) }, peer)
    /** By account whether it was sent the Secret last, and whether it was refused. */
    const has = () =>
      accounts.map((account) => {
        const last = peer.received.findLast(({ type, reader: { account: of } }) => type === 'SecretChanged' && of === account)
        return last?.material ? 'has' : last?.isRefused ? 'refused' : 'none'
      })
    const become = (...wished: string[]) => until(wished.join(), () => has().join() === wished.join())
    await become('has', 'has', 'refused')
    for (const [value, ...wished] of [
      ['other', 'refused', 'refused', 'has'],
      ['gateway', 'has', 'refused', 'refused'],
      [null, 'refused', 'refused', 'refused'],
      ['gateway,spare,other', 'has', 'has', 'has'],
      ['gateway, No Account', 'refused', 'refused', 'refused'],
      ['', 'refused', 'refused', 'refused'],
      ['spare', 'refused', 'has', 'refused'],
    ] as const) {
      write('a.json', annotated(value))
      await become(...wished)
    }
    const before = peer.received.length
    write('a.json', annotated('spare, gateway'))
    await become('has', 'has', 'refused')
    expect(peer.received, 'only the account whose access changed is answered').to.have.length(before + 1)
    const summaries = (await watcher.asks?.secrets?.()) as { serviceAccounts: string[]; refused: string[] }[]
    expect(summaries.map(({ serviceAccounts, refused }) => [serviceAccounts, refused])).to.deep.equal([[['spare', 'gateway'], ['other']]])
  })

  it('without a private key go to all gateways of the namespace unless an annotation names some', async () => {
    const authorities = (name: string, accounts: string | null) => secretDocument(`edge/${name}`, { 'ca.crt': root.chain }, 'Opaque', accounts)
    write('open.json', authorities('open', null))
    write('named.json', authorities('named', 'other'))
    await start()
    const { peer, received } = link('xds-writer/0')
    watcher.receive(wanted('open', 'named'), peer)
    await until('the answers', () => received().length === 2)
    expect(received()).to.have.members(['open=-1', 'named-'])
  })

  describe('with access reviewed by the source', () => {
    const refused: string[] = []
    const answers = (access: SecretAccess) => {
      refused.length = 0
      const [secret] = parseConfigFile('f', document('a', 0), meshNames('mesh.io')).secrets
      const delivery = new SecretDelivery(
        (key) => key !== 'Secret/edge/a',
        access,
        (_, { name }) => refused.push(name),
        new MetricRegistry(),
      )
      delivery.set('Secret/edge/a', secret)
      const peer = new RecordingPeer<SecretEvent>('xds-writer/0')
      delivery.wanted(peer, wanted('a'))
      return { delivery, received: () => peer.received.map(({ name, material }) => `${name}${material ? '' : '-'}`) }
    }

    it('are sent if access is allowed, and reported as missing otherwise', () => {
      expect(answers(() => true).received()).to.deep.equal(['a'])
      expect(refused).to.deep.equal([])
      const { delivery, received } = answers(() => false)
      expect(received()).to.deep.equal(['a-'])
      delivery.answerPending()
      delivery.wanted(new RecordingPeer<SecretEvent>('xds-writer/1'), wanted('a'))
      expect(refused, 'told once').to.deep.equal(['a'])
    })

    it('wait for the review', () => {
      let allowed: boolean | undefined
      const { delivery, received } = answers(() => allowed)
      expect(received()).to.deep.equal([])
      allowed = true
      delivery.answerPending()
      delivery.answerPending()
      expect(received()).to.deep.equal(['a'])
    })
  })
})
