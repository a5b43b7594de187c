/** Distrust of a root through the real command: by command and by file, at once, with those named who are cut off. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { fingerprintOf } from '../../src/identity/pem.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { rootOf, signedBy } from '../harness/authorities.ts'
import { OwnAuthority } from '../harness/own-authority.ts'
import type { Service } from '../harness/service.ts'
import { keys } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const identity = 'spiffe://cluster.local/ns/shop/sa/cart'

describe('a root that is distrusted', function () {
  // Each start of the command and each command takes seconds on a busy machine.
  this.timeout(400_000)
  let own: OwnAuthority
  let service: Service

  beforeEach(async () => {
    own = await OwnAuthority.make(2)
    service = own.service
    service.env.ROOT_CA_DIR = join(service.dir, '.plugged')
    await own.start()
  })
  afterEach(() => own.dispose())

  const ca = (...args: string[]) => own.ca(...args)
  const chain = () => own.certificate()
  const uses = async () => Object.fromEntries((await own.page()).roots.map((root) => [root.id, root.uses.join()]))
  const file = (name: string, content: string) => {
    writeFileSync(join(service.dir, name), content)
    return join(service.dir, name)
  }
  /** Connects a proxy with a certificate of the authority. */
  const connect = ([...certificates]: readonly string[], address: string) => {
    const key = Buffer.from(keys.p256.export({ type: 'pkcs8', format: 'pem' }))
    const cert = Buffer.from(certificates.slice(0, -1).join(''))
    const tls = credentials.createSsl(Buffer.from(own.roots), key, cert, { checkServerIdentity: () => undefined })
    const client = own.closing(new XdsClient(own.port, sidecarNode(address, 'cart', 'shop'), false, tls).connect())
    client.watch(clusterType, [])
    return client
  }
  const connected = async (node: string) => (await ca('ledger', '-o', 'json')).stdout.includes(node)
  /** Plugs an authority in, whose files hold further roots. */
  const plug = async (name: string, ...others: string[]) => {
    const { record, key } = rootOf(name)
    const root = file('.roots', [record.root, ...others].join(''))
    const given = ['--cert', file('.cert', record.certificate), '--key', file('.key', key.export({ type: 'pkcs8', format: 'pem' }) as string)]
    expect((await ca('import', '--replace', ...given, '--root', root)).stderr).to.equal('')
    await until(
      'it to be in force',
      async () => (await own.page()).roots.find(({ uses }) => uses.includes('signs workload certificates'))?.id === record.id,
    )
    return record
  }

  it('by command, leaves responses and trust of all writers at once, with those named who are cut off; trusted again by command', async () => {
    const [first] = (await own.page()).roots
    const root = first?.id ?? ''
    const held = await chain()
    expect((await ca('distrust', root.slice(0, 16))).stderr).to.match(/^Error: root [0-9a-f]{16} signs workload certificates: take the rotation to/)
    for (let stage = 0; stage < 3; stage++) await ca('rotate', '--force')
    const proxy = connect(held, '10.0.0.7')
    await until('the proxy in the ledger', () => connected(proxy.node.id))
    expect(await uses()).to.have.property(root, 'sent to workloads,accepted from clients')

    const dry = await ca('distrust', root.slice(0, 16), '--dry-run')
    expect(dry.stderr).to.equal('')
    expect(dry.stdout).to.match(/^Root [0-9a-f]{16} \(O=cluster.local\) would neither be sent to workloads nor accepted from clients any more.\n/)
    expect(dry.stdout).to.include('which would be cut off until they get others: 1\n').and.include(`${identity}  127.0.0.1  ${proxy.node.id}`)
    expect(await uses(), 'nothing has changed').to.have.property(root, 'sent to workloads,accepted from clients')
    expect((await ca('distrust', 'ffffffff')).stderr).to.match(/^Error: no root begins with ffffffff; there are: /)
    expect((await ca('distrust', root.slice(0, 4))).stderr).to.include('at least 8 digits of its fingerprint are needed')
    expect((await ca('distrust')).stderr).to.include('Missing 1 required arg:\nroot ')

    const { stdout } = await ca('distrust', root.slice(0, 16))
    // The connection ends within seconds, although the wall clock is an hour behind now.
    own.shift(-3_600_000)
    expect(stdout).to.include('is neither sent to workloads').and.include(proxy.node.id)
    await service.output.says(
      `root ${root.slice(0, 16)} (O=cluster.local) is not sent to workloads and not accepted from clients any more; cut off: 1 identity`,
    )
    await service.output.says(`cut off: ${identity} at 127.0.0.1; connected: ${proxy.node.id}`)
    await until('its connection to end, and its certificate to be refused', async () => !(await connected(proxy.node.id)))
    own.shift(0)
    expect(await uses()).to.have.property(root, 'distrusted')
    expect(await chain().then((answer) => answer.at(-1))).not.to.include(first?.certificate.trim())
    expect((await ca('distrust', root.slice(0, 16))).stderr).to.equal(`Error: root ${root.slice(0, 16)} is distrusted already\n`)

    await service.stop('SIGKILL')
    await own.start()
    expect(await uses(), 'also after a restart').to.have.property(root, 'distrusted')
    expect((await ca('trust', root.slice(0, 16))).stdout).to.match(
      /^Root [0-9a-f]{16} \(O=cluster.local\) is trusted again where it is configured.\n/,
    )
    expect(await uses()).to.have.property(root, 'sent to workloads,accepted from clients')
    expect((await ca('trust', root.slice(0, 16))).stderr).to.match(
      /^Error: no root that was distrusted by command begins with [0-9a-f]{16}; there are: none\n$/,
    )
    await until('the proxy to be accepted again', () => connected(connect(held, '10.0.0.7').node.id))
    await service.stop()
    const offline = await ca('distrust', root.slice(0, 16))
    expect(offline.stdout, offline.stderr).to.include('is neither sent to workloads')
    expect((await ca('trust', root.slice(0, 16))).stdout).to.include('is trusted again')
  })

  it('by file, is dropped at once where another root that stood beside it stays; one that is replaced stays for a time', async () => {
    const first = await plug('first')
    const held = await chain()
    const second = await plug('second', first.root)
    const proxy = connect(held, '10.0.0.7')
    await until('the proxy in the ledger', () => connected(proxy.node.id))
    await plug('second')
    await service.output.says(
      `root ${first.id.slice(0, 16)} (O=first) is not sent to workloads and not accepted from clients any more; cut off: 1 identity`,
    )
    await service.output.says(`cut off: ${identity} at 127.0.0.1; connected: ${proxy.node.id}`)
    expect(await uses()).not.to.have.property(first.id)
    await until('its connection to end', async () => !(await connected(proxy.node.id)))
    expect((await chain()).at(-1)).not.to.include(first.root.trim())
    await plug('second', first.root)
    await until('it to be back with the file', async () => (await uses())[first.id] === 'sent to workloads,accepted from clients')
    await plug('third')
    expect(await uses()).to.include({
      [first.id]: 'sent to workloads,accepted from clients,replaced',
      [second.id]: 'sent to workloads,accepted from clients,replaced',
    })
    await ca('distrust', second.id)
    expect(await uses()).to.include({ [first.id]: 'sent to workloads,accepted from clients,replaced', [second.id]: 'replaced,distrusted' })
    const refused = await ca(
      'import',
      '--replace',
      '--cert',
      file('.cert', second.certificate),
      '--key',
      file('.key', rootOf('second').key.export({ type: 'pkcs8', format: 'pem' }) as string),
    )
    expect(refused.stderr).to.equal('')
    await service.output.says(`root ${second.id.slice(0, 16)} is distrusted, and nothing is signed with it`)
    expect((await uses())[rootOf('third').record.id]).to.include('signs workload certificates')
  })

  it('by command, goes with the others of its key, and stays while one of them signs', async () => {
    const { record: first } = rootOf('first')
    const again = signedBy(rootOf('first'), rootOf('first'))
    await plug('first', again)
    const refused = await ca('distrust', fingerprintOf(again))
    expect(refused.stderr).to.include(`root ${fingerprintOf(again).slice(0, 16)} has the same key as another: root ${first.id.slice(0, 16)} signs`)
    await plug('second', first.root, again)
    expect(await uses()).to.include.keys(first.id, fingerprintOf(again))
    expect((await ca('distrust', first.id)).stderr).to.equal('')
    const left = await uses()
    expect(left).to.have.property(first.id, 'distrusted')
    expect(left).to.not.have.property(fingerprintOf(again))
    expect((await chain()).at(-1)).to.not.include(again.trim())
  })
})
