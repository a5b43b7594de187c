import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { grpcAuthorizer, httpAuthorizer, type RunningAuthorizer } from '../harness/authorizer.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { type Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Issuer } from '../harness/issuer.ts'
import { enforce, policyDocument, workloadEnvoy, workloadSidecar } from '../harness/policies.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

for (const { version, path: binary } of envoyBinaries()) {
  describe(`details of policies, Envoy ${version}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const backend = new HttpBackend('app')
    const issuer = new Issuer('https://issuer.example')
    const address = '127.0.0.9'
    let envoy: Envoy
    let port = 0
    let authorizers: { http: RunningAuthorizer; grpc: RunningAuthorizer }
    let round = 0

    const newerFields =
      "timeout: 5s, includeRequestHeadersInCheck: ['*-said'], includeAdditionalHeadersInCheck: {x-word: please}, headersToDownstreamOnAllow: ['x-ver*'], includeRequestBodyInCheck: {maxRequestBytes: 4}"
    const policy = (kind: string, spec: string, annotations = '') => policyDocument(kind, `p${++round}`, spec, { annotations })
    const inForce = (...documents: string[]) => enforce(service, envoy, documents)
    const ask = (headers: Record<string, string> = {}, path = '/') => call(address, port, path, { host: 'app', headers })
    const bearer = async (claims: object = {}) => ({ authorization: `Bearer ${await issuer.token(claims as Record<string, unknown>)}` })
    const jwt = (more: string) => policy('RequestAuthentication', `{jwtRules: [{issuer: '${issuer.name}', jwks: '${issuer.jwks}', ${more}}]}`)
    /** The body of a response to a request that DENY or ALLOW refuses. */
    const byPolicy = 'RBAC: access denied'
    const lastSeen = () => backend.seen.at(-1)?.headers ?? {}

    before(async () => {
      port = await freePort()
      await Promise.all([backend.start(), issuer.rotate()])
      authorizers = { http: await httpAuthorizer(), grpc: await grpcAuthorizer() }
      const ports = { http: await freePort(), grpc: await freePort(), gone: await freePort() }
      const provider = (kind: string, service: string, port: number, more = '') =>
        `{name: ${service}, ${kind}: {service: shop/${service}.shop.svc.cluster.local, port: ${port}${more}}}`
      service.write(
        'mesh-config',
        `extensionProviders:
- ${provider('envoyExtAuthzHttp', 'authz-http', ports.http, ', includeHeadersInCheck: [x-word], headersToUpstreamOnAllow: [x-verdict], pathPrefix: /check')}
- ${provider('envoyExtAuthzGrpc', 'authz-grpc', ports.grpc)}
- ${provider('envoyExtAuthzHttp', 'authz-http', ports.http, `, ${newerFields}`).replace('name: authz-http', 'name: authz-newer')}
- ${provider('envoyExtAuthzHttp', 'authz-gone', ports.gone, ", statusOnError: '503'")}
- {name: authz-unknown, envoyExtAuthzGrpc: {service: nowhere.example.com, port: 1}}
`,
      )
      const entry = (name: string, port: number, protocol: string, workload: number) =>
        `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: shop}\nspec: {hosts: [${name}.shop.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${port}, name: ${protocol}}], endpoints: [{address: 127.0.0.1, ports: {${protocol}: ${workload}}}]}\n`
      service.write(
        'app.yaml',
        [
          entry('authz-http', ports.http, 'http', authorizers.http.port),
          entry('authz-grpc', ports.grpc, 'grpc', authorizers.grpc.port),
          entry('authz-gone', ports.gone, 'http', 1),
          workloadSidecar(address, port, backend.port),
        ].join('---\n'),
      )
      await service.start()
      envoy = workloadEnvoy(service, binary, version === '1.40', address)
      await envoy.start()
      await until('the workload to answer', async () => (await ask().catch(() => ({ status: 0 }))).status === 200)
    })
    after(async () => {
      expect(await service.rejections()).to.deep.equal([])
      expect(await envoy.rejected()).to.equal(0)
      await Promise.all([envoy.dispose(), service.dispose(), backend.stop(), authorizers.http.stop(), authorizers.grpc.stop()])
    })

    it('a valid token is forwarded to the workload with forwardOriginalToken only', async () => {
      await inForce(jwt(''))
      expect((await ask(await bearer())).status).to.equal(200)
      expect(lastSeen().authorization).to.equal(undefined)
      await inForce(jwt('forwardOriginalToken: true'))
      const token = await bearer()
      await ask(token)
      expect(lastSeen().authorization).to.equal(token.authorization)
    })

    it('keys of unsupported types do not disable valid keys of the same set', async () => {
      const { keys } = JSON.parse(issuer.jwks) as { keys: object[] }
      const strange = [
        { kty: 'EC' },
        { kty: 'EC', crv: 'secp256k1', x: 'a', y: 'b' },
        { kty: 'RSA', n: '', e: '' },
        { kty: 'NEW' },
        { kty: 'OKP', crv: 'X25519', x: 'AA' },
      ]
      await inForce(
        policy(
          'RequestAuthentication',
          JSON.stringify({ jwtRules: [{ issuer: issuer.name, jwks: JSON.stringify({ keys: [...strange, ...keys] }) }] }),
        ),
      )
      expect((await ask(await bearer())).status).to.equal(200)
      expect((await ask({ authorization: 'Bearer x' })).status).to.equal(401)
    })

    it('payload and claims are forwarded in the configured headers, which clients cannot set', async () => {
      await inForce(jwt('outputPayloadToHeader: x-payload, outputClaimToHeaders: [{header: x-subject, claim: sub}, {header: x-nested, claim: a.b}]'))
      await ask(await bearer({ a: { b: 'c' } }))
      expect(JSON.parse(Buffer.from(String(lastSeen()['x-payload']), 'base64url').toString())).to.include({ iss: issuer.name, sub: 'subject' })
      expect([lastSeen()['x-subject'], lastSeen()['x-nested']]).to.deep.equal(['subject', 'c'])
      expect((await ask({ 'x-payload': 'mine', 'x-subject': 'root' })).status).to.equal(200)
      expect([lastSeen()['x-payload'], lastSeen()['x-subject']]).to.deep.equal([undefined, undefined])
    })

    it('an AuthorizationPolicy applies by selector to its own namespace, or from the root namespace to all', async () => {
      const deny = (namespace: string, selector: string) =>
        policyDocument('AuthorizationPolicy', 'd', `{${selector}action: DENY, rules: [{}]}`, { namespace })
      const statuses: number[] = []
      for (const document of [
        deny('shop', ''),
        deny('shop', 'selector: {matchLabels: {app: app}}, '),
        deny('shop', 'selector: {matchLabels: {app: other}}, '),
        deny('mesh-system', ''),
        deny('mesh-system', 'selector: {matchLabels: {app: app}}, '),
        deny('mesh-system', 'selector: {matchLabels: {app: other}}, '),
        deny('elsewhere', ''),
      ]) {
        await inForce(document)
        statuses.push((await ask()).status)
      }
      expect(statuses).to.deep.equal([403, 403, 200, 403, 403, 200, 200])
    })

    for (const kind of ['http', 'grpc'] as const) {
      it(`CUSTOM asks the authorizer over ${kind} before DENY and ALLOW, whose refusals count after its consent`, async () => {
        const custom = policy(
          'AuthorizationPolicy',
          `{action: CUSTOM, provider: {name: authz-${kind}}, rules: [{to: [{operation: {paths: ['/guarded*']}}]}]}`,
        )
        await inForce(custom)
        const { asked } = authorizers[kind]
        asked.length = 0
        expect((await ask({}, '/open')).status).to.equal(200)
        expect(asked).to.have.length(0)
        expect((await ask({}, '/guarded')).status).to.equal(kind === 'http' ? 418 : 403)
        expect((await ask({ 'x-word': 'please' }, '/guarded/x')).status).to.equal(200)
        expect(asked).to.have.length(2)
        if (kind === 'http') {
          expect(asked[0]).to.equal('/check/guarded')
          expect(lastSeen()['x-verdict']).to.equal('considered')
        }
        const explained = await service.debug<{ decidedBy: string }>('authz?proxyID=app.shop&path=/guarded')
        expect(explained.decidedBy).to.equal('external authorizer')
        for (const refusing of [
          '{action: DENY, rules: [{to: [{operation: {methods: [GET]}}]}]}',
          "{action: ALLOW, rules: [{to: [{operation: {paths: ['/open']}}]}]}",
        ]) {
          await inForce(custom, policy('AuthorizationPolicy', refusing))
          asked.length = 0
          const [refused, admitted] = [await ask({}, '/guarded'), await ask({ 'x-word': 'please' }, '/guarded')]
          expect(asked, refusing).to.have.length(2)
          expect([refused.status, refused.body === byPolicy], refusing).to.deep.equal([kind === 'http' ? 418 : 403, false])
          expect([admitted.status, admitted.body], refusing).to.deep.equal([403, byPolicy])
        }
      })
    }

    it('an authorizer gets the headers and body that its provider configures; a larger body is answered 413', async () => {
      await inForce(
        policy('AuthorizationPolicy', "{action: CUSTOM, provider: {name: authz-newer}, rules: [{to: [{operation: {paths: ['/guarded*']}}]}]}"),
      )
      // The proxy adds the header x-word.
      const answer = await call(address, port, '/guarded', {
        host: 'app',
        headers: { 'x-was-said': 'a', 'x-other': 'b' },
        method: 'POST',
        body: 'abcd',
      })
      expect([answer.status, answer.headers['x-verdict']]).to.deep.equal([200, 'considered'])
      const asked = authorizers.http.seen.at(-1)
      expect(asked?.headers).to.include({ 'x-was-said': 'a', 'x-word': 'please' }).and.not.to.have.property('x-other')
      expect(asked?.body).to.equal('abcd')
      expect((await call(address, port, '/guarded', { host: 'app', method: 'POST', body: 'abcdef' })).status).to.equal(413)
    })

    it('dynamic metadata of another filter, as text or list, decides conditions', async () => {
      const lua = `apiVersion: networking.mesh.io/v1alpha3
