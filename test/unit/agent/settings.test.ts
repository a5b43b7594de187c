import { expect } from 'chai'
import { secretAgentConfig } from '../../../src/agent/settings.ts'
import { agentVariables, readAgentFeatures } from '../../../src/config/agent-features.ts'

const discovery = 'meshd.mesh-system.svc:15012'
const settings = (environment: Readonly<Record<string, string | undefined>>, address = discovery) =>
  secretAgentConfig(readAgentFeatures(environment).features, address)

describe("settings of the agent's secrets", () => {
  it('have defaults that fit an injected sidecar', () => {
    expect(settings({ POD_NAMESPACE: 'shop', SERVICE_ACCOUNT: 'web' })).to.deep.equal({
      socket: './etc/mesh/proxy/SDS',
      allowVolumes: false,
      certificate: {
        authority: {
          address: { host: 'meshd.mesh-system.svc', port: 15012, isPlain: false, serverName: 'meshd.mesh-system.svc' },
          credentials: {
            roots: { files: ['./var/run/secrets/mesh/root-cert.pem'], isPinned: false, learned: './var/lib/mesh/data/secrets/root-cert.pem' },
            tokenFile: './var/run/secrets/tokens/mesh-token',
            pair: undefined,
          },
        },
        cloud: undefined,
        clusterId: '',
        identity: 'spiffe://cluster.local/ns/shop/sa/web',
        key: { type: 'rsa', format: 'traditional' },
        ttlSeconds: 86_400,
        graceRatio: 0.5,
        keptIn: './var/lib/mesh/data/secrets',
      },
      fetcher: undefined,
      notices: [],
      mounted: './etc/certs',
      output: undefined,
      fileQuietMs: 100,
    })
  })

  it('follow the environment', () => {
    const { certificate, ...rest } = settings({
      CA_ADDR: 'ca.example.com:443',
      CA_ROOT_CA: '/etc/roots.pem',
      ECC_SIGNATURE_ALGORITHM: 'ECDSA',
      PKCS8_KEY: 'true',
      POD_NAMESPACE: 'shop',
      SERVICE_ACCOUNT: 'web',
      TRUST_DOMAIN: 'example.com',
      SECRET_TTL: '90s',
      SECRET_GRACE_PERIOD_RATIO: '0.2',
      JWT_POLICY: 'first-party-jwt',
      MESH_META_CLUSTER_ID: 'east',
      MESH_AGENT_STATE_DIR: '',
      OUTPUT_CERTS: '/out',
      FILE_DEBOUNCE_DURATION: '2s',
    })
    expect(certificate).to.deep.equal({
      authority: {
        address: { host: 'ca.example.com', port: 443, isPlain: false, serverName: 'ca.example.com' },
        credentials: {
          roots: { files: ['/etc/roots.pem'], isPinned: true, learned: undefined },
          tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
          pair: undefined,
        },
      },
      cloud: undefined,
      clusterId: 'east',
      identity: 'spiffe://example.com/ns/shop/sa/web',
      key: { type: 'ec', format: 'pkcs8' },
      ttlSeconds: 90,
      graceRatio: 0.2,
      keptIn: undefined,
    })
    expect(rest).to.deep.include({ output: { directory: '/out', isForAll: false, passwordFile: undefined }, fileQuietMs: 2000 })
  })

  it('write files for all users under an orchestrator, and do not read mounted certificates from the output directory', () => {
    const { output, mounted } = settings({ OUTPUT_CERTS: './etc/certs/', ORCHESTRATOR_SERVICE_HOST: '10.0.0.1' })
    expect([output, mounted]).to.deep.equal([{ directory: './etc/certs/', isForAll: true, passwordFile: undefined }, undefined])
  })

  it('use no authority if certificates are mounted, and reject provisioned certificates beside mounted ones', () => {
    expect(settings({ FILE_MOUNTED_CERTS: 'true', CA_ADDR: 'nowhere' }).certificate).to.equal(undefined)
    expect(() => settings({ FILE_MOUNTED_CERTS: 'true', PROV_CERT: '/prov' })).to.throw('PROV_CERT and FILE_MOUNTED_CERTS contradict each other')
  })

  it('name the fetcher of the token and the file that the token is written to', () => {
    const fetcher = (environment: Record<string, string>) => settings({ POD_NAMESPACE: 'shop', SERVICE_ACCOUNT: 'web', ...environment }).fetcher
    const tokenFile = './var/run/secrets/tokens/mesh-token'
    for (const type of ['CloudComputeEngine', 'GoogleComputeEngine'])
      expect(fetcher({ CREDENTIAL_FETCHER_TYPE: type, TRUST_DOMAIN: 'td' })).to.deep.equal({
        from: 'cloud',
        metadataHost: '169.254.169.254',
        audience: 'td',
        tokenFile,
      })
    expect(fetcher({ CREDENTIAL_FETCHER_TYPE: 'meshd', MESHD_ADMIN_SOCKET: '/run/admin.sock' })).to.deep.equal({
      from: 'local',
      socket: '/run/admin.sock',
      namespace: 'shop',
      account: 'web',
      tokenFile,
      rootsFile: './var/run/secrets/mesh/root-cert.pem',
    })
    expect(fetcher({ CREDENTIAL_FETCHER_TYPE: 'meshd', FILE_MOUNTED_CERTS: 'true' })).to.equal(undefined)
    expect(() => fetcher({ CREDENTIAL_FETCHER_TYPE: 'meshd', SERVICE_ACCOUNT: '' })).to.throw('CREDENTIAL_FETCHER_TYPE: meshd needs POD_NAMESPACE')
    expect(() => fetcher({ CREDENTIAL_FETCHER_TYPE: 'meshd', JWT_POLICY: 'none' })).to.throw('needs JWT_POLICY to name a token')
  })

  it('give a notice for variables without effect', () => {
    const odd = {
      CA_PROVIDER: 'other',
      CREDENTIAL_FETCHER_TYPE: 'mock',
      CREDENTIAL_IDENTITY_PROVIDER: 'x',
      JWT_POLICY: 'none',
      PILOT_CERT_PROVIDER: 'vault',
      XDS_AUTH_PROVIDER: 'aws',
    }
    expect(settings(odd).notices.map((line) => line.split(':')[0])).to.deep.equal(Object.keys(odd))
  })

  it('call the certificate service of the cloud, with an exchanged token and verified by the roots of the system, when it is the provider', () => {
    const metadata = { CLOUD_METADATA: 'shop|42|east|us-east1-b' }
    const cluster = 'https://container.googleapis.com/v1/projects/shop/locations/us-east1-b/clusters/east'
    const cloud = {
      federatedUrl: 'https://securetoken.googleapis.com/v1/identitybindingtoken',
      audience: `identitynamespace:cluster.local:${cluster}`,
      zone: 'us-east1-b',
    }
    const given = { ...metadata, PROV_CERT: '/prov' }
    for (const environment of [{ CA_PROVIDER: 'CloudCA' }, { CA_PROVIDER: 'GoogleCA' }, { CA_ADDR: 'meshca.googleapis.com:443' }]) {
      const { certificate, notices } = settings({ ...given, ...environment })
      expect(certificate).to.deep.include({ cloud })
      expect(certificate?.authority).to.deep.equal({
        address: { host: 'meshca.googleapis.com', port: 443, isPlain: false, serverName: 'meshca.googleapis.com' },
        credentials: {
          roots: { files: undefined, isPinned: true, learned: undefined },
          tokenFile: './var/run/secrets/tokens/mesh-token',
          pair: undefined,
        },
      })
      expect(notices).to.deep.equal([])
    }
    const other = { CA_PROVIDER: 'CloudCA', CA_ADDR: 'ca.test:1', CA_ROOT_CA: '/roots.pem', CLOUD_CLUSTER_URL: 'https://c', TRUST_DOMAIN: 'td' }
    expect(settings(other).certificate).to.deep.include({
      cloud: { ...cloud, audience: 'identitynamespace:td:https://c', zone: undefined },
    })
    expect(settings(other).certificate?.authority.credentials.roots.files).to.deep.equal(['/roots.pem'])
    expect(() => settings({ CA_PROVIDER: 'CloudCA' })).to.throw('the certificate service of a cloud needs to know the cluster')
    expect(() => settings({ CA_PROVIDER: 'CloudCA', JWT_POLICY: 'none', ...metadata })).to.throw('needs JWT_POLICY to name a token')
  })

  it('request no identity if namespace or service account is unknown', () => {
    for (const environment of [{}, { POD_NAMESPACE: 'shop' }, { SERVICE_ACCOUNT: 'web' }])
      expect(settings(environment).certificate?.identity).to.equal(undefined)
  })

  it('are rejected with the name of the variable if a value is invalid', () => {
    const refused: [Record<string, string>, string][] = [
      [{ ECC_SIGNATURE_ALGORITHM: 'ED25519' }, 'ECC_SIGNATURE_ALGORITHM: "ED25519"'],
      [{ CA_ADDR: 'nowhere' }, 'CA_ADDR: "nowhere"'],
      [{ CA_ADDR: 'host:0' }, 'CA_ADDR: "host:0"'],
      [{ CA_ADDR: 'host:70000' }, 'CA_ADDR'],
      [{ POD_NAMESPACE: 'Shop', SERVICE_ACCOUNT: 'web' }, 'POD_NAMESPACE'],
    ]
    for (const [environment, reason] of refused) expect(() => settings(environment), reason).to.throw(reason)
    expect(() => settings({}, 'nowhere')).to.throw('discovery address')
  })
})

describe('environment variables of the agent', () => {
  it('give a warning if they cannot be parsed, and then have their default', () => {
    const { features, warnings } = readAgentFeatures({ PKCS8_KEY: '', SECRET_TTL: 'soon', SECRET_GRACE_PERIOD_RATIO: '2', POD_NAMESPACE: '' })
    expect([features.PKCS8_KEY, features.SECRET_TTL, features.SECRET_GRACE_PERIOD_RATIO]).to.deep.equal([false, 86_400_000, 0.5])
    expect(warnings.map((line) => line.split(':')[0])).to.deep.equal([
      'environment variable PKCS8_KEY',
      'environment variable SECRET_GRACE_PERIOD_RATIO',
      'environment variable SECRET_TTL',
    ])
  })

  it('have the defaults of the specification', () => {
    expect([agentVariables.SECRET_TTL.default, agentVariables.SECRET_GRACE_PERIOD_RATIO.default, agentVariables.TRUST_DOMAIN.default]).to.deep.equal([
      '24h0m0s',
      0.5,
      'cluster.local',
    ])
  })
})
