import { constants } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { type ConnectionOptions, connect as tlsConnect } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { endpointType } from '../../src/xds/type-urls.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { runCommand, Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates, servedName } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

/** Returns a client of the secured port. `identity` names its certificate. */
function secureClient(made: ServingCertificates, port: number, name: string, identity?: string): XdsClient {
  const [key, cert] =
    identity === undefined ? [null, null] : [Buffer.from(made.text(`${identity}-key.pem`)), Buffer.from(made.text(`${identity}.pem`))]
  const channel = credentials.createSsl(Buffer.from(made.text('roots.pem')), key, cert, { checkServerIdentity: () => undefined })
  return new XdsClient(port, sidecarNode('10.7.0.9', name, 'ns'), name.length % 2 === 0, channel).connect()
}

/** Creates two authorities and certificates signed by them. */
function make(made: ServingCertificates): void {
  for (const name of ['ca', 'other']) made.authority(name)
  for (const name of ['first', 'second']) made.issue(name, 'ca')
  made.issue('third', 'other')
  made.workload('client', 'ca', ['spiffe://cluster.local/ns/ns/sa/default'])
  made.workload('stranger', 'other', ['spiffe://cluster.local/ns/ns/sa/default'])
  made.workload('nobody', 'ca', [])
  made.intermediate('between', 'ca')
  made.intermediate('below', 'between')
  made.workload('deep', 'below', ['spiffe://cluster.local/ns/ns/sa/default'])
  writeFileSync(made.file('deep.pem'), ['deep', 'below', 'between'].map((name) => made.text(`${name}.pem`)).join(''))
  writeFileSync(made.file('roots.pem'), made.text('ca.pem') + made.text('other.pem'))
  writeFileSync(made.file('clients.pem'), made.text('ca.pem'))
  made.mount(made.pair('first'))
}