kind: EnvoyFilter
metadata: {name: metadata, namespace: shop}
spec:
  configPatches:
  - applyTo: HTTP_FILTER
    match: {context: SIDECAR_INBOUND, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}
    patch:
      operation: INSERT_FIRST
      value:
        name: envoy.filters.http.lua
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code: {inline_string: "function envoy_on_request(h) local m = h:streamInfo():dynamicMetadata() m:set('envoy.filters.http.lua', 'role', h:headers():get('x-role')) m:set('envoy.filters.http.lua', 'roles', {h:headers():get('x-role')}) end"}
`
      service.write('lua.yaml', lua)
      for (const [key, value] of [
        ['role', 'admin'],
        ['roles', '[admin]'],
      ]) {
        await inForce(
          policy(
            'AuthorizationPolicy',
            JSON.stringify({ rules: [{ when: [{ key: `experimental.envoy.filters.http.lua[${key}]`, values: [value] }] }] }),
          ),
        )
        await until('the other filter', async () => (await ask({ 'x-role': 'admin' })).status === 200)
        expect((await ask({ 'x-role': 'user' })).status).to.equal(403)
        for (const [role, status] of [
          ['admin', 200],
          ['user', 403],
        ] as const) {
          const metadata = JSON.stringify({ 'envoy.filters.http.lua': { role, roles: [role] } })
          expect((await service.debug<{ status: number }>(`authz?proxyID=app.shop&metadata=${encodeURIComponent(metadata)}`)).status).to.equal(status)
        }
      }
      service.remove('lua.yaml')
    })

    it('a RequestAuthentication applies by selector to its own namespace, or from the root namespace to all', async () => {
      const rule = `jwtRules: [{issuer: '${issuer.name}', jwks: '${issuer.jwks}'}]`
      const statuses: number[] = []
      for (const [namespace, selector] of [
        ['shop', ''],
        ['shop', 'selector: {matchLabels: {app: other}}, '],
        ['mesh-system', ''],
        ['mesh-system', 'selector: {matchLabels: {app: app}}, '],
        ['elsewhere', ''],
      ] as const) {
        await inForce(policyDocument('RequestAuthentication', 'tokens', `{${selector}${rule}}`, { namespace }))
        statuses.push((await ask({ authorization: 'Bearer x' })).status)
      }
      expect(statuses).to.deep.equal([401, 200, 401, 401, 200])
    })

    it('requests are denied if the authorizer is unreachable, unknown, or not the only one', async () => {
      const custom = (name: string) =>
        policy('AuthorizationPolicy', `{action: CUSTOM, provider: {name: ${name}}, rules: [{to: [{operation: {paths: ['/guarded*']}}]}]}`)
      await inForce(custom('authz-gone'))
      expect((await ask({ 'x-word': 'please' }, '/guarded')).status).to.equal(503)
      expect((await ask({}, '/open')).status).to.equal(200)
      for (const documents of [[custom('authz-unknown')], [custom('nobody')], [custom('authz-http'), custom('authz-grpc')]]) {
        await inForce(...documents)
        expect((await ask({ 'x-word': 'please' }, '/guarded')).status).to.equal(403)
        expect((await ask({}, '/open')).status).to.equal(403)
      }
    })

    it('Envoy accepts policies with values of 800 characters', async () => {
      const long = (start: string) => start + '.'.repeat(800 - start.length)
      const values = ['*', '', 'x*'].map((star) => (star === 'x*' ? `${long('x').slice(0, -1)}*` : long(star)))
      await inForce(
        policy(
          'AuthorizationPolicy',
          JSON.stringify({
            action: 'DENY',
            rules: [
              {
                from: [{ source: { principals: values, namespaces: values, requestPrincipals: values } }],
                to: [{ operation: { hosts: values, methods: values, paths: values.map((value) => (value.startsWith('*') ? value : `/${value}`)) } }],
                when: ['request.headers[x]', 'request.auth.claims[a]', 'connection.sni'].map((key) => ({ key, values })),
              },
            ],
          }),
        ),
      )
      expect((await ask()).status).to.equal(200)
    })

    it('a dry run denies nothing, and is counted and explained', async () => {
      await inForce(policy('AuthorizationPolicy', '{action: DENY, rules: [{}]}', '{"security.istio.io/dry-run": "true"}'))
      const before = await envoy.stat('mesh_dry_run_deny_.shadow_denied')
      expect((await ask()).status).to.equal(200)
      expect((await envoy.stat('mesh_dry_run_deny_.shadow_denied')) - before).to.equal(1)
      const explained = await service.debug<{ status: number; considered: { dryRun: boolean; matched: boolean }[] }>('authz?proxyID=app.shop')
      expect(explained.status).to.equal(200)
      expect(explained.considered.some(({ dryRun, matched }) => dryRun && matched)).to.equal(true)
    })

    it('a policy that was never valid denies its workloads; one that becomes invalid keeps its last good state', async () => {
      const document = (action: string, rest: string) => policyDocument('AuthorizationPolicy', 'mended', `{action: ${action}, ${rest}}`)
      await inForce()
      for (const action of ['ALLOW', 'DENY']) {
        service.write('mended.yaml', document(action, 'selector: {matchLabels: {app: app}}, rules: [{form: []}]'))
        await until(`an invalid ${action} to deny`, async () => (await ask()).status === 403)
        expect(JSON.stringify(await service.debug('authz?proxyID=app.shop'))).to.include('rules[0].form: unknown field')
        service.write('mended.yaml', document('ALLOW', 'rules: [{}]'))
        await until('the mended one to allow', async () => (await ask()).status === 200)
        service.write('mended.yaml', document('ALLOW', 'rules: [{form: []}]'))
        await service.output.says('its last good state stays')
        expect((await ask()).status).to.equal(200)
        service.remove('mended.yaml')
        await until('the policy to be gone', async () =>
          (await service.debug<{ metadata: { name: string } }[]>('configz')).every(({ metadata }) => metadata.name !== 'mended'),
        )
      }
      service.write('mended.yaml', policyDocument('RequestAuthentication', 'mended', `{jwtRules: [{issuer: '${issuer.name}', jwks: nonsense}]}`))
      await until('an invalid RequestAuthentication to accept no token', async () => (await ask(await bearer())).status === 401)
      expect((await ask()).status).to.equal(200)
      service.remove('mended.yaml')
    })
  })
}
