import { expect } from 'chai'
import { execInfo, readCredential, readPlugin } from '../../../src/orchestrator/exec-credential.ts'
import { readProxy } from '../../../src/orchestrator/proxies.ts'

const version = 'client.authentication.k8s.io/v1'

describe('a plugin that gives credentials', () => {
  it('is told of the cluster where it is to be', () => {
    const plugin = readPlugin({
      apiVersion: version,
      command: 'get-token',
      args: ['a', 1],
      env: [{ name: 'A', value: 'b' }, {}],
      installHint: ' get it\n',
    })
    expect(plugin).to.deep.equal({
      apiVersion: version,
      command: 'get-token',
      args: ['a', '1'],
      env: { A: 'b' },
      takesCluster: false,
      hint: 'get it',
    })
    const cluster = {
      server: 'https://a:1',
      'tls-server-name': 'b',
      'certificate-authority': '/ca',
      extensions: [
        { name: 'other', extension: 1 },
        { name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } },
      ],
    }
    expect(JSON.parse(execInfo(plugin, cluster, 'Y2E='))).to.deep.equal({ kind: 'ExecCredential', apiVersion: version, spec: { interactive: false } })
    expect(JSON.parse(execInfo({ ...plugin, takesCluster: true }, cluster, 'Y2E=')).spec.cluster).to.deep.equal({
      server: 'https://a:1',
      'tls-server-name': 'b',
      'certificate-authority-data': 'Y2E=',
      config: { audience: 'x' },
    })
  })

  it('is refused where it cannot be used', () => {
    for (const [value, reason] of [
      [{ apiVersion: 'client.authentication.k8s.io/v1alpha1', command: 'a' }, 'exec.apiVersion: expected'],
      [{ apiVersion: version }, 'exec.command: a command is required'],
      [{ apiVersion: version, command: 'a', interactiveMode: 'Always' }, 'exec.interactiveMode: Always needs a terminal'],
    ] as const)
      expect(() => readPlugin(value)).to.throw(reason)
  })

  it('answers with a token or a pair, until it expires', () => {
    const answer = (status: object, apiVersion = version) => readCredential(JSON.stringify({ kind: 'ExecCredential', apiVersion, status }), version)
    expect(answer({ token: 't' })).to.deep.equal({ token: 't', cert: undefined, key: undefined, expiresAt: Number.POSITIVE_INFINITY })
    expect(answer({ clientCertificateData: 'c', clientKeyData: 'k', expirationTimestamp: '2030-01-01T00:00:00Z' })).to.deep.equal({
      token: undefined,
      cert: 'c',
      key: 'k',
      expiresAt: Date.UTC(2030),
    })
    expect(answer({ token: 't', expirationTimestamp: 'soon' }).expiresAt).to.equal(0)
    expect(() => answer({ clientCertificateData: 'c' })).to.throw('neither a token nor a certificate')
    expect(() => answer({ token: 't' }, 'other')).to.throw('is no ExecCredential of')
    expect(() => readCredential('secret', version)).to.throw(/^what it wrote is no JSON$/)
  })
})

describe('the address of a proxy', () => {
  it('has a type, a host and a port, and its password is in no message', () => {
    const [user, password] = ['', '']
    expect(readProxy('http://proxy')).to.deep.equal({ type: 'http', host: 'proxy', port: 80, user, password })
    expect(readProxy('socks5://[::1]')).to.deep.equal({ type: 'socks5', host: '::1', port: 1080, user, password })
    expect(readProxy('https://a%40b:s3cret@proxy:8443')).to.deep.equal({ type: 'https', host: 'proxy', port: 8443, user: 'a@b', password: 's3cret' })
    for (const text of ['ftp://a:s3cret@proxy', 'a:s3cret@proxy', 'proxy', 'http://'])
      expect(() => readProxy(text), text)
        .to.throw()
        .with.property('message')
        .that.does.not.contain('s3cret')
  })
})
