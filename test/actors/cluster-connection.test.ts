/** What a watcher is told of how its cluster is reached, from the files of a configuration or of a pod. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')

describe('the connection to a cluster', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-connection-'))
  after(() => rmSync(dir, { recursive: true }))
  const write = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text)
    return join(dir, name)
  }
  const config = (user: string, cluster = `certificate-authority-data: ${base64('CA')}`, context = 'one') =>
    write(
      'config',
      `current-context: ${context}
contexts: [{name: one, context: {cluster: a, user: u}}, {name: two, context: {cluster: b, user: u}}, {name: three, context: {cluster: c, user: u}}]
clusters: [{name: a, cluster: {server: "https://10.0.0.1:6443", ${cluster}}}, {name: b, cluster: {server: "https://10.0.0.2/behind", insecure-skip-tls-verify: true, tls-server-name: api}}]
users: [{name: u, user: ${user}}]
`,
    )
  const access = (path: string) => new ClusterConnection({ from: 'file', path }).access(false)
  const rejected = async (path: string) => {
    try {
      await access(path)
    } catch (error) {
      return (error as Error).message.replaceAll(dir, '.')
    }
    return 'not rejected'
  }

  it('is that of the current context, with the certificates of the user', async () => {
    const found = await access(config(`{client-certificate-data: ${base64('CERT')}, client-key-data: ${base64('KEY')}}`))
    expect(found).to.deep.equal({
      server: 'https://10.0.0.1:6443',
      ...{ ca: 'CA', cert: 'CERT', key: 'KEY' },
      proxy: undefined,
      serverName: undefined,
      verifies: true,
      headers: {},
    })
    const other = await access(config('{token: secret}', 'certificate-authority: ca.pem', 'two'))
    expect([other.server, other.serverName, other.verifies, other.headers]).to.deep.equal([
      'https://10.0.0.2/behind',
      'api',
      false,
      { authorization: 'Bearer secret' },
    ])
  })

  it('takes certificates and tokens from files beside the configuration, as they are when it is asked', async () => {
    write('ca.pem', 'CA1')
    write('token', 'first\n')
    const connection = new ClusterConnection({ from: 'file', path: config('{tokenFile: token}', 'certificate-authority: ca.pem') })
    const told = async (isRefused: boolean) => {
      const { ca, headers } = await connection.access(isRefused)
      return [ca, headers.authorization]
    }
    expect(await told(false)).to.deep.equal(['CA1', 'Bearer first'])
    write('ca.pem', 'CA2')
    write('token', 'second')
    // What was read a moment ago is good enough, unless the server has refused it.
    expect(await told(false)).to.deep.equal(['CA1', 'Bearer first'])
    expect(await told(true)).to.deep.equal(['CA2', 'Bearer second'])
  })

  it('asks a plugin once, and again when the server has refused its credential', async () => {
    const script = write(
      'plugin.sh',
      `echo x >> ${dir}/calls\nprintf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"of %s"}}' "$(wc -l < ${dir}/calls)"`,
    )
    const connection = new ClusterConnection({
      from: 'file',
      path: config(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: [${script}], interactiveMode: Never}}`),
    })
    const token = async (isRefused: boolean) => (await connection.access(isRefused)).headers.authorization
    expect([await token(false), await token(false), await token(true)]).to.deep.equal(['Bearer of 1', 'Bearer of 1', 'Bearer of 2'])
  })

  it('is that of the service account of a pod, whose files are read', async () => {
    write('ca.crt', 'CA')
    write('token', 'secret\n')
    const found = await new ClusterConnection({ from: 'pod', host: 'fd00::1', port: '443', directory: dir }).access(false)
    expect([found.server, found.ca, found.verifies, found.headers]).to.deep.equal([
      'https://[fd00::1]:443',
      'CA',
      true,
      { authorization: 'Bearer secret' },
    ])
  })

  it('is refused with the file and the reason', async () => {
    expect(await rejected(join(dir, 'nowhere'))).to.match(/^--orchconfig: \.\/nowhere: .*no such file/)
    expect(await rejected(write('odd', ': ['))).to.match(/^--orchconfig: \.\/odd: /)
    expect(await rejected(write('odd', 'text'))).to.equal('--orchconfig: ./odd: there is no configuration in it')
    expect(await rejected(write('odd', '{}'))).to.equal('--orchconfig: ./odd: current-context is not set')
    expect(await rejected(config('{}', 'x: y', 'none'))).to.equal('--orchconfig: ./config: there is no context "none"')
    expect(await rejected(config('{}', 'x: y', 'three'))).to.equal('--orchconfig: ./config: there is no cluster "c", which the context "three" names')
    expect(await rejected(config('{}', 'proxy-url: "ftp://p"'))).to.contain('proxy-url')
    expect(await rejected(config('{tokenFile: none}'))).to.match(/^--orchconfig: \.\/config: the credential of the user u: .*none/)
    const plugin = config(
      '{exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/sh, args: ["-c", "echo no entry >&2; exit 1"], interactiveMode: Never}}',
    )
    expect(await rejected(plugin)).to.equal(
      '--orchconfig: ./config: the credential of the user u: the plugin /bin/sh: it ended with status 1: no entry',
    )
    const http = write(
      'odd',
      'current-context: x\ncontexts: [{name: x, context: {cluster: a, user: u}}]\nclusters: [{name: a, cluster: {server: "http://a"}}]\n',
    )
    expect(await rejected(http)).to.equal('--orchconfig: ./odd: the server "http://a" of the cluster a has no https address')
  })
})
