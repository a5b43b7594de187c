import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { Envoy, envoysWith } from '../harness/envoy.ts'
import { Issuer } from '../harness/issuer.ts'
import { policyDocument, workloadSidecar } from '../harness/policies.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const allowLoopback = { PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1', PILOT_JWT_PUB_KEY_REFRESH_INTERVAL: '300ms' }

for (const { version, path: binary, side, source } of envoysWith(
  { side: 'gateway', source: 'jwksUri' },
  { side: 'gateway', source: 'jwks' },
  { side: 'sidecar', source: 'jwks' },
  { side: 'sidecar', source: 'jwksUri' },
)) {
  describe(`the six rules, Envoy ${version} as ${side}, keys by ${source}`, () => {
    const service = new Service({ env: allowLoopback })
    const backend = new HttpBackend('app')
    const issuer = new Issuer('issuer@mesh.example')
    let envoy: Envoy
    let port = 0
    const address = '127.0.0.5'

    const authentication = () =>
      policyDocument(
        'RequestAuthentication',
        'tokens',
        `{selector: {matchLabels: {app: app}}, jwtRules: [{issuer: ${issuer.name}, ${source === 'jwks' ? `jwks: '${issuer.jwks}'` : `jwksUri: '${issuer.jwksUri}'`}}]}`,
      )
    const ask = async (token?: string) =>
      call(address, port, '/', { host: 'app.example.com', headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })
    const principal = `'${issuer.name}/subject'`

    before(async () => {
      port = await freePort()
      await Promise.all([backend.start(), issuer.start()])
      service.write(
        'app.yaml',
        side === 'gateway'
          ? `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: app, namespace: shop}
spec: {hosts: [app.example.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${backend.port}}}]}
---
apiVersion: networking.mesh.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: app}, servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: ['*'], bind: ${address}}]}
---
apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: app, namespace: shop}
spec: {hosts: [app.example.com], gateways: [edge], http: [{route: [{destination: {host: app.example.com, port: {number: 80}}}]}]}
`
          : workloadSidecar(address, port, backend.port),
      )
      await service.start()
      envoy = new Envoy({
        binary,
        delta: version === '1.40',
        grpcPort: service.grpcPort,
        nodeId: `${side === 'gateway' ? 'router' : 'sidecar'}~${address}~app.shop~shop.svc.cluster.local`,
        metadata: { NAMESPACE: 'shop', LABELS: { app: 'app' }, ...(side === 'sidecar' ? { INTERCEPTION_MODE: 'NONE' } : {}) },
      })
      await envoy.start()
      await until('the workload to answer', async () => (await ask().catch(() => ({ status: 0 }))).status === 200)
      service.write('authentication.yaml', authentication())
      await until('tokens to be checked', async () => (await ask('nonsense')).status === 401)
      await until('the keys', async () => (await ask(await issuer.token())).status === 200)
    })
    after(async () => {
      expect(await service.rejections()).to.deep.equal([])
      expect(await envoy.rejected()).to.equal(0)
      await Promise.all([envoy.dispose(), service.dispose(), backend.stop(), issuer.stop()])
    })

    it('1: a request with an invalid token is answered 401', async () => {
      const other = await new Issuer(issuer.name).start()
      await other.stop()
      for (const token of ['nonsense', await other.token(), await issuer.token({ exp: 1 }), await issuer.token({ iss: 'somebody else' })])
        expect((await ask(token)).status, token).to.equal(401)
    })

    it('2: a request without a token is allowed while there is no AuthorizationPolicy', async () => {
      expect((await ask()).status).to.equal(200)
    })

    it('3 and 4: a policy for principal <iss>/<sub> allows its token, and denies other and no tokens with 403', async () => {
      service.write(
        'authorization.yaml',
        policyDocument(
          'AuthorizationPolicy',
          'who',
          `{selector: {matchLabels: {app: app}}, action: ALLOW, rules: [{from: [{source: {requestPrincipals: [${principal}]}}]}]}`,
        ),
      )
      await until('the policy to count', async () => (await ask()).status === 403)
      expect((await ask(await issuer.token())).status).to.equal(200)
      expect((await ask(await issuer.token({ sub: 'another' }))).status).to.equal(403)
      const denied = await ask()
      expect([denied.status, denied.body]).to.deep.equal([403, 'RBAC: access denied'])
    })

    it('5 and 6: a policy with a required group allows tokens with that group, and denies others with 403', async () => {
      service.write(
        'authorization.yaml',
        policyDocument(
          'AuthorizationPolicy',
          'who',
          `{selector: {matchLabels: {app: app}}, action: ALLOW, rules: [{from: [{source: {requestPrincipals: [${principal}]}}], when: [{key: 'request.auth.claims[groups]', values: [group1]}]}]}`,
        ),
      )
      await until('the policy to count', async () => (await ask(await issuer.token())).status === 403)
      expect((await ask(await issuer.token({ groups: ['group2', 'group1'] }))).status).to.equal(200)
      expect((await ask(await issuer.token({ groups: ['group2'] }))).status).to.equal(403)
      expect((await ask(await issuer.token())).status).to.equal(403)
    })

    if (source === 'jwksUri')
      it('a rotation of the keys at jwksUri takes effect without a restart: new tokens pass, old ones are answered 401', async () => {
        const old = await issuer.token({ groups: ['group1'] })
        await issuer.rotate('ES256')
        await until('the new key', async () => (await ask(await issuer.token({ groups: ['group1'] }))).status === 200)
        expect((await ask(old)).status).to.equal(401)
      })
  })
}