describe('the secured gRPC port', () => {
  const service = new Service({ env: { XDS_AUTH: 'false' } })
  const made = new ServingCertificates(service.dir)
  const clients: XdsClient[] = []
  let port = 0
  const connected = async (name: string, identity?: string) => {
    const client = secureClient(made, port, name, identity)
    clients.push(client)
    await until(`${name} to be served or refused`, () => client.closed !== undefined || client.resources.get(endpointType)?.size === 1)
    return client.closed === undefined
  }
  /** Returns the certificates of enough new connections to reach both writers. */
  const served = async () => [...new Set(await Promise.all(Array.from({ length: 16 }, () => servedName(port))))]
  let changes = 1
  const allStreamsHaveChanges = async () => {
    const address = `10.0.0.${++changes}`
    service.write('a.yaml', serviceEntry('a', address))
    const has = (client: XdsClient) => client.resources.get(endpointType)?.get('outbound|80||a.ns.svc.cluster.local')?.includes(address) ?? false
    const open = clients.filter(({ node }) => !node.id.includes('refused'))
    for (const client of open) await until(`${client.node.id} to have ${address}`, () => has(client))
    expect(open.map(({ closed }) => closed)).to.deep.equal(open.map(() => undefined))
  }
  const reloads = async (outcome: string) =>
    Number(new RegExp(`^pilot_certificate_reloads_total{outcome="${outcome}"} (\\d+)$`, 'm').exec(await service.metrics())?.[1])

  before(async () => {
    make(made)
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    port = await freePort()
    const files = { tlsCertFile: 'tls.crt', tlsKeyFile: 'tls.key', caCertFile: 'clients.pem' }
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${port}`)
    for (const [flag, name] of Object.entries(files)) service.flags.push(`--${flag}`, made.file(name))
    await service.start()
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  it('serves configuration over TLS in the writers, and refuses client certificates of an unknown authority', async () => {
    await service.output.says(`gRPC over TLS 127.0.0.1:${port}`)
    await service.output.says(`127.0.0.1:${port} serves TLS without authentication`)
    for (let index = 0; index < 8; index++) expect(await connected(`nobody-${index}`)).to.equal(true)
    expect(await connected('known', 'client')).to.equal(true)
    expect(await connected('far', 'deep'), 'over two intermediates').to.equal(true)
    for (const identity of ['stranger', 'nobody']) expect(await connected('refused', identity)).to.equal(false)
    for (const reason of [
      /client certificate refused: the certificate has 0 URIs among its names instead of one/,
      /client certificate refused: [A-Z_]+/,
    ])
      await service.output.says(reason)
    const plain = new XdsClient(port, sidecarNode('10.7.0.9', 'refused', 'ns'), false).connect()
    await until('plain text to be refused', () => plain.closed !== undefined)
    plain.close()
    expect(await served()).to.deep.equal(['first'])
  })

  it('serves a replaced certificate to new connections in every writer, and keeps open streams', async () => {
    made.mount(made.pair('second'))
    await until('both writers to serve it', async () => String(await served()) === 'second')
    await allStreamsHaveChanges()
    expect(await reloads('used')).to.equal(1)
    await service.output.says(/tls.crt: new connections get the certificate with the serial number [0-9A-F]+, valid until/)
    expect(await connected('newcomer')).to.equal(true)
  })

  it('keeps the certificate in force while only one file of the pair is replaced, logged and counted once', async () => {
    const halves: [string, string, string][] = [
      ['tls.crt', 'tls.key', 'third'],
      ['tls.key', 'tls.crt', 'second'],
    ]
    for (const [index, [first, other, name]] of halves.entries()) {
      const [inForce] = await served()
      made.replace(first, made.pair(name)[first as 'tls.crt'])
      await until('it to be counted', async () => (await reloads('refused')) === index + 1)
      expect(await served(), `only ${first} replaced`).to.deep.equal([inForce])
      await allStreamsHaveChanges()
      expect(await served(), `only ${first} replaced`).to.deep.equal([inForce])
      expect([await reloads('refused'), await reloads('used')]).to.deep.equal([index + 1, index + 1])
      await service.output.says(/is not the key of the certificate in .*; the certificate that is in force stays/, index + 1, index + 1)
      made.replace(other, made.pair(name)[other as 'tls.crt'])
      await until('both writers to serve the whole pair', async () => String(await served()) === name)
      await allStreamsHaveChanges()
    }
  })

  it('reloads client CAs on SIGHUP, and ends streams of clients that are no longer trusted', async () => {
    writeFileSync(made.file('clients.pem'), made.text('other.pem'))
    process.kill(service.pid, 'SIGHUP')
    await until('the change to be counted', async () => (await reloads('used')) === 4)
    for (let index = 0; index < 4; index++) {
      expect(await connected(`refused-${index}`, 'client')).to.equal(false)
      expect(await connected(`taken-${index}`, 'stranger')).to.equal(true)
    }
    for (const name of ['known', 'far']) {
      const client = clients.find(({ node }) => node.id.includes(name)) as XdsClient
      await until('the stream to end whose client is not trusted any more', () => client.closed !== undefined)
      expect(client.closed).to.deep.equal({ code: 14, details: 'the client certificate is no longer trusted' })
      clients.splice(clients.indexOf(client), 1)
    }
    await allStreamsHaveChanges()
  })

  it('resumes no TLS session, so that each connection is verified against the present CAs', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
      for (const secureOptions of [0, constants.SSL_OP_NO_TICKET])
        for (let time = 0; time < 4; time++) {
          const options = {
            ...tlsOptions(port),
            minVersion: version,
            maxVersion: version,
            secureOptions,
            key: made.text('stranger-key.pem'),
            cert: made.text('stranger.pem'),
          }
          const { session } = await handshake(options)
          expect((await handshake({ ...options, session })).resumed, `${version}, ${secureOptions}`).to.equal(false)
        }
  })

  it('reports which certificate file is wrong, and why', async () => {
    writeFileSync(made.file('garbage.pem'), 'garbage')
    const [cert, key] = ['--tlsCertFile', '--tlsKeyFile']
    for (const [flags, words] of [
      [[cert, made.file('first.pem')], 'Error: --tlsKeyFile: needed with the other of the two'],
      [[cert, made.file('first.pem'), key, made.file('client-key.pem')], 'is not the key of the certificate in'],
      [[cert, made.file('garbage.pem'), key, made.file('first-key.pem')], `--tlsCertFile ${made.file('garbage.pem')}: `],
      [[cert, made.file('none.pem'), key, made.file('first-key.pem')], 'ENOENT'],
      [['--caCertFile', made.file('ca.pem')], '--caCertFile: needs --tlsCertFile and --tlsKeyFile'],
    ] as const) {
      const { code, stderr } = await runCommand(['discovery', '--registries', 'Mock', '--grpcAddr', '127.0.0.1:0', ...flags])
      expect(code).not.to.equal(0)
      expect(stderr).to.contain(words)
    }
  })
})

describe('the certificate of the secured port', () => {
  const discovery = new LocalDiscovery({})
  const made = new ServingCertificates(discovery.dir)
  after(() => discovery.dispose())

  it('is that of the files after a writer or the watcher restarted', async () => {
    make(made)
    discovery.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    const port = await freePort()
    const files = { tlsCertFile: made.file('tls.crt'), tlsKeyFile: made.file('tls.key') }
    await discovery.start({ writers: 1, secureGRPCAddr: `127.0.0.1:${port}`, ...files })
    await discovery.service.ready()
    made.mount(made.pair('second'))
    await until('the second to be served', async () => (await servedName(port)) === 'second')
    for (const name of ['xds-writer/0', 'certificate-watcher', 'xds-writer/0']) {
      discovery.service.supervisor.kill(name)
      await until('the restart', () => discovery.state(name).state === 'running')
      await until(`the second to be served after the end of ${name}`, async () => (await servedName(port)) === 'second')
    }
    // Actors that restart while only one of two files is replaced.
    made.replace('tls.key', made.text('third-key.pem'))
    await until('the half to be refused', () => discovery.log().includes('is not the key of the certificate'))
    for (const name of ['xds-writer/0', 'certificate-watcher']) {
      discovery.service.supervisor.kill(name)
      await until('the restart', () => discovery.state(name).state === 'running')
      await until(`the second to be served after the end of ${name}`, async () => (await servedName(port)) === 'second')
    }
    made.replace('tls.crt', made.text('third.pem'))
    await until('the third to be served', async () => (await servedName(port)) === 'third')
  })
})

const tlsOptions = (port: number): ConnectionOptions => ({ host: '127.0.0.1', port, rejectUnauthorized: false, ALPNProtocols: ['h2'] })

/** Connects and reads until the server has sent its session tickets. */
function handshake(options: ConnectionOptions): Promise<{ session: Buffer | undefined; resumed: boolean }> {
  return new Promise((resolve, reject) => {
    let session: Buffer | undefined
    const socket = tlsConnect(options)
    socket.on('session', (ticket) => (session = ticket))
    // HTTP/2 settings follow the tickets of TLS 1.3.
    socket.once('data', () => {
      resolve({ session: session ?? socket.getSession(), resumed: socket.isSessionReused() })
      socket.destroy()
    })
    socket.on('error', reject)
  })
}
