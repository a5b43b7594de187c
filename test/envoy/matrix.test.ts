import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { HttpBackend } from '../harness/backend.ts'
import { type Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Issuer } from '../harness/issuer.ts'
import { enforce, policyDocument, workloadEnvoy, workloadSidecar } from '../harness/policies.ts'
import { send } from '../harness/raw-http.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { cases } from './matrix/cases.ts'
import { type Case, issuers, type Row } from './matrix/shape.ts'
import { makeTokens } from './matrix/tokens.ts'

it('the matrix of policies and requests has at least 300 rows', () => {
  expect(cases.reduce((sum, { rows }) => sum + rows.length, 0)).to.be.at.least(300)
})

for (const { version, path: binary } of envoyBinaries()) {
  describe(`requests get the same expected status from Envoy ${version} and /debug/authz with`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const backend = new HttpBackend('app')
    const one = new Issuer(issuers.one)
    const two = new Issuer(issuers.two)
    const address = '127.0.0.6'
    let envoy: Envoy
    let port = 0
    let tokens: Record<string, string> = {}

    const fill = (text: string) => text.replaceAll(/\$(\w+)/g, (_, name: string) => tokens[name] ?? `$${name}`)
    const requestOf = (row: Row) => ({
      method: row.method ?? 'GET',
      path: fill(row.path ?? '/'),
      host: row.host ?? 'app',
      headers: [
        ...(row.headers ?? []).map(([name, value]) => [name, fill(value)] as const),
        ...(row.token === undefined ? [] : [['authorization', `Bearer ${tokens[row.token]}`] as const]),
      ],
    })

    const [forger, unknown, unserved] = [new Issuer(issuers.one), new Issuer('https://unknown.example'), new Issuer(issuers.unserved)]

    /** Puts the policies of a case in force. */
    const enforceCase = async ({ policies, normalization = 'DEFAULT' }: Case) => {
      service.write('mesh-config', `pathNormalization: {normalization: ${normalization}}`)
      const documents = policies.map(({ kind, spec, annotations }, index) => {
        const filled = JSON.stringify(spec, (key, value) => (key === 'jwks' ? (value === '$one' ? one.jwks : two.jwks) : value))
          .replaceAll('$port', String(port))
          .replaceAll('$address', address)
        return policyDocument(kind, `p${index}`, filled, annotations ? { annotations: JSON.stringify(annotations) } : {})
      })
      await until('the normalization to be known', async () => {
        const { pathNormalization } = await service.debug<{ pathNormalization: { normalization: string } }>('mesh')
        return pathNormalization.normalization === normalization
      })
      await enforce(service, envoy, documents)
    }

    const explained = async (row: Row) => {
      const { method, path, host, headers } = requestOf(row)
      const query = new URLSearchParams({
        proxyID: 'app.shop',
        method,
        path,
        host,
        sourceIp: '127.0.0.1',
        destinationIp: address,
        port: String(port),
      })
      for (const [name, value] of headers) query.append('header', `${name}:${value}`)
      // The query is sent as a form, since some tokens are too long for a URL.
      const answer = await fetch(`http://127.0.0.1:${service.httpPort}/debug/authz`, { method: 'POST', body: query })
      return (await answer.json()) as { status: number; reason: string }
    }

    before(async () => {
      port = await freePort()
      await Promise.all([backend.start(), ...[one, two, forger, unknown, unserved].map((issuer) => issuer.rotate())])
      service.write('app.yaml', workloadSidecar(address, port, backend.port))
      await service.start()
      envoy = workloadEnvoy(service, binary, version === '1.40', address)
      await envoy.start()
      await until('the workload to answer', async () => (await send(address, port, {})) === 200)
    })
    // Some have ended a short while ago, which counts for less than a minute.
    beforeEach(async () => {
      tokens = await makeTokens(one, two, { forger, unknown, unserved })
    })
    after(async () => {
      expect(await service.rejections()).to.deep.equal([])
      expect(await envoy.rejected()).to.equal(0)
      await Promise.all([envoy.dispose(), service.dispose(), backend.stop()])
    })

    for (const one of cases) {
      it(one.name, async () => {
        await enforceCase(one)
        const wrong: string[] = []
        for (const row of one.rows) {
          const [seen, fromPage] = [await send(address, port, requestOf(row)), await explained(row)]
          if (seen !== row.status || fromPage.status !== row.status)
            wrong.push(`${JSON.stringify(row)}: Envoy ${seen}, explained ${fromPage.status} (${fromPage.reason})`)
        }
        expect(wrong).to.deep.equal([])
      })
    }
  })
}
