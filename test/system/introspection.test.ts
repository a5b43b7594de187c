/** ControlZ of the real command. */

import { createServer, type Server } from 'node:net'
import { expect } from 'chai'
import { askServer } from '../../actors/http/admin-request.ts'
import { freePort } from '../../bench/ports.ts'
import { anyPorts, Launched, launchers } from '../harness/launched.ts'
import { textOf } from '../harness/page-text.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const secret = 'swordfish-of-another-program'
const marked = { 'x-mesh-introspection': '1' }

describe('ControlZ', () => {
  let port = 0
  const service = new Service({
    env: { OTHER_PROGRAM_PASSWORD: secret, JWT_RULE: '{"issuer": "https://issuer.invalid", "audiences": ["mine"]}' },
    flags: ['--writers', '2'],
  })
  const ask = (path: string, init: RequestInit = {}) => fetch(`http://127.0.0.1:${port}${path}`, init)
  const overNetwork = (path: string, form: Record<string, string>, headers: Record<string, string> = marked) =>
    ask(path, { method: 'POST', headers, body: new URLSearchParams(form) })
  const post = (path: string, form: Record<string, string>) =>
    askServer({ method: 'POST', path, form: new URLSearchParams(form).toString() }, service.env)
  before(async () => {
    port = await freePort()
    service.flags.push('--ctrlz_address', '127.0.0.1', '--ctrlz_port', String(port))
    await service.start()
  })
  after(() => service.dispose())

  it('is announced at start, and has pages for people and for programs', async () => {
    await service.output.says(`ControlZ at 127.0.0.1:${port}: `)
    const home = await (await ask('/')).text()
    for (const topic of ['scope', 'mem', 'env', 'proc', 'arg', 'version', 'metric', 'signal']) {
      expect(home).to.contain(`href="/${topic}z"`)
      const page = await ask(`/${topic}z`)
      expect([page.status, page.headers.get('content-type')]).to.deep.equal([200, 'text/html; charset=utf-8'])
      expect(page.headers.get('content-security-policy')).to.contain("default-src 'none'").and.to.contain("frame-ancestors 'none'")
      const data = await ask(`/${topic}j/`)
      expect([data.status, typeof (await data.json())]).to.deep.equal([200, 'object'])
    }
    expect(await (await ask('/versionj')).json()).to.include({ version: '0.1.0', runtime: `node ${process.version}` })
    expect(await (await ask('/procj')).json()).to.include({ pid: service.pid })
    expect(await (await ask('/argj')).json()).to.include.members(['discovery', '--ctrlz_port', String(port)])
    expect(await (await ask('/metricj')).json()).to.include({ pilot_services: '0' })
    // Callers without a token may not change anything.
    expect(await (await ask('/scopez')).text())
      .to.contain('You may only look: this action changes state: it needs the admin socket (pilot-discovery request POST /scopej ')
      .and.not.contain('data-form')
    expect(await (await ask('/memz')).text()).not.to.contain('You may only look')
  })

  it('tells the health of the service on its port and on the other ports of HTTP', async () => {
    const check = (at: number, request: object) =>
      fetch(`http://127.0.0.1:${at}/grpc.health.v1.Health/Check`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(request),
      })
    for (const at of [port, service.httpPort, service.monitoringPort])
      for (const name of ['', 'mesh.admin.v1.AdminService', 'grpc.health.v1.Health'])
        expect(await (await check(at, { service: name })).json(), `${at} ${name}`).to.deep.equal({ status: 'SERVING' })
    expect((await check(port, { service: 'no.Service' })).status).to.equal(404)
  })

  it('shows neither values of foreign variables nor keys', async () => {
    const values = Object.fromEntries(
      ((await (await ask('/envj')).json()) as { name: string; value: string }[]).map(({ name, value }) => [name, value]),
    )
    expect(values).to.include({ PILOT_MOCK_SERVICES: '0', OTHER_PROGRAM_PASSWORD: '(not shown)', JWT_RULE: '(not shown)' })
    expect(await (await ask('/envz')).text())
      .to.contain('OTHER_PROGRAM_PASSWORD')
      .and.not.to.contain(secret)
  })

  it('changes the log level of all threads', async () => {
    const connect = async (name: string) => {
      const client = await new XdsClient(service.grpcPort, sidecarNode('10.7.0.1', name, 'shop'), true).connect().ready()
      client.close()
    }
    await connect('before')
    await service.output.says('~before.shop')
    const answer = await post('/scopej', { scope: 'ads', output_level: 'error' })
    expect(answer).to.deep.equal({ status: 200, body: 'scope ads: output_level=error\n' })
    await service.output.says('ControlZ, by the admin socket: scope ads: output_level=error')
    for (let index = 0; index < 4; index++) await connect(`silent-${index}`)
    expect((await post('/scopej', { scope: 'ads', output_level: 'info' })).status).to.equal(200)
    await connect('after')
    await service.output.says('~after.shop')
    // The end of the last one may be logged after the level is back.
    service.output.lacks('new connection sidecar~10.7.0.1~silent')
  })

  it('changes nothing without a token, and refuses unknown pages and scopes', async () => {
    const change = { scope: 'ads', output_level: 'debug' }
    const refused = await overNetwork('/scopej', change)
    expect([refused.status, await textOf(refused)]).to.deep.equal([
      403,
      "this action changes state: it needs the admin socket (pilot-discovery request POST /scopej '<name>=<value>&<name>=<value>') or a token of the root namespace",
    ])
    expect((await overNetwork('/signalj', { signal: 'SIGTERM' })).status).to.equal(403)
    expect((await overNetwork('/scopej', change, { ...marked, origin: 'https://evil.example' })).status).to.equal(403)
    expect((await overNetwork('/scopej', change, { ...marked, authorization: 'Bearer x' })).status).to.equal(401)
    expect((await overNetwork('/envj', {})).status).to.equal(405)
    expect(await post('/scopej', { scope: 'ads', output_level: 'loud' })).to.deep.equal({
      status: 422,
      body: 'output_level: unknown level "loud"; levels are debug, info, warn, error, fatal, none\n',
    })
    expect((await post('/signalj', { signal: 'SIGKILL' })).status).to.equal(422)
    expect((await post('/envj', {})).status).to.equal(404)
    const scopes = (await (await ask('/scopej')).json()) as { name: string; output_level: string }[]
    expect(scopes.find(({ name }) => name === 'ads')?.output_level).to.equal('info')
  })

  it('changes something with a token of the root namespace', async () => {
    const { stdout } = await runCommand(['token', '--namespace', 'mesh-system', '--service-account', 'operator'], service.env)
    const authorization = `Bearer ${stdout.trim()}`
    const answer = await overNetwork('/scopej', { scope: 'ads', log_callers: 'false' }, { authorization })
    expect([answer.status, await textOf(answer)]).to.deep.equal([200, 'scope ads: log_callers=false'])
    expect(await (await ask('/scopez', { headers: { authorization } })).text()).to.contain('data-form="scope=ads"')
    // One click does not end the service.
    expect(await (await ask('/signalz', { headers: { authorization } })).text()).to.match(/<button [^>]*data-form="signal=SIGTERM" data-question=/)
  })

  it('answers tools of the reference: single scopes, this process, and its end', async () => {
    const { stdout } = await runCommand(['token', '--namespace', 'mesh-system', '--service-account', 'operator'], service.env)
    const headers = { authorization: `Bearer ${stdout.trim()}` }
    const put = (path: string, body: unknown, init: RequestInit = { headers }) => ask(path, { ...init, method: 'PUT', body: JSON.stringify(body) })
    const wanted = { name: 'cache', description: '', output_level: 'debug', stack_trace_level: 'error', log_callers: true }
    expect((await put('/scopej/cache', wanted)).status).to.equal(202)
    expect(await (await ask('/scopej/cache')).json()).to.deep.equal({ ...wanted, description: 'Secrets of files' })
    expect((await put('/scopej/cache', { output_level: 'info' })).status).to.equal(202)
    expect(await (await ask('/scopej/cache')).json()).to.include({ output_level: 'info', stack_trace_level: 'error', log_callers: true })
    await service.output.says('scope cache: output_level=info\n')
    for (const [path, body, reason] of [
      ['/scopej/cash', {}, 'unknown scope name: cash'],
      ['/scopej/cache', { output_level: 'loud' }, 'unknown level "loud"'],
    ] as const) {
      const refused = await put(path, body)
      expect([refused.status, await refused.text()].join(' '))
        .to.contain(`400 `)
        .and.to.contain(reason)
    }
    expect((await ask('/scopej/cache', { method: 'PUT', headers, body: '{' })).status).to.equal(400)
    expect((await ask('/scopej/cash')).status).to.equal(400)
    expect((await ask('/scopej/x/y')).status).to.equal(404)
    for (const path of ['/scopej/cache', '/homej/exit']) expect((await put(path, {}, { headers: marked })).status, path).to.equal(403)
    expect((await put('/scopej', {})).status).to.equal(405)
    expect(await (await ask('/homej')).json()).to.have.all.keys('ProcessName', 'HeapSize', 'CurrentTime', 'Hostname', 'IP')
  })

  it('sends the process a signal', async () => {
    expect((await post('/signalj', { signal: 'SIGHUP' })).status).to.equal(200)
    await service.output.says('SIGHUP: reading configuration files again')
    expect((await post('/signalj', { signal: 'SIGTERM' })).status).to.equal(200)
    await service.output.says('shutting down: SIGTERM')
    expect(await service.stop()).to.equal(0)
    await service.start()
    const { stdout } = await runCommand(['token', '--namespace', 'mesh-system', '--service-account', 'operator'], service.env)
    expect((await ask('/homej/exit', { method: 'PUT', headers: { authorization: `Bearer ${stdout.trim()}` } })).status).to.equal(202)
    await service.output.says('shutting down: SIGTERM', 2)
    expect(await service.stop()).to.equal(0)
  })
})

