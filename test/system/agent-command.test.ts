import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { agentLogging, proxyFlags, waitFlags } from '../../src/cli/agent-flags.ts'
import { agentScopes } from '../../src/logging/levels.ts'
import { agentScript } from '../harness/commands.ts'
import { runCommand } from '../harness/service.ts'

const { version } = JSON.parse(readFileSync(fileURLToPath(new URL('../../package.json', import.meta.url)), 'utf8')) as { version: string }
const run = (args: readonly string[], env: Record<string, string> = {}) => runCommand(args, env, agentScript)

/** Answers with a change of protocol that the client did not request. */
const switchProtocol = (_: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(101, { connection: 'upgrade', upgrade: 'other' }).end()

describe('the command pilot-agent', () => {
  const servers: Server[] = []
  const serve = async (host: string, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> => {
    const server = createServer(answer)
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, host, resolve))
    return (server.address() as AddressInfo).port
  }
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections()
      server.close()
    }
  })

  it('prints its version in every format', async () => {
    expect((await run(['version', '-s'])).stdout).to.equal(`${version}\n`)
    expect((await run(['version'])).stdout).to.match(/^version\.BuildInfo\{Version:"[^"]+", GitRevision:/)
    expect(JSON.parse((await run(['version', '-o', 'json'])).stdout)).to.have.nested.property('clientVersion.version', version)
    expect((await run(['version', '-o', 'yaml'])).stdout).to.match(/^clientVersion:\n {2}golang_version: node /)
    const refused = await run(['version', '-o', 'xml'])
    expect([refused.code, refused.stderr]).to.deep.equal([255, "Error: --output must be 'yaml' or 'json'\n"])
  })

  it('lists its commands, also without arguments, and every flag that has an effect on each command', async () => {
    const alone = await run([])
    expect(alone.code).to.equal(0)
    for (const name of ['proxy', 'request', 'version', 'wait']) expect(alone.stdout).to.match(new RegExp(`^  ${name} `, 'm'))
    for (const [name, table] of Object.entries({ proxy: { ...proxyFlags, ...agentLogging }, wait: { ...waitFlags, ...agentLogging } })) {
      const { code, stdout } = await run([name, '--help'])
      expect(code).to.equal(0)
      for (const flag of Object.keys(table)) expect(stdout, name).to.contain(`--${flag}`)
    }
    expect((await run(['request', '--help'])).stdout)
      .to.contain('USAGE')
      .and.not.to.contain('--log_')
  })

  it('reads the variables of mesh-iptables by the names of the reference too', async () => {
    const settings = async (env: Record<string, string>) => {
      const { code, stdout } = await run(['mesh-iptables', '--dry-run', '--restore-format', '-i', '*', '-b', '*'], env)
      return [code, ...(stdout.match(/^(PROXY_PORT|DNS_CAPTURE)=.*$/gm) ?? [])]
    }
    expect(await settings({})).to.deep.equal([0, 'PROXY_PORT=', 'PROXY_PORT=15001', 'DNS_CAPTURE=false'])
    expect(await settings({ ENVOY_PORT: '16001', ISTIO_META_DNS_CAPTURE: 'true' })).to.deep.equal([
      ...[0, 'PROXY_PORT=16001', 'PROXY_PORT=16001', 'DNS_CAPTURE=true'],
    ])
  })

  it('generates shell completion', async () => {
    const { code, stdout } = await run(['autocomplete', 'script', 'bash'])
    expect([code, stdout]).to.deep.include(0)
    expect(stdout).to.match(/^source '.*\/pilot-agent\.bash'\n$/)
  })

  it('rejects unknown commands, flags and values with status 255', async () => {
    for (const [args, reason] of [
      [['prxy'], /prxy.* not (a pilot-agent command|found)/i],
      [['wait', '--periodMilis', '1'], /^Error: Nonexistent flag: --periodMilis; did you mean --periodMillis\?\n$/],
      [['wait', '--timeoutSeconds', 'soon'], /^Error: invalid argument "soon" for "--timeoutSeconds"/],
      [['wait', '--url', 'ftp://x'], /^Error: --url: "ftp:\/\/x" is not an HTTP URL\n$/],
      [['request', 'GET'], /^Error: Missing 1 required arg:\npath {2}request path\n$/],
      [['request', 'GET', '/', '--log_output_level', 'sdss:debug'], /^Error: --log_output_level: unknown scope "sdss"; scopes are .*\bxdsproxy\b/],
      [['proxy', '--stsPort', '-1'], /^Error: invalid argument "-1" for "--stsPort"/],
    ] as const) {
      const { code, stderr } = await run(args)
      expect(code, args.join(' ')).to.equal(255)
      expect(stderr).to.match(reason)
    }
  })

  it('accepts every log scope of the specification', async () => {
    expect(agentScopes).to.have.length(25)
    const levels = agentScopes.filter((scope) => scope !== 'all').map((scope) => `${scope}:debug`)
    expect((await run(['version', '--short', '--log_output_level', levels.join(), '--log_caller', 'all'])).code).to.equal(0)
  })

  describe('pilot-agent request', () => {
    it("prints the response of the proxy's admin port, on either loopback address", async () => {
      for (const host of ['127.0.0.1', '::1']) {
        let body = ''
        const port = await serve(host, (request, response) => {
          request.on('data', (bytes) => (body += bytes)).on('end', () => response.end(`${request.method} ${request.url} ${body}`))
        })
        const env = { PROXY_CONFIG: JSON.stringify({ proxyAdminPort: port }) }
        const { code, stdout } = await run(['request', 'post', 'logging?level=debug', 'text'], env)
        expect([code, stdout]).to.deep.equal([0, 'POST /logging?level=debug text\n'])
      }
    })

    it('exits with 255 for a status above 399, except 404', async () => {
      const port = await serve('127.0.0.1', (request, response) => {
        response.statusCode = Number(request.url?.slice(1))
        response.end('why')
      })
      const env = { PROXY_CONFIG: JSON.stringify({ proxyAdminPort: port }) }
      expect(await run(['request', 'GET', '/404'], env)).to.include({ code: 0, stdout: 'why\n' })
      expect(await run(['request', 'GET', '/503'], env)).to.include({ code: 255, stderr: 'Error: received unsuccessful status code 503: why\n' })
    })

    it('reports a response with status 101 as an error', async () => {
      const port = await serve('127.0.0.1', switchProtocol)
      const { code, stderr } = await run(['request', 'GET', '/'], { PROXY_CONFIG: `proxyAdminPort: ${port}` })
      expect([code, stderr]).to.deep.equal([255, `Error: localhost:${port}: HTTP status 101\n`])
    })

    it('reports that nothing listens on the admin port', async () => {
      const port = await freePort()
      const { code, stderr } = await run(['request', 'GET', '/'], { PROXY_CONFIG: `proxyAdminPort: ${port}` })
      expect([code, stderr]).to.deep.equal([255, `Error: localhost:${port}: no process listens there\n`])
    })
  })

  describe('pilot-agent wait', () => {
    it('exits with 0 when the proxy is ready, and logs it', async () => {
      let asked = 0
      const port = await serve('127.0.0.1', (_, response) => response.writeHead(++asked < 3 ? 503 : 200).end())
      const { code, stdout } = await run([
        ...['wait', '--url', `http://localhost:${port}/healthz/ready`, '--periodMillis', '10', '--requestTimeoutMillis', '30000', '--log_as_json'],
        ...['--log_output_level', 'default:debug'],
      ])
      const lines = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as { msg: string })
      expect([code, asked, lines[0]?.msg, lines.at(-1)?.msg]).to.deep.equal([
        0,
        3,
        'waiting for the proxy to be ready, at most 60 s',
        'the proxy is ready',
      ])
      expect(lines[1]?.msg).to.match(/^not ready yet: .*answered with status 503$/)
    })

    it('exits with 255 after the timeout, with the last reason', async () => {
      const silent = await serve('127.0.0.1', () => undefined)
      const nobody = await freePort()
      const switching = await serve('127.0.0.1', switchProtocol)
      // Those that are answered have time enough for the answer, also on a busy machine.
      for (const [port, seconds, requestMs, reason] of [
        [silent, 1, 50, /no answer within 50 ms/],
        [switching, 3, 2900, /HTTP status 101/],
        [nobody, 3, 2900, /ECONNREFUSED/],
      ] as const) {
        const times = ['--timeoutSeconds', String(seconds), '--requestTimeoutMillis', String(requestMs), '--periodMillis', '60000']
        const { code, stderr, ms } = await run(['wait', '--url', `http://127.0.0.1:${port}/`, ...times])
        expect(code).to.equal(255)
        expect(stderr)
          .to.match(new RegExp(`^Error: the proxy is not ready after ${seconds} s: `))
          .and.to.match(reason)
        expect(ms, 'less than the period').to.be.lessThan(60_000)
      }
      expect(await run(['wait', '--timeoutSeconds', '0'])).to.include({
        code: 255,
        stderr: 'Error: the proxy is not ready after 0 s: no request was made\n',
      })
    })
  })
})
