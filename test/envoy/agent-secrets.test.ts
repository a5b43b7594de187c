/** The real agent serves secrets to a real Envoy over SDS: from files, and from the authority, with persistence across a restart. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { agentSecret, envoyBinaries } from '../harness/envoy.ts'
import { revocationList } from '../harness/revocations.ts'
import { SecretTraces } from '../harness/secret-traces.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'

const type = (name: string) => `type.googleapis.com/${name}`

/** Returns subject, alternative names and serial number of the certificate that a local port presents; empty if there is none. */
function presented(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      const certificate = socket.getPeerX509Certificate()
      resolve(`${certificate?.subject ?? ''}${certificate?.subjectAltName ?? ''} ${certificate?.serialNumber}`)
      socket.destroy()
    })
    socket.on('error', () => resolve(''))
  })
}

/** Whether a local port that echoes serves a client with a certificate. */
function isServed(port: number, client: { cert: string; key: string }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...client }, () => socket.write('hello'))
    socket.on('data', () => {
      resolve(true)
      socket.destroy()
    })
    socket.on('error', () => undefined).on('close', () => resolve(false))
  })
}

/** A listener that serves TLS with a secret, and verifies clients with the secret `roots` if it is given. */
const listener = (port: number, secret: string, roots?: string) => ({
  name: `${secret.slice(0, 20)}-${port}`,
  address: { socket_address: { address: '127.0.0.1', port_value: port } },
  filter_chains: [
    {
      filters: [
        // A filter that answers at once would close the connection before the handshake.
        { name: 'echo', typed_config: { '@type': type('envoy.extensions.filters.network.echo.v3.Echo') } },
      ],
      transport_socket: {
        name: 'tls',
        typed_config: {
          '@type': type('envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext'),
          require_client_certificate: roots !== undefined,
          common_tls_context: {
            tls_certificate_sds_secret_configs: [agentSecret(secret)],
            ...(roots === undefined ? {} : { validation_context_sds_secret_config: agentSecret(roots) }),
          },
        },
      },
    },
  ],
})

const http2 = {
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
    '@type': type('envoy.extensions.upstreams.http.v3.HttpProtocolOptions'),
    explicit_http_config: { http2_protocol_options: {} },
  },
}

const [binary] = envoyBinaries().slice(-1)
describe(`secrets of the agent, Envoy ${binary?.version}`, () => {
  let service: Service
  let agent: Agent
  let made: ServingCertificates
  const ports = { secure: 0, files: 0, issued: 0, revoking: 0 }
  const authority = () => ({ chain: made.text('root.pem'), key: made.text('root-key.pem') })
  const write = (name: string) => {
    agent.write('certs/key.pem', made.text(`${name}-key.pem`))
    agent.write('certs/chain.pem', made.text(`${name}.pem`))
  }

  before(async () => {
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
    service = new Service({ flags: ['--secureGRPCAddr', `127.0.0.1:${ports.secure}`] })
    await service.start()
    agent = new Agent({
      binary: binary?.path as string,
      env: {
        CREDENTIAL_FETCHER_TYPE: 'meshd',
        MESHD_ADMIN_SOCKET: service.env.MESHD_ADMIN_SOCKET as string,
        POD_NAMESPACE: 'shop',
        SERVICE_ACCOUNT: 'web',
        OUTPUT_CERTS: './out',
        TERMINATION_DRAIN_DURATION_SECONDS: '0',
      },
      proxyConfig: { discoveryAddress: `127.0.0.1:${ports.secure}`, customConfigFile: 'bootstrap.json' },
    })
    agent.adminPort = await freePort()
    made = new ServingCertificates(agent.dir)
    made.authority('root')
    for (const name of ['caller', 'other']) made.issue(name, 'root')
    writeFileSync(made.file('crl.pem'), revocationList(authority(), []))
    for (const name of ['one', 'two']) made.issue(name, 'root', 1, `subjectAltName=DNS:${name}\n`)
    write('one')
    const files = `file-cert:${agent.dir}/certs/chain.pem~${agent.dir}/certs/key.pem`
    const bootstrap = {
      node: { id: 'sidecar~127.0.0.1~web.shop~shop.svc.cluster.local', cluster: 'web' },
      admin: { address: { socket_address: { address: '127.0.0.1', port_value: agent.adminPort } } },
      static_resources: {
        listeners: [
          listener(ports.files, files),
          listener(ports.issued, 'default'),
          listener(ports.revoking, files, `file-root:${made.file('root.pem')}~${made.file('crl.pem')}`),
        ],
        clusters: [
          {
            name: 'sds-grpc',
            type: 'STATIC',
            typed_extension_protocol_options: http2,
            load_assignment: {
              cluster_name: 'sds-grpc',
              endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path: './etc/mesh/proxy/SDS' } } } }] }],
            },
          },
        ],
      },
    }
    agent.write('bootstrap.json', JSON.stringify(bootstrap))
    await agent.start()
  })
  after(async () => {
    await agent.dispose()
    await service.dispose()
  })

  it('from files are served, and replaced when the files change', async () => {
    await until('the first', async () => (await presented(ports.files)).includes('DNS:one'))
    write('two')
    await until('the second', async () => (await presented(ports.files)).includes('DNS:two'))
  })

  it('from files with revocation lists refuse a client as soon as its certificate is in the list', async () => {
    const client = (name: string) => ({ cert: made.text(`${name}.pem`), key: made.text(`${name}-key.pem`) })
    await until('a client to be served', () => isServed(ports.revoking, client('caller')))
    made.replace('crl.pem', revocationList(authority(), [made.text('caller.pem')]))
    await until('the client to be refused', async () => !(await isServed(ports.revoking, client('caller'))))
    expect(await isServed(ports.revoking, client('other'))).to.equal(true)
    expect(await isServed(ports.revoking, client('caller'))).to.equal(false)
  })

  it('from the authority are served unchanged after a restart of the agent while the authority is down', async () => {
    await until('a certificate', async () => (await presented(ports.issued)).includes('spiffe://cluster.local/ns/shop/sa/web'))
    const before = await presented(ports.issued)
    await service.stop()
    expect(await agent.stop()).to.equal(0)
    await agent.start()
    await until('the same certificate', async () => (await presented(ports.issued)) === before)
    expect(agent.output).to.match(/loaded from \.\/var\/lib\/mesh\/data\/secrets/)
    await service.start()
    await until('a new token', () => agent.output.split('token fetched').length === 3)
  })

  it('appear neither in the log nor on metrics and admin pages, and are stored in their file only', async () => {
    const traces = new SecretTraces()
    const read = (file: string) => readFileSync(join(agent.dir, file), 'utf8')
    for (const file of ['certs/key.pem', 'out/key.pem']) traces.addKey(file, read(file))
    traces.addToken('token', read('var/run/secrets/tokens/mesh-token').trim())
    const page = await fetch(`http://127.0.0.1:${agent.statusPort}/stats/prometheus`)
    expect(traces.in(agent.output + (await page.text()) + (await agent.admin('/config_dump')))).to.deep.equal([])
    expect(traces.in(read('var/lib/mesh/data/secrets/secrets.json')), 'where it is kept').to.deep.equal(['out/key.pem'])
  })
})