describe('the address of ControlZ', () => {
  const taken: Server[] = []
  const take = (port: number) =>
    new Promise<void>((resolve) => {
      const server = createServer().once('error', () => resolve())
      taken.push(server.listen(port, 'localhost', () => resolve()))
    })
  after(() => {
    for (const server of taken) server.close()
  })

  it('fails the start if it was configured and is in use, and is given up otherwise', async () => {
    const port = await freePort()
    await take(port)
    const chosen = ['--ctrlz_address', 'localhost', '--ctrlz_port', String(port)]
    const { code, stderr } = await runCommand(['discovery', '--registries', 'Mock', ...anyPorts, ...chosen])
    expect([code, stderr]).to.deep.equal([255, `Error: --ctrlz_address localhost:${port}: another process listens on it already (EADDRINUSE)\n`])
    // The default port is in use, by this server or by another process.
    await take(9876)
    const service = new Launched([...launchers['the pinned Node'], 'discovery', '--registries', 'Mock', ...anyPorts.slice(0, -2)])
    try {
      await service.output.says('ControlZ is not served (set another port with --ctrlz_port; 0 disables it)')
      await service.output.says('ready after')
    } finally {
      service.dispose()
    }
  })

  it('requires a token if ENABLE_DEBUG_ON_LOOPBACK is false', async () => {
    const port = await freePort()
    const service = new Service({ env: { ENABLE_DEBUG_ON_LOOPBACK: 'false' }, flags: ['--ctrlz_address', '127.0.0.1', '--ctrlz_port', String(port)] })
    try {
      await service.start()
      await until('it to answer', async () => (await fetch(`http://127.0.0.1:${port}/envj`)).status === 401)
    } finally {
      await service.dispose()
    }
  })
})
