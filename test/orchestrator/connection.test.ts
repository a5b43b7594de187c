/** The ways to a real API server: through proxies, with the credential of a plugin, and what is said where there is none (docs/operation.md, C1). */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { expect } from 'chai'
import { ClusterApi } from '../../actors/discovery/cluster/cluster-api.ts'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { CredentialPlugin } from '../../actors/discovery/cluster/exec-plugin.ts'
import { readPlugin } from '../../src/orchestrator/exec-credential.ts'
import { TestCluster } from '../harness/cluster.ts'
import { connectProxy, type ForwardProxy, socksProxy } from '../harness/forward-proxies.ts'
import { SiteCertificates } from '../harness/gateway-secrets.ts'
import { until } from '../harness/until.ts'

const version = 'client.authentication.k8s.io/v1'

describe('the way to a real API server', () => {
  let cluster: TestCluster
  const ends: (() => void)[] = []
  /** Reads the names of all namespaces with a configuration. */
  const names = async (path: string): Promise<string[]> => {
    const api = new ClusterApi(new ClusterConnection({ from: 'file', path }), { perSecond: 100, burst: 100, userAgent: 'test' })
    ends.push(() => api.close())
    const { items } = await api.call(
      { verb: 'list', resource: 'namespaces' },
      (library) => library.CoreV1Api,
      (core) => core.listNamespace(),
    )
    return items.map(({ metadata }) => metadata?.name ?? '')
  }
  const reason = (call: Promise<unknown>) =>
    call.then(
      () => 'it succeeded',
      (error: Error) => error.message,
    )
  /** Writes a configuration with more fields of the cluster. */
  const config = (name: string, fields: string, user?: string, server = cluster.server): string => {
    const path = user === undefined ? cluster.tokenConfig(name, token, server) : cluster.userConfig(name, user, server)
    writeFileSync(path, readFileSync(path, 'utf8').replace('cluster: {server:', `cluster: {${fields}, server:`))
    return path
  }
  let token: string

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    cluster.apply('apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reader, namespace: default}')
    cluster.kubectl(['create', 'clusterrolebinding', 'reader', '--clusterrole', 'view', '--serviceaccount', 'default:reader'])
    cluster.kubectl(['create', 'clusterrole', 'namespaces', '--verb=list', '--resource=namespaces'])
    cluster.kubectl(['create', 'clusterrolebinding', 'namespaces', '--clusterrole', 'namespaces', '--serviceaccount', 'default:reader'])
    token = cluster.kubectl(['create', 'token', 'reader']).trim()
  })
  after(async () => {
    for (const end of ends) end()
    await cluster?.dispose()
  })

  it('leads through a proxy of its own kind, with its password', async () => {
    const [proxy, socks] = [await connectProxy('mesh', 's3cret'), await socksProxy()]
    ends.push(proxy.close, socks.close)
    const target = new URL(cluster.server).host
    expect(await names(config('proxied', `proxy-url: "http://mesh:s3cret@127.0.0.1:${proxy.port}"`))).to.include('kube-system')
    expect(proxy.targets).to.deep.equal([target])
    expect(await names(config('socks', `proxy-url: "socks5://127.0.0.1:${socks.port}"`))).to.include('kube-system')
    expect(socks.targets).to.deep.equal([target])
    const refused = await reason(names(config('refused', `proxy-url: "http://mesh:wrong-s3cret@127.0.0.1:${proxy.port}"`)))
    expect(refused)
      .to.contain(`proxy-url: http://127.0.0.1:${proxy.port}: the proxy refused the connection with status 407`)
      .and.not.contain('s3cret')
    expect(await reason(names(config('odd', 'proxy-url: "ftp://127.0.0.1:1"')))).to.contain(
      'proxy-url of the cluster c: expected http, https or socks5',
    )
  })

  it('leads through a proxy that is asked over TLS, of an authority of the cluster or of the system, and through no other', async () => {
    const made = new SiteCertificates()
    const root = made.authority('proxies')
    const { chain, key } = made.issue('IP:127.0.0.1', root)
    const file = (name: string) => readFileSync(join(cluster.dir, 'pki', name), 'utf8')
    const ofCluster = await connectProxy('mesh', 's3cret', { cert: file('serving.crt'), key: file('serving.key') })
    const ofOther = await connectProxy('mesh', 's3cret', { cert: chain, key })
    ends.push(ofCluster.close, ofOther.close, () => made.dispose())
    const through = (name: string, { port }: ForwardProxy) => names(config(name, `proxy-url: "https://mesh:s3cret@127.0.0.1:${port}"`))
    expect(await through('tls', ofCluster)).to.include('kube-system')
    expect(ofCluster.targets).to.deep.equal([new URL(cluster.server).host])
    expect(await reason(through('unknown', ofOther)))
      .to.match(/proxy-url: https:\/\/127\.0\.0\.1:\d+: .*(certificate|issuer)/)
      .and.not.contain('s3cret')
    expect(ofOther.targets).to.deep.equal([])
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, root.chain])
    try {
      expect(await through('system', ofOther)).to.include('kube-system')
      expect(await reason(names(config('wrong', `proxy-url: "https://mesh:wrong@127.0.0.1:${ofOther.port}"`)))).to.contain(
        'the proxy refused the connection with status 407',
      )
    } finally {
      setDefaultCACertificates(before)
    }
  })

  it('does not lead to a server that speaks HTTP/1.1 alone', async () => {
    const file = (name: string) => readFileSync(join(cluster.dir, 'pki', name))
    const gateway = createServer({ cert: file('serving.crt'), key: file('serving.key'), ALPNProtocols: ['http/1.1'] })
    await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve))
    ends.push(() => gateway.close())
    const server = `https://127.0.0.1:${(gateway.address() as AddressInfo).port}`
    expect(await reason(names(cluster.tokenConfig('gateway', token, server)))).to.contain(`${server} does not speak HTTP/2, which is needed`)
  })

  it('needs a credential, which a plugin gives that is told of the cluster', async () => {
    const told = join(cluster.dir, 'told.json')
    const answer = JSON.stringify({ kind: 'ExecCredential', apiVersion: version, status: { token } })
    writeFileSync(join(cluster.dir, 'plugin.sh'), `printf '%s' "$KUBERNETES_EXEC_INFO" > ${told}\ncat <<'END'\n${answer}\nEND\n`)
    const exec = (more: string) =>
      `{exec: {apiVersion: ${version}, command: /bin/sh, args: [${cluster.dir}/plugin.sh], interactiveMode: Never${more}}}`
    const extension = `extensions: [{name: client.authentication.k8s.io/exec, extension: {audience: mesh}}]`
    expect(await names(config('plugin', extension, exec(', provideClusterInfo: true')))).to.include('kube-system')
    const { spec } = JSON.parse(readFileSync(told, 'utf8'))
    expect([spec.interactive, spec.cluster.server, spec.cluster.config]).to.deep.equal([false, cluster.server, { audience: 'mesh' }])
    expect(Buffer.from(spec.cluster['certificate-authority-data'], 'base64').toString()).to.contain('BEGIN CERTIFICATE')
    expect(await names(config('untold', extension, exec('')))).to.include('kube-system')
    expect(JSON.parse(readFileSync(told, 'utf8')).spec).to.deep.equal({ interactive: false })
    const missing = `{exec: {apiVersion: ${version}, command: no-such-plugin, installHint: install it}}`
    expect(await reason(names(config('missing', extension, missing)))).to.contain('the plugin no-such-plugin: there is no such command: install it')
  })

  it('is given up where a plugin does not answer, with all that it started', async () => {
    const alive = join(cluster.dir, 'alive')
    const code = `sh -c 'echo $$ > ${alive}; exec sleep 600' & wait`
    const plugin = new CredentialPlugin(readPlugin({ apiVersion: version, command: '/bin/sh', args: ['-c', code] }), {}, undefined, 1000)
    const [one, other] = await Promise.all([reason(plugin.credential(false)), reason(plugin.credential(false))])
    expect(one).to.equal('the plugin /bin/sh: it has not answered within 1 s, and is ended')
    expect(other).to.equal(one)
    const pid = readFileSync(alive, 'utf8').trim()
    await until('the end of what it started', () => !existsSync(`/proc/${pid}`) || readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z '))
  })
})
