/** Where webhooks are served (docs/operation.md, W1), and which configuration of the API server is kept (W7). */
import { expect } from 'chai'
import type { GivenServing } from '../../actors/discovery/given/serving.ts'
import { givenWebhooks, keptWebhook } from '../../actors/discovery/given/webhooks.ts'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import { readFeatures } from '../../src/config/features.ts'

const served: GivenServing = { from: 'authority', hosts: [] }
const unserved: GivenServing = { from: 'nowhere', why: 'there is no certificate' }
const features = (environment: Record<string, string> = {}) => readFeatures(environment).features
const given = (httpsAddr: string, hasCluster: boolean, serving: GivenServing = served, environment: Record<string, string> = {}) =>
  givenWebhooks({ httpAddr: ':8080', httpsAddr }, features(environment), hasCluster, serving)
const off = { VALIDATION_ENABLED: 'false', INJECT_ENABLED: 'false' }

describe('webhooks are served', () => {
  it('over TLS where there are an address, a cluster and a certificate', () => {
    expect(given(':15017', true)).to.deep.equal({ at: 'https', notices: [] })
  })

  it('in plain text at the HTTP address without a cluster, and without an address, which is told', () => {
    for (const address of [':15017', '']) expect(given(address, false, unserved)).to.deep.equal({ at: 'http', notices: [] })
    const files: GivenServing = { from: 'files', files: { cert: 'a', key: 'b' } as never }
    expect(given(':15017', false, files).notices.map(({ message }) => message)).to.deep.equal([
      'webhooks are served at :8080 in plain text, and --httpsAddr :15017 is not listened on: there is no cluster that would ask there',
    ])
    const { at, notices } = given('', true)
    expect([at, notices]).to.deep.equal(['http', [{ level: 'info', message: 'webhooks are served at :8080 in plain text: --httpsAddr is empty' }]])
  })

  it('nowhere without a certificate, which is told, and where both are switched off', () => {
    expect(given(':15017', true, unserved)).to.deep.equal({
      at: 'nowhere',
      notices: [{ level: 'warn', message: '--httpsAddr :15017 is not listened on: there is no certificate' }],
    })
    for (const hasCluster of [true, false]) expect(given(':15017', hasCluster, served, off).at).to.equal('nowhere')
    for (const name of Object.keys(off)) expect(given(':15017', true, served, { [name]: 'false' }).at).to.equal('https')
  })

  it('with a configuration that is kept only where the API server reaches them, and a variable names one', () => {
    const options = { namespace: 'control' } as DiscoveryOptions
    const kept = (environment: Record<string, string>, address = ':15017') =>
      keptWebhook(options, features(environment), given(address, true), served)
    expect(kept({})).to.deep.equal({ name: 'meshd-control', hasFiles: false })
    expect(kept({ VALIDATION_WEBHOOK_CONFIG_NAME: 'mine' })).to.deep.equal({ name: 'mine', hasFiles: false })
    expect([kept({ VALIDATION_WEBHOOK_CONFIG_NAME: '' }), kept({ VALIDATION_ENABLED: 'false' }), kept({}, '')]).to.deep.equal([
      undefined,
      undefined,
      undefined,
    ])
  })
})
