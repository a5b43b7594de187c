import { expect } from 'chai'
import { platformMetadata } from '../../../src/agent/platform.ts'
import { readAgentFeatures } from '../../../src/config/agent-features.ts'
import { tokenServiceConfig } from '../../../src/sts/settings.ts'

const flags = { stsPort: 15_463, tokenManagerPlugin: 'CloudTokenExchange', isIpv6Only: false }
const config = (environment: Record<string, string>, changes: object = {}) => {
  const { features } = readAgentFeatures(environment)
  return tokenServiceConfig(features, { ...flags, platform: platformMetadata(features.CLOUD_METADATA, features.CLOUD_CLUSTER_URL), ...changes })
}

describe('settings of the token service', () => {
  it('are absent without a port, unless the relay exchanges tokens', () => {
    expect(config({}, { stsPort: 0 })).to.equal(undefined)
    expect(config({ XDS_AUTH_PROVIDER: 'other' }, { stsPort: 0 })).to.equal(undefined)
    expect(config({ XDS_AUTH_PROVIDER: 'gcp' }, { stsPort: 0 })).to.include({ port: undefined })
  })

  it('use the cluster or the location of the instance as audience', () => {
    const CLOUD_METADATA = 'shop|42|east|us-east1-b'
    expect(config({ CLOUD_METADATA })).to.deep.equal({
      port: 15_463,
      isIpv6Only: false,
      plugin: {
        federatedUrl: 'https://securetoken.googleapis.com/v1/identitybindingtoken',
        accessUrl:
          'https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/service-42@gcp-sa-meshdataplane.iam.gserviceaccount.com:generateAccessToken',
        audience: 'identitynamespace:cluster.local:https://container.googleapis.com/v1/projects/shop/locations/us-east1-b/clusters/east',
      },
    })
    expect(config({ CLOUD_METADATA, CLOUD_CLUSTER_URL: 'https://c', TRUST_DOMAIN: 'td' })?.plugin).to.include({
      audience: 'identitynamespace:td:https://c',
    })
    const instance = { CLOUD_METADATA, CREDENTIAL_FETCHER_TYPE: 'CloudComputeEngine' }
    expect(config({ ...instance, CREDENTIAL_FETCHER_TYPE: 'GoogleComputeEngine' }, { tokenManagerPlugin: 'GoogleTokenExchange' })).to.deep.equal(
      config(instance),
    )
    expect(config(instance)?.plugin).to.include({ audience: 'identitynamespace:cluster.local:CloudComputeEngine' })
  })

  it('contain the reason if no tokens can be issued', () => {
    expect(config({})?.plugin).to.have.property('fault').that.includes('CLOUD_METADATA')
    expect(config({ CLOUD_METADATA: 'a|b|c' })?.plugin).to.have.property('fault')
    expect(config({ CLOUD_METADATA: 'a||c|d' })?.plugin).to.have.property('fault')
    expect(config({ CLOUD_METADATA: 'a|1|c|d' }, { tokenManagerPlugin: 'Other' })?.plugin)
      .to.have.property('fault')
      .that.includes('"Other" is not known')
  })

  it('reject token URLs in plaintext unless they are local', () => {
    const CLOUD_METADATA = 'shop|42|east|us-east1-b'
    const at = (CLOUD_FEDERATED_TOKEN_URL: string) => config({ CLOUD_METADATA, CLOUD_FEDERATED_TOKEN_URL })
    expect(at('http://127.0.0.1:1/x')?.plugin).to.include({ federatedUrl: 'http://127.0.0.1:1/x' })
    expect(at('http://[::1]:1/')?.plugin).to.include({ federatedUrl: 'http://[::1]:1/' })
    for (const url of ['http://sts.test/', 'file:///etc/passwd', 'sts', '', 'http://127.0.0.1.evil.test/'])
      expect(() => at(url)).to.throw(/^environment variable CLOUD_FEDERATED_TOKEN_URL: /)
  })
})
