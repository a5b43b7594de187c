import { expect } from 'chai'
import { xdsRelayConfig } from '../../../src/agent/relay-settings.ts'
import { readAgentFeatures } from '../../../src/config/agent-features.ts'

const proxy = { discoveryAddress: 'meshd.mesh-system.svc:15012', controlPlaneAuthPolicy: 'MUTUAL_TLS', proxyMetadata: {} }
const settings = (environment: Readonly<Record<string, string>>, changes: Partial<typeof proxy> = {}, names = false) =>
  xdsRelayConfig(readAgentFeatures(environment).features, { ...proxy, ...changes }, environment, names)

describe('settings of the XDS relay', () => {
  it('have defaults that fit an injected sidecar', () => {
    expect(settings({})).to.deep.equal({
      config: {
        socket: './etc/mesh/proxy/XDS',
        allowVolumes: false,
        discovery: {
          address: { host: 'meshd.mesh-system.svc', port: 15012, isPlain: false, serverName: 'meshd.mesh-system.svc' },
          credentials: {
            roots: {
              files: ['./etc/certs/root-cert.pem', './var/run/secrets/mesh/root-cert.pem'],
              isPinned: false,
              learned: './var/lib/mesh/data/secrets/root-cert.pem',
            },
            tokenFile: './var/run/secrets/tokens/mesh-token',
            pair: undefined,
          },
        },
        headers: {},
        exchangesToken: false,
        keeps: undefined,
        asksNameTable: false,
        asksTrust: true,
      },
      warnings: [],
    })
  })

  it('follow the environment and the proxy configuration', () => {
    const { config } = settings(
      { MESH_META_CLUSTER_ID: 'east', XDS_HEADER_X_More: 'a b', 'XDS_HEADER_y-1': '' },
      { controlPlaneAuthPolicy: 'NONE' },
      true,
    )
    expect(config.headers).to.deep.equal({ x_more: 'a b', 'y-1': '', clusterid: 'east' })
    expect([config.discovery.address.isPlain, config.asksNameTable]).to.deep.equal([true, true])
    const keeping = settings({ MESH_AGENT_KEEP_CONFIGURATION: 'true', MESH_AGENT_STATE_DIR: '/state' }).config
    expect(keeping.keeps).to.deep.equal({ file: '/state/configuration/last', everyMs: 10_000, fallbackAfterMs: 3000 })
    const cloud = settings({ XDS_AUTH_PROVIDER: 'gcp', CLOUD_METADATA: 'shop-1|42|east|a' }).config
    expect([cloud.exchangesToken, cloud.headers]).to.deep.equal([true, { 'x-goog-user-project': 'shop-1' }])
    expect(() => settings({}, { discoveryAddress: 'nowhere' })).to.throw('discovery address: "nowhere" is not <host>:<port>')
  })

  it('subscribe to the roots of the mesh where discovery is the authority, called in the same way', () => {
    const asksTrust = (environment: Readonly<Record<string, string>>, changes: Partial<typeof proxy> = {}) =>
      settings(environment, changes).config.asksTrust
    expect(asksTrust({ CA_ADDR: proxy.discoveryAddress })).to.equal(true)
    expect(asksTrust({ CA_ADDR: 'citadel.mesh-system.svc:15012' })).to.equal(false)
    expect(asksTrust({}, { controlPlaneAuthPolicy: 'NONE' })).to.equal(false)
    expect(asksTrust({ FILE_MOUNTED_CERTS: 'true' })).to.equal(false)
  })

  it('leave out headers that cannot be sent, with a warning for each', () => {
    const bad = {
      XDS_HEADER_: 'x',
      'XDS_HEADER_a b': 'x',
      'XDS_HEADER_:path': 'x',
      XDS_HEADER_TE: 'x',
      XDS_HEADER_Authorization: 'x',
      'XDS_HEADER_grpc-timeout': 'x',
      'XDS_HEADER_some-bin': 'x',
      XDS_HEADER_line: 'a\r\nb',
      XDS_HEADER_long: 'x'.repeat(10_000),
      XDS_HEADER___proto__: 'fine',
    }
    const { config, warnings } = settings(bad)
    expect(Object.entries(config.headers)).to.deep.equal([['__proto__', 'fine']])
    expect(warnings).to.have.length(9)
    for (const warning of warnings) expect(warning).to.match(/^environment variable XDS_HEADER_\S* ?\S*: .*; it is not sent$/)
  })
})
