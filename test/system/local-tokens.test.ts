/** Local agents get their token and roots from the discovery service through its admin socket. */
import { statSync } from 'node:fs'
import { expect } from 'chai'
import { askServer } from '../../actors/http/admin-request.ts'
import { freePort } from '../../bench/ports.ts'
import { AgentSecrets } from '../harness/agent-secrets.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

describe('a token from the admin socket', () => {
  const at = new AgentSecrets()
  let service: Service
  let port = 0
  before(async () => {
    port = await freePort()
    service = new Service({ flags: ['--secureGRPCAddr', `127.0.0.1:${port}`] })
    await service.start()
  })
  after(async () => {
    await at.dispose()
    await service.dispose()
  })

  it('names the workload, is valid for an hour and comes with the roots, which is all an agent needs', async () => {
    const files = { tokenFile: at.path('a/token'), rootsFile: at.path('b/root-cert.pem') }
    const state = await at.start({
      certificate: {
        authority: {
          address: { host: '127.0.0.1', port, isPlain: false, serverName: '127.0.0.1' },
          credentials: { roots: { files: [files.rootsFile], isPinned: false, learned: undefined }, tokenFile: files.tokenFile, pair: undefined },
        },
        cloud: undefined,
        clusterId: '',
        identity: 'spiffe://cluster.local/ns/shop/sa/web',
        key: { type: 'ec', format: 'traditional' },
        ttlSeconds: 600,
        graceRatio: 0.5,
        keptIn: undefined,
      },
      fetcher: { from: 'local', socket: service.env.MESHD_ADMIN_SOCKET as string, namespace: 'shop', account: 'web', ...files },
    })
    await until('a certificate', () => state().identity === 'spiffe://cluster.local/ns/shop/sa/web')
    const [, claims = ''] = (at.read('a/token') as string).split('.')
    const { sub, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { sub: string; exp: number }
    expect(sub).to.equal('system:serviceaccount:shop:web')
    expect(exp - Date.now() / 1000).to.be.within(3500, 3601)
    expect([statSync(files.tokenFile).mode & 0o777, at.read('b/root-cert.pem')?.match(/BEGIN CERTIFICATE/g)?.length]).to.deep.equal([0o600, 1])
    await service.output.says('token made for shop/web')
    service.output.lacks(claims)
  })

  it('is refused for invalid names', async () => {
    for (const [form, reason] of [
      ['namespace=Shop&account=web', 'namespace: "Shop" is not the name of a namespace'],
      ['namespace=shop&account=a:b', 'account: "a:b" is not the name of a service account'],
      ['', 'namespace: "" is not'],
    ]) {
      const { status, body } = await askServer({ method: 'POST', path: '/token', form }, service.env)
      expect([status, body.startsWith(reason as string)]).to.deep.equal([422, true])
    }
    expect((await askServer({ method: 'GET', path: '/token' }, service.env)).status).to.equal(405)
  })

  it('is not available over the network', async () => {
    for (const where of [service.httpPort, service.monitoringPort])
      for (const method of ['GET', 'POST']) {
        const answer = await fetch(`http://127.0.0.1:${where}/token?namespace=shop&account=web`, { method })
        expect([method, answer.status]).to.deep.equal([method, 404])
      }
  })
})
