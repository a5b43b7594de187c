import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { grpcCall } from '../harness/grpc-call.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

describe('pilot-discovery request and the admin socket', () => {
  const services = [new Service(), new Service({ env: { ENABLE_DEBUG_ON_HTTP: 'false' } })]
  const socket = (service: Service) => service.env.MESHD_ADMIN_SOCKET as string
  const ask = (service: Service, ...args: string[]) => runCommand(['request', ...args], { MESHD_ADMIN_SOCKET: socket(service) })
  let ctrlzPort = 0
  before(async () => {
    ctrlzPort = await freePort()
    services[1]?.flags.push('--ctrlz_port', String(ctrlzPort))
    await Promise.all(services.map((service) => service.start()))
  })
  after(() => Promise.all(services.map((service) => service.dispose())))

  it('reach the server of the named socket, whatever its ports, and also if debug pages are off', async () => {
    for (const [index, service] of services.entries()) {
      service.write(
        'a.yaml',
        `apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: of-${index}, namespace: ns}\nspec: {egress: [{hosts: ["./*"]}]}\n`,
      )
      await until('the object', async () => (await ask(service, 'GET', '/debug/configz')).stdout.includes(`of-${index}`))
      expect((await ask(service, 'get', 'metrics')).stdout).to.contain('pilot_services 0')
      expect((await ask(service, 'GET', '/ready')).code).to.equal(0)
    }
  })

  it('answer the admin service with debug pages off, which no port does then', async () => {
    const off = services[1] as Service
    const path = '/mesh.admin.v1.AdminService/ListActors'
    const options = { method: 'POST', path, headers: { 'content-type': 'application/json' } }
    const status = (to: object) =>
      new Promise<number | undefined>((resolve, reject) => {
        const asked = request({ ...options, ...to }, (answer) => resolve(answer.resume().statusCode))
        asked.on('error', reject).end('{}')
      })
    const statuses = [{ socketPath: socket(off) }, ...[off.httpPort, off.monitoringPort, ctrlzPort].map((port) => ({ host: '127.0.0.1', port }))]
    expect(await Promise.all(statuses.map(status))).to.deep.equal([200, 404, 404, 404])
    expect((await grpcCall(`http://127.0.0.1:${off.grpcPort}`, path, Buffer.alloc(0))).status, 'unimplemented').to.equal('12')
  })

  it('send forms, print 404 responses, and fail for other error statuses', async () => {
    const [service] = services as [Service]
    expect((await ask(service, 'POST', '/debug/sidecarz', 'proxyID=nobody')).stdout).to.contain('Proxy not connected')
    const { code, stderr } = await ask(service, 'DELETE', '/debug/configz')
    expect([code, stderr]).to.deep.equal([
      255,
      'Error: received unsuccessful status code 405: method DELETE is not allowed here; allowed: GET, POST\n',
    ])
  })

  it('print status and body as JSON with --json, and errors too', async () => {
    const [service] = services as [Service]
    const json = async (...args: string[]) => JSON.parse((await ask(service, ...args, '--json')).stdout)
    const configz = await json('GET', '/debug/configz')
    expect([configz.status, Array.isArray(configz.body)]).to.deep.equal([200, true])
    expect((await json('GET', '/metrics')).body)
      .to.be.a('string')
      .that.contains('pilot_services 0')
    expect(await json('POST', '/debug/sidecarz', 'proxyID=nobody')).to.deep.include({ status: 404 })
    expect(await json('DELETE', '/debug/configz')).to.deep.equal({
      error: 'received unsuccessful status code 405: method DELETE is not allowed here; allowed: GET, POST',
    })
  })

  it('refuse debug pages to cross-site requests of browsers and to rebound host names', async () => {
    const [service] = services as [Service]
    const status = (headers: Record<string, string>, method = 'GET', path = '/debug/adsz') =>
      new Promise<number>((resolve, reject) => {
        const asked = request({ host: '127.0.0.1', port: service.httpPort, path, method, headers }, (answer) => {
          answer.resume()
          resolve(answer.statusCode ?? 0)
        })
        asked.on('error', reject).end()
      })
    expect(await status({})).to.equal(200)
    expect(await status({ host: 'localhost' })).to.equal(200)
    expect(await status({ host: 'rebound.example' })).to.equal(403)
    expect(await status({ 'sec-fetch-site': 'cross-site' })).to.equal(403)
    expect(await status({ origin: 'http://elsewhere.example' }, 'POST', '/debug/adsz?push=true')).to.equal(403)
    for (const [name, value, refused] of [
      ['content-type', 'text/plain', 415],
      ['content-type', 'application/x-www-form-urlencoded', 200],
      ['x-requested-with', 'x', 403],
    ] as const)
      expect(await status({ [name]: value }, 'POST', '/debug/adsz?push=true'), value).to.equal(refused)
    expect(await status({ 'x-mesh-introspection': '1' }, 'POST', '/debug/adsz?push=true'), 'an action without a token').to.equal(403)
    expect((await ask(service, 'POST', '/debug/adsz', 'push=true')).stdout).to.contain('Pushed to')
    expect(await status({ 'x-mesh-introspection': '1', host: 'rebound.example' }, 'POST', '/debug/adsz?push=true')).to.equal(403)
    expect(await status({ host: 'rebound.example' }, 'GET', '/ready')).to.equal(200)
  })

  it('report the missing server with the path of the socket', async () => {
    const nowhere = join(tmpdir(), 'mesh-nowhere/admin.sock')
    const { code, stderr } = await runCommand(['request', 'GET', '/ready'], { MESHD_ADMIN_SOCKET: nowhere })
    expect(code).to.equal(255)
    expect(stderr).to.equal(
      `Error: no server listens on the admin socket ${nowhere}: run this where the server was started, or name its socket in MESHD_ADMIN_SOCKET\n`,
    )
  })

  it('replace the socket that a killed server left behind', async () => {
    const [service] = services as [Service]
    await service.stop('SIGKILL')
    expect(statSync(socket(service)).isSocket()).to.equal(true)
    expect((await ask(service, 'GET', '/ready')).stderr).to.contain('no server listens on the admin socket')
    await service.start()
    expect((await ask(service, 'GET', '/version')).stdout).to.match(/^0\.1\.0-\S+-Source\n$/)
  })

  it('do not replace the socket of a running server: a configured path fails the start', async () => {
    const [service] = services as [Service]
    const dir = mkdtempSync(join(tmpdir(), 'mesh-test-'))
    const addresses = ['--grpcAddr', '--httpAddr', '--monitoringAddr'].flatMap((flag) => [flag, '127.0.0.1:0'])
    const { code, stderr } = await runCommand(['discovery', '--registries', 'Mock', '--configDir', dir, ...addresses], {
      MESHD_ADMIN_SOCKET: socket(service),
    })
    rmSync(dir, { recursive: true, force: true })
    expect([code, stderr]).to.deep.equal([
      255,
      `Error: environment variable MESHD_ADMIN_SOCKET: admin socket: ${socket(service)}: another server already listens on it\n`,
    ])
  })
})
