import { createServer } from 'node:http'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Issuer } from '../harness/issuer.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const authentication = (name: string, rule: string) =>
  `apiVersion: security.mesh.io/v1\nkind: RequestAuthentication\nmetadata: {name: ${name}, namespace: ns}\nspec: {jwtRules: [${rule}]}\n`

/** Returns the decision of a proxy of the namespace on a token. */
async function verdict(service: Service, token: string): Promise<{ status: number; reason: string }> {
  return service.debug(`authz?proxyID=one.ns&header=${encodeURIComponent(`authorization: Bearer ${token}`)}`)
}

describe('key sets of RequestAuthentications', () => {
  it('are not fetched from loopback, link-local or metadata addresses, in any notation', async () => {
    const issuer = await new Issuer('inside').start()
    const service = new Service()
    const hosts = ['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]', '0.0.0.0', '2130706433', '0x7f.1', '169.254.169.254', '[fd00:ec2::254]']
    for (const [index, host] of hosts.entries())
      service.write(`${index}.yaml`, authentication(`p${index}`, `{issuer: i${index}, jwksUri: 'http://${host}:${issuer.port}/jwks'}`))
    try {
      await service.start()
      for (const host of hosts)
        await service.output.says(new RegExp(`keys of http://${host.replace(/[.[\]]/g, '\\$&')}.*(loopback|unspecified|linkLocal|metadata)`))
      expect(issuer.fetches).to.equal(0)
      expect(await service.metrics()).to.match(/^pilot_jwks_resolver_network_fetch_fail_total [1-9]/m)
    } finally {
      await service.dispose()
      await issuer.stop()
    }
  })

  describe('from an allowed address', () => {
    const service = new Service({
      env: { PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1', PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: '200ms', PILOT_DEBOUNCE_AFTER: '10ms' },
    })
    const issuer = new Issuer('https://issuer.example')
    let client: XdsClient

    before(async () => {
      await issuer.start()
      service.write('tokens.yaml', authentication('tokens', `{issuer: '${issuer.name}', jwksUri: '${issuer.jwksUri}'}`))
      await service.start()
      client = await new XdsClient(service.grpcPort, sidecarNode('10.8.0.1', 'one', 'ns'), true).connect().ready()
    })
    after(async () => {
      client.close()
      await service.dispose()
      await issuer.stop()
    })
    const accepted = async (token: string) => (await verdict(service, token)).status === 200

    it('are fetched before the first proxy is served', async () => {
      expect(await verdict(service, await issuer.token())).to.deep.include({ status: 200, requestPrincipal: `${issuer.name}/subject` })
      expect(await service.metrics()).to.match(/^pilot_jwks_resolver_network_fetch_success_total [1-9]/m)
    })

    it('keep their last good state while the issuer is down or answers nonsense', async () => {
      const token = await issuer.token()
      for (const answer of ['not JSON', '{"keys":[]}', '{"keys":[{"kty":"oct","k":"x"}]}', '{"keys":[{"kty":"RSA"}]}', 'x'.repeat(2_000_000)]) {
        const { fetches } = issuer
        issuer.answer = (_, response) => response.end(answer)
        await until('another try', () => issuer.fetches > fetches + 1)
        expect(await accepted(token), answer.slice(0, 40)).to.equal(true)
      }
      issuer.answer = undefined
      await issuer.rotate()
      await until('the new key', async () => accepted(await issuer.token()))
      expect(await accepted(token)).to.equal(false)
    })

    it('are not fetched through a redirect to a forbidden address', async () => {
      let reached = 0
      const inside = createServer((_, response) => {
        reached++
        response.end(issuer.jwks)
      })
      const port = await freePort()
      await new Promise<void>((resolve) => inside.listen(port, '127.0.0.2', resolve))
      const redirecting = await new Issuer('https://redirecting.example').start()
      redirecting.answer = (_, response) => response.writeHead(302, { location: `http://127.0.0.2:${port}/jwks` }).end()
      service.write('redirecting.yaml', authentication('redirecting', `{issuer: '${redirecting.name}', jwksUri: '${redirecting.jwksUri}'}`))
      await service.output.says('127.0.0.2 is a loopback address')
      expect(reached).to.equal(0)
      expect((await verdict(service, await redirecting.token())).status).to.equal(401)
      // Other issuers are not affected.
      expect(await accepted(await issuer.token())).to.equal(true)
      service.remove('redirecting.yaml')
      await redirecting.stop()
      inside.close()
    })

    it('are fetched through a redirect to an allowed address', async () => {
      const other = await new Issuer('https://other.example').start()
      other.answer = (request, response) =>
        request.url === '/elsewhere' ? response.end(other.jwks) : response.writeHead(307, { location: '/elsewhere' }).end()
      service.write('other.yaml', authentication('other', `{issuer: '${other.name}', jwksUri: '${other.jwksUri}'}`))
      await until('the keys', async () => accepted(await other.token()))
      service.remove('other.yaml')
      await other.stop()
    })

    it("are found through the issuer's OpenID configuration if no URL is given", async () => {
      const open = new Issuer('')
      await open.start()
      Object.assign(open, { name: `http://127.0.0.1:${open.port}` })
      service.write('open.yaml', authentication('open', `{issuer: '${open.name}'}`))
      await until('the keys', async () => accepted(await open.token()))
      service.remove('open.yaml')
      await open.stop()
    })

    it('that arrive too slowly are abandoned after a timeout without delaying anything else', async () => {
      const slow = await new Issuer('https://slow.example').start()
      slow.answer = (_, response) => void response.writeHead(200).write('{')
      service.write('slow.yaml', authentication('slow', `{issuer: '${slow.name}', jwksUri: '${slow.jwksUri}'}`))
      await until('the fetch', () => slow.fetches > 0)
      expect(await accepted(await issuer.token())).to.equal(true)
      await service.output.says('no answer within 5000 ms')
      expect((await verdict(service, await slow.token())).status).to.equal(401)
      service.remove('slow.yaml')
      await slow.stop()
    })
  })
})
