/** The token service through the real command, with a stand-in for the cloud's services. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { standInProxy } from '../harness/stand-in-proxy.ts'
import { until } from '../harness/until.ts'

describe('the token service of pilot-agent', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-stand-in-'))
  const binary = join(folder, 'proxy')
  const agents: Agent[] = []
  const cloud = createServer((request, response) => {
    request.resume()
    response.end(request.url === '/federated' ? '{"access_token":"federated-secret"}' : '{"accessToken":"access-secret"}')
  })

  before(async () => {
    writeFileSync(binary, standInProxy(), { mode: 0o755 })
    await new Promise<void>((resolve) => cloud.listen(0, '127.0.0.1', resolve))
  })
  after(() => {
    cloud.close()
    rmSync(folder, { recursive: true, force: true })
  })
  afterEach(async () => {
    for (const one of agents.splice(0)) await one.dispose()
  })

  function agent(flags: readonly string[], env: Record<string, string> = {}): Agent {
    const made = new Agent({ binary, flags, env, proxyConfig: { customConfigFile: 'bootstrap.json' } })
    made.write('bootstrap.json', '{}')
    agents.push(made)
    return made
  }
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: 'subject-secret',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
  }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }

  it('exchanges tokens, none of which appears in log, metrics or status page', async () => {
    const { port } = cloud.address() as AddressInfo
    const stsPort = await freePort()
    const one = agent([`--stsPort=${stsPort}`, '--log_output_level=all:debug'], {
      CLOUD_METADATA: 'shop|42|east|us-east1-b',
      CLOUD_FEDERATED_TOKEN_URL: `http://127.0.0.1:${port}/federated`,
      CLOUD_ACCESS_TOKEN_URL: `http://127.0.0.1:${port}/access`,
    })
    await one.start()
    const answer = await fetch(`http://127.0.0.1:${stsPort}/token`, { method: 'POST', headers, body })
    expect(answer.status).to.equal(200)
    expect(await answer.json()).to.include({ access_token: 'access-secret', token_type: 'Bearer' })
    const pages = [`http://127.0.0.1:${stsPort}/stsStatus`, `http://127.0.0.1:${one.statusPort}/stats/prometheus`]
    const shown = await Promise.all(pages.map(async (page) => (await fetch(page)).text()))
    expect(shown[0]).to.include('access token')
    expect(shown[1]).to.match(/^mesh_agent_num_outgoing_requests\{request_type="token_exchange"\} 2$/m)
    expect([...shown, one.output].join('\n')).not.to.include('-secret')
  })

  it('reports an unknown plugin, and exits with 1 if its port is taken', async () => {
    const { port } = cloud.address() as AddressInfo
    const stsPort = await freePort()
    const one = agent([`--stsPort=${stsPort}`, '--tokenManagerPlugin=Other'])
    await one.start()
    await until('the warning', () => one.output.includes('tokens cannot be exchanged: --tokenManagerPlugin "Other" is not known'))
    const answer = await fetch(`http://127.0.0.1:${stsPort}/token`, { method: 'POST', headers, body })
    expect(answer.status).to.equal(500)
    expect(await answer.json()).to.include({ error: 'invalid_target' })
    const other = agent([`--stsPort=${port}`])
    await other.launch()
    expect(await other.ended()).to.equal(1)
    expect(other.output).to.contain(`--stsPort ${port}: listen EADDRINUSE`)
  })
})
