import { expect } from 'chai'
import { authorityConnection, discoveryConnection } from '../../../src/agent/connections.ts'
import { readAgentFeatures } from '../../../src/config/agent-features.ts'

type Environment = Readonly<Record<string, string>>
const discovery = 'meshd.mesh-system.svc:15012'
const features = (environment: Environment) => readAgentFeatures(environment).features
const authority = (environment: Environment) => authorityConnection(features(environment), discovery)
const xds = (environment: Environment, proxyMetadata: Readonly<Record<string, string>> = {}, discoveryAddress = discovery, policy = 'MUTUAL_TLS') =>
  discoveryConnection(features(environment), { discoveryAddress, controlPlaneAuthPolicy: policy, proxyMetadata })
const learned = './var/lib/mesh/data/secrets/root-cert.pem'

describe('connection of the agent to the certificate authority', () => {
  it('verifies the service name that the certificate carries, also through localhost, and uses plaintext on port 15010', () => {
    const address = (CA_ADDR: string) => authority({ CA_ADDR }).address
    expect(address('localhost:15012')).to.deep.include({ host: 'localhost', serverName: 'meshd.mesh-system.svc', isPlain: false })
    expect(address('mesh-citadel.mesh-system:8060').serverName).to.equal('mesh-citadel')
    expect(address('[::1]:15012')).to.deep.include({ host: '::1', serverName: '::1' })
    expect(address('meshd.mesh-system.svc:15010').isPlain).to.equal(true)
  })

  it('verifies the authority with the configured roots, or else with the roots of the certificate provider', () => {
    const roots = (environment: Environment) => authority(environment).credentials.roots
    expect(roots({})).to.deep.equal({ files: ['./var/run/secrets/mesh/root-cert.pem'], isPinned: false, learned })
    expect(roots({ CA_ROOT_CA: 'SYSTEM' })).to.deep.equal({ files: undefined, isPinned: true, learned: undefined })
    expect(roots({ CA_ROOT_CA: '/roots.pem', PROV_CERT: '/prov' })).to.deep.equal({ files: ['/roots.pem'], isPinned: true, learned: undefined })
    for (const provider of ['orchestrator', 'kubernetes'])
      expect(roots({ PILOT_CERT_PROVIDER: provider, PROV_CERT: '/prov' }).files).to.deep.equal([
        './var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
      ])
    expect(roots({ PILOT_CERT_PROVIDER: 'custom' }).files).to.deep.equal(['./etc/certs/root-cert.pem'])
    expect(roots({ PROV_CERT: '/prov' }).files).to.deep.equal(['/prov/root-cert.pem'])
    expect(roots({ PILOT_CERT_PROVIDER: 'toString', MESH_AGENT_STATE_DIR: '/state' })).to.deep.equal({
      files: ['./var/run/secrets/mesh/root-cert.pem'],
      isPinned: false,
      learned: '/state/secrets/root-cert.pem',
    })
    expect(roots({ MESH_AGENT_STATE_DIR: '' })).to.deep.include({ isPinned: false, learned: undefined })
  })

  it('authenticates with the token file of the JWT policy, and with a provisioned certificate where one is set', () => {
    const given = (environment: Environment) => authority(environment).credentials
    expect(given({ JWT_POLICY: 'first-party-jwt' }).tokenFile).to.equal('/var/run/secrets/kubernetes.io/serviceaccount/token')
    for (const policy of ['none', 'toString']) expect(given({ JWT_POLICY: policy }).tokenFile).to.equal(undefined)
    expect(given({ PROV_CERT: '/prov' }).pair).to.deep.equal({ chain: '/prov/cert-chain.pem', key: '/prov/key.pem' })
  })
})

describe('connection of the agent to discovery', () => {
  it('has no client certificate when the token is used in its place', () => {
    const pair = { MESH_META_TLS_CLIENT_CERT_CHAIN: '/c', MESH_META_TLS_CLIENT_KEY: '/k' }
    const givens: Environment[] = [{ PROV_CERT: '/prov' }, { FILE_MOUNTED_CERTS: 'true' }]
    for (const environment of givens) {
      expect(xds(environment, pair).credentials.pair).to.not.equal(undefined)
      expect(xds({ ...environment, CALL_CREDENTIALS: 'true' }, pair).credentials.pair).to.equal(undefined)
    }
  })

  it('uses TLS unless controlPlaneAuthPolicy is NONE or the port is the plaintext port', () => {
    expect(xds({}).address).to.deep.equal({ host: 'meshd.mesh-system.svc', port: 15012, isPlain: false, serverName: 'meshd.mesh-system.svc' })
    expect(xds({}, {}, discovery, 'NONE').address.isPlain).to.equal(true)
    expect(xds({}, {}, 'localhost:15010').address).to.deep.equal({
      host: 'localhost',
      port: 15010,
      isPlain: true,
      serverName: 'meshd.mesh-system.svc',
    })
    expect(() => xds({}, {}, 'nowhere')).to.throw('discovery address: "nowhere"')
  })

  it('verifies discovery with the first root file that exists', () => {
    const roots = (environment: Environment, metadata?: Environment) => xds(environment, metadata).credentials.roots
    const mounted = './etc/certs/root-cert.pem'
    expect(roots({})).to.deep.equal({ files: [mounted, './var/run/secrets/mesh/root-cert.pem'], isPinned: false, learned })
    expect(roots({ XDS_ROOT_CA: 'SYSTEM' })).to.deep.equal({ files: undefined, isPinned: true, learned: undefined })
    expect(roots({ XDS_ROOT_CA: '/roots.pem' })).to.deep.equal({ files: ['/roots.pem'], isPinned: true, learned: undefined })
    expect(roots({ PROV_CERT: '/prov' }).files).to.deep.equal([mounted, '/prov/root-cert.pem'])
    const orchestrator = { PILOT_CERT_PROVIDER: 'orchestrator', PROV_CERT: '/prov' }
    expect(roots(orchestrator).files).to.deep.equal([mounted, './var/run/secrets/kubernetes.io/serviceaccount/ca.crt'])
    const metadata = { MESH_META_TLS_CLIENT_ROOT_CERT: '/root.pem' }
    expect(roots({ FILE_MOUNTED_CERTS: 'true' }, metadata).files).to.deep.equal([mounted, '/root.pem'])
    expect(roots({}, metadata).files).to.deep.equal([mounted, './var/run/secrets/mesh/root-cert.pem'])
  })

  it('authenticates with the certificate files of the metadata only if certificates are mounted, under mesh and alias names', () => {
    const metadata = { MESH_META_TLS_CLIENT_KEY: '/key.pem', ISTIO_META_TLS_CLIENT_CERT_CHAIN: '/chain.pem' }
    expect(xds({ FILE_MOUNTED_CERTS: 'true' }, metadata).credentials).to.deep.include({
      tokenFile: undefined,
      pair: { chain: '/chain.pem', key: '/key.pem' },
    })
    expect(xds({ FILE_MOUNTED_CERTS: 'true' }).credentials).to.deep.include({ tokenFile: undefined, pair: undefined })
    expect(xds({}, metadata).credentials).to.deep.include({ tokenFile: './var/run/secrets/tokens/mesh-token', pair: undefined })
    expect(xds({ PROV_CERT: '/prov' }, metadata).credentials.pair).to.deep.equal({ chain: '/prov/cert-chain.pem', key: '/prov/key.pem' })
  })
})
