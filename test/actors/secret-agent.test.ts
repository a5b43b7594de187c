import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { existsSync, rmSync, statSync } from 'node:fs'
import { expect } from 'chai'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { AgentSecrets, acknowledge, workload as identity } from '../harness/agent-secrets.ts'
import { type SecretClient, sidecar } from '../harness/secret-client.ts'
import { until } from '../harness/until.ts'

describe("the agent's secrets", () => {
  let at: AgentSecrets
  beforeEach(() => {
    at = new AgentSecrets()
  })
  afterEach(() => at.dispose())
  const leafOf = (client: SecretClient) => new X509Certificate(client.last('default')?.chain ?? '')

  it('are a certificate with its key and the roots, served on a socket of the own user', async () => {
    const service = await at.authority()
    await at.agent(service)
    const client = at.envoy(['default', 'ROOTCA'])
    await until('the secrets', () => client.last('default') !== undefined)
    const pair = client.last('default')
    const leaf = leafOf(client)
    expect(leaf.subjectAltName).to.equal(`URI:${identity}`)
    expect(leaf.checkPrivateKey(createPrivateKey(pair?.key ?? ''))).to.equal(true)
    expect(pair?.key).to.match(/^-----BEGIN EC PRIVATE KEY/)
    expect(client.last('ROOTCA')?.roots).to.equal(service.bundle)
    expect([statSync(at.path('run')).mode & 0o777, statSync(at.path('run/SDS')).mode & 0o777]).to.deep.equal([0o700, 0o600])
    const [call] = service.calls
    expect(call).to.deep.include({ seconds: 600, presented: undefined })
    expect(call?.headers).to.deep.include({ authorization: 'Bearer a.good.token', clusterid: 'east', te: 'trailers' })
  })

  it('are served on a new socket when that was removed, also on the streams that are open', async () => {
    const service = await at.authority()
    service.lifeMs = 4000
    await at.agent(service)
    const open = at.envoy(['default'])
    await until('the secrets', () => open.responses.length === 1)
    acknowledge(open, ['default'])
    rmSync(at.path('run/SDS'))
    await until('the warning', () =>
      at.lines.some((line) => line.includes('run/SDS: the socket was removed or replaced; the server listens on it again')),
    )
    const client = at.envoy(['default'])
    await until('the secrets on the new socket', () => client.last('default') !== undefined)
    await until('the next on the open stream', () => open.responses.length > 1)
  })

  const kinds = [
    ['rsa', 'traditional', /^-----BEGIN RSA PRIVATE KEY/, 'rsa'],
    ['rsa', 'pkcs8', /^-----BEGIN PRIVATE KEY/, 'rsa'],
    ['ec', 'pkcs8', /^-----BEGIN PRIVATE KEY/, 'ec'],
  ] as const
  for (const [type, format, label, keyType] of kinds)
    it(`may have an ${type} key in ${format} form`, async () => {
      await at.agent(await at.authority(), { key: { type, format } })
      const client = at.envoy(['default'])
      await until('the pair', () => client.last('default') !== undefined)
      const key = client.last('default')?.key ?? ''
      expect(key).to.match(label)
      const read = createPrivateKey(key)
      expect([read.asymmetricKeyType, read.asymmetricKeyDetails?.modulusLength, read.asymmetricKeyDetails?.namedCurve]).to.deep.equal([
        keyType,
        type === 'rsa' ? 2048 : undefined,
        type === 'ec' ? 'prime256v1' : undefined,
      ])
    })

  it('are sent to every waiting stream, in SotW and delta, limited to the subscribed names', async () => {
    const service = await at.authority()
    service.answer = () => ({ code: 14, message: 'later' })
    const state = await at.agent(service)
    const streams = [at.envoy(['default']), at.envoy(['ROOTCA']), at.envoy(['default', 'ROOTCA'], true)] as const
    await until('a failure', () => state().fault === 'later')
    expect(streams.map(({ responses }) => responses.length)).to.deep.equal([0, 0, 0])
    service.answer = undefined
    await until('the secrets', () => streams.every(({ responses }) => responses.length === 1))
    expect(streams.map(({ responses }) => responses[0]?.secrets.map(({ name }) => name))).to.deep.equal([
      ['default'],
      ['ROOTCA'],
      ['default', 'ROOTCA'],
    ])
    expect(service.calls.length).to.be.within(2, 6)
  })

  it('are renewed before they expire, with the certificate as credential, and pushed on open streams', async () => {
    const service = await at.authority()
    service.lifeMs = 4000
    await at.agent(service)
    const client = at.envoy(['default'])
    await until('the first', () => client.responses.length === 1)
    const first = leafOf(client)
    acknowledge(client, ['default'])
    await until('the second', () => client.responses.length > 1)
    const second = leafOf(client)
    expect(second.serialNumber).not.to.equal(first.serialNumber)
    expect(first.validToDate.getTime()).to.be.above(Date.now())
    expect(second.checkPrivateKey(createPrivateKey(client.last('default')?.key ?? ''))).to.equal(true)
    expect(service.calls.slice(0, 2).map(({ presented }) => presented)).to.deep.equal([undefined, identity])
  })

  it('are pushed as roots only to streams of roots, and learned roots verify the authority', async () => {
    const service = await at.authority()
    service.lifeMs = 3000
    await at.agent(service)
    const client = at.envoy(['ROOTCA'])
    await until('the first', () => client.responses.length === 1)
    acknowledge(client, ['ROOTCA'])
    service.addRoot('second', false)
    await until('both roots', () => client.last('ROOTCA')?.roots === service.bundle)
    expect(client.responses.at(-1)?.secrets.map(({ name }) => name)).to.deep.equal(['ROOTCA'])
    // From now on the server certificate is from a root that is not in the agent's file.
    await service.stop()
    service.roots = service.roots.slice(1)
    await service.start()
    acknowledge(client, ['ROOTCA'])
    await until('the new root alone', () => client.last('ROOTCA')?.roots === service.bundle)
  })

  it('have the roots that are announced, which are kept for a restart; a certificate that leads to none of them is renewed', async () => {
    const service = await at.authority()
    const keptIn = at.path('kept')
    await at.agent(service, { keptIn })
    const client = at.accepting(['default', 'ROOTCA'])
    await until('the secrets', () => client.last('default') !== undefined)
    const first = leafOf(client)
    at.announce('nothing')
    expect(at.lines.at(-1)).to.equal(
      'warn the announced roots are not used, and the previous ones stay in use: the text is not certificates in PEM: holds no certificate in PEM',
    )
    service.addRoot('second', false)
    at.announce(service.bundle)
    await until('both roots', () => client.last('ROOTCA')?.roots === service.bundle)
    expect([at.read('kept/root-cert.pem'), service.calls.length]).to.deep.equal([service.bundle, 1])

    service.roots = service.roots.slice(1)
    const after = service.bundle
    at.announce(after)
    await until('the new root', () => client.last('ROOTCA')?.roots === after)
    expect(at.lines.at(-1)).to.match(/^warn the certificate of spiffe:\S+ leads to none of the roots, so peers refuse it; renewal in \d+\.\d s$/)
    expect(at.read('kept/root-cert.pem')).to.equal(after)
    await until('another certificate', () => leafOf(client).serialNumber !== first.serialNumber)
    expect(client.last('ROOTCA')?.roots).to.equal(after)
  })

  it('have the roots that are announced during a call, not those of its response', async () => {
    const service = await at.authority()
    service.addRoot('second', false)
    const [only] = service.roots
    await at.agent(service)
    at.announce(only?.pem ?? '')
    const client = at.accepting(['ROOTCA'])
    await until('the roots', () => client.last('ROOTCA')?.roots === only?.pem)
  })

  it('continue to be renewed and pushed after a NACK', async () => {
    const service = await at.authority()
    service.lifeMs = 4000
    await at.agent(service)
    const client = at.envoy(['default'])
    await until('the first', () => client.responses.length === 1)
    client.send({ resourceNames: ['default'], responseNonce: client.responses[0]?.nonce as string, errorDetail: { message: 'not this one' } })
    await until('the second', () => client.responses.length > 1)
    expect(client.status).to.equal(undefined)
  })

  it('end a stream with invalid requests, and continue to serve other streams', async () => {
    await at.agent(await at.authority())
    const good = at.envoy(['default'])
    const bad = [at.envoy([]), at.envoy([]), at.envoy([])] as const
    bad[0].send({ typeUrl: 'type.googleapis.com/envoy.config.cluster.v3.Cluster' })
    bad[1].sendBytes(Buffer.from([0x0a, 0xff, 0xff]))
    const nobody = at.stream()
    nobody.send({ resourceNames: ['default'] })
    await until('the bad to be ended', () => [bad[0], bad[1], nobody].every(({ status }) => status !== undefined))
    expect([bad[0], bad[1], nobody].map(({ status }) => status?.split(' ')[0])).to.deep.equal(['3', '3', '3'])
    await until('the good to be served', () => good.responses.length === 1)
    expect([good.status, bad[2].status]).to.deep.equal([undefined, undefined])
  })

  it('are obtained after a restart of the authority, refusals and invalid answers', async () => {
    const service = await at.authority()
    const state = await at.agent(service)
    const answers: [string, () => void, RegExp][] = [
      ['a refusal', () => (service.answer = () => ({ code: 16, message: 'request authenticate failure' })), /^request authenticate failure$/],
      ['another identity’s key', () => (service.answer = () => [service.bundle, service.bundle]), /another key/],
      ['garbage', () => (service.answer = () => ['garbage', 'garbage']), /not certificates/],
      ['one element', () => (service.answer = () => ['garbage']), /1 element\b/],
      ['an exception', () => (service.answer = () => Promise.reject(new Error('broken'))), /internal error/],
    ]
    service.lifeMs = 1500
    for (const [name, answer, reason] of answers) {
      answer()
      await until(name, () => reason.test(state().fault ?? ''))
    }
    await service.stop()
    await until('nobody to answer', () => /ECONNREFUSED/.test(state().fault ?? ''))
    service.answer = undefined
    service.lifeMs = 600_000
    await service.start()
    const client = at.envoy(['default'])
    await until('a certificate', () => client.responses.length === 1 && state().fault === undefined)
  }).timeout(120_000)

  it('are not served after the pair expired, and the next pair is pushed at once', async () => {
    const service = await at.authority()
    service.lifeMs = 1500
    const state = await at.agent(service)
    await until('the first', () => state().notAfter !== undefined)
    service.answer = () => ({ code: 14, message: 'outage' })
    await until('its end', () => state().notAfter === undefined)
    const client = at.envoy(['default'])
    const roots = at.envoy(['ROOTCA'])
    await until('roots', () => roots.responses.length === 1)
    expect(client.responses).to.have.length(0)
    service.lifeMs = 600_000
    service.answer = undefined
    await until('the next', () => client.responses.length === 1)
    expect(leafOf(client).validToDate.getTime()).to.be.above(Date.now())
  })

  it('are requested with the token only after a call with the certificate failed', async () => {
    const service = await at.authority()
    service.lifeMs = 3000
    const state = await at.agent(service)
    await until('the first', () => state().notAfter !== undefined)
    service.answer = () => (service.calls.at(-1)?.presented === undefined ? undefined : { code: 16, message: 'this certificate is not taken' })
    await until('the third call', () => service.calls.length > 2)
    expect(service.calls.slice(0, 3).map(({ presented }) => presented)).to.deep.equal([undefined, identity, undefined])
  })

  it('are requested with a provisioned certificate, read for each call, until there is an issued one', async () => {
    const service = await at.authority()
    service.lifeMs = 2500
    service.answer = () => (service.calls.at(-1)?.presented === undefined ? { code: 16, message: 'no certificate' } : undefined)
    const pair = { chain: at.path('prov/cert-chain.pem'), key: at.path('prov/key.pem') }
    const state = await at.agent(service, { authority: at.connection(service, { pair }) })
    await until('the refusal', () => state().fault === 'no certificate')
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const provisioned = 'spiffe://cluster.local/ns/vm/sa/provisioned'
    at.write('prov/key.pem', 'garbled')
    at.write('prov/cert-chain.pem', service.chain(makeSigningRequest(privateKey, []), provisioned)[0] as string)
    await until('that it is garbled', () =>
      at.lines.some((line) => /provisioned certificate cannot be used, so none is sent: .*key.pem: holds no private key/.test(line)),
    )
    at.write('prov/key.pem', privateKey.export({ type: 'pkcs8', format: 'pem' }) as string)
    const presented = () => service.calls.map((call) => call.presented).filter((one) => one !== undefined)
    await until('a renewal', () => presented().length > 1)
    expect(presented().slice(0, 2)).to.deep.equal([provisioned, identity])
  })

  it('are retried after the delay that the authority requests', async () => {
    const service = await at.authority()
    service.answer = () => ({ code: 8, message: 'busy', retryAfterMs: 700 })
    const state = await at.agent(service)
    const begun = performance.now()
    await until('a failure', () => state().fault === 'busy')
    await until('the second call', () => service.calls.length > 1)
    expect(performance.now() - begun).to.be.above(600)
  })

  it('are requested over plaintext if configured, and without a token if there is none', async () => {
    const service = await at.authority({ isPlain: true })
    const state = await at.agent(service, { authority: at.connection(service, { tokenFile: at.path('nowhere') }), clusterId: '' })
    await until('a certificate', () => state().identity === identity)
    expect(service.calls[0]?.headers).not.to.have.any.keys('authorization', 'clusterid')
  })

  it('are not requested from an authority with a certificate of another name or root', async () => {
    const service = await at.authority()
    const state = await at.agent(service, { authority: at.connection(service, {}, { serverName: 'other.test' }) })
    await until('a failure', () => /altnames/.test(state().fault ?? ''))
    await at.authority()
    const second = await at.agent(service, {}, { socket: at.path('run/other') })
    await until('a failure', () => second().fault !== undefined)
    expect(second().fault).to.match(/certificate/)
    expect(service.calls).to.have.length(0)
  })

  it('replace the socket of a dead agent, and leave that of a running one', async () => {
    const service = await at.authority()
    await at.agent(service)
    const failure = await at.agent(service).then(
      () => 'started',
      (error: Error) => error.message,
    )
    expect(failure).to.include('another server already listens on it')
    await at.stopAgents()
    expect(existsSync(at.path('run/SDS'))).to.equal(false)
  })

  it('have metrics: streams by version, pushes, NACKs and late answers', async () => {
    await at.agent(await at.authority())
    const client = at.stream()
    client.send({ node: { ...sidecar, metadata: { MESH_VERSION: '1.9.2' } }, resourceNames: ['default'] })
    await until('the response', () => client.responses.length === 1)
    await until('that it left', () => at.count('total_pushes') === 1)
    const [{ nonce = '' } = {}] = client.responses
    client.send({ resourceNames: ['default'], responseNonce: nonce, errorDetail: { message: 'no' } })
    client.send({ resourceNames: ['default'], responseNonce: 'another' })
    await until('both', () => at.count('pilot_xds_expired_nonce') === 1)
    const counted = ['total_active_connections', 'total_secret_update_failures', 'pilot_total_xds_rejects', 'pilot_xds_pushes', 'pilot_xds']
    expect(counted.map((name) => at.count(name))).to.deep.equal([1, 1, 1, 1, 1])
    expect(at.metrics.collect().find(({ name }) => name === 'pilot_xds')?.series[0]?.labels).to.deep.equal({ version: '1.9.2' })
    client.close()
    await until('the end of the stream', () => at.count('pilot_xds') === 0 && at.count('total_active_connections') === 0)
  })
})
