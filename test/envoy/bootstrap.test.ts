/** Every kind of bootstrap passes the validation of stock Envoys with its command line. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { templateFunctions, templateParameters } from '../../src/bootstrap/template-parameters.ts'
import { parseTemplate } from '../../src/template/template.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { type GivenProxy, prepareTestProxy } from '../harness/prepared-proxy.ts'

const run = promisify(execFile)

const files = { caCertificates: '/ca.pem', clientCertificate: '/cert.pem', privateKey: '/key.pem' }

const proxies: Record<string, GivenProxy> = {
  'an injected sidecar': {
    env: {
      POD_NAME: 'web',
      POD_NAMESPACE: 'shop',
      CLOUD_METADATA: 'p|1|c|r-z',
      MESH_METAJSON_A: JSON.stringify({ __proto__x: [1, { deep: null }] }),
    },
    pod: { labels: { app: 'web', 'mesh-locality': 'r/z/s' } },
  },
  'an IPv6-only gateway with a JSON log': {
    options: { role: 'router', logAsJson: true, concurrency: 2 },
    interfaces: ['fd00::3'],
    proxyConfig: { runtimeValues: { 'a.b': 'true' }, discoveryAddress: '[fd00::9]:15012', tracing: {} },
  },
  'a proxy that connects to discovery itself, with metrics, access log and tracing services': {
    options: { outlierLogPath: '/dev/null' },
    env: { PROXY_XDS_VIA_AGENT: 'false', MESH_DELTA_XDS: 'true' },
    proxyConfig: {
      envoyMetricsService: {
        address: 'metrics.example:1',
        tlsSettings: { mode: 'MUTUAL', ...files, subjectAltNames: ['a', 'spiffe://a/b', '10.1.1.1'] },
      },
      envoyAccessLogService: {
        address: 'logs.example:1',
        tlsSettings: { mode: 'ISTIO_MUTUAL' },
        tcpKeepalive: { probes: 3, time: '10s', interval: '5s' },
      },
      tracing: { zipkin: { address: '10.1.1.1:1' }, tlsSettings: { mode: 'SIMPLE', ...files } },
    },
    found: { statsd: { host: 'fd00::1', port: 9125 } },
  },
  'a proxy with an exchanged token instead of certificates': {
    options: { stsPort: 15463, tokenManagerPlugin: 'CloudTokenExchange' },
    env: { CALL_CREDENTIALS: 'true', CLOUD_METADATA: 'p|1|c|r-z' },
  },
  'a proxy with the token of its file instead of certificates': { env: { CALL_CREDENTIALS: 'true', PROXY_XDS_VIA_AGENT: 'false' } },
  'a proxy with custom tags and inclusion rules for statistics': {
    proxyConfig: {
      extraStatTags: ['my.tag', 'a(b', '$'],
      proxyStatsMatcher: { inclusionPrefixes: ['a.{pod_ip}'], inclusionSuffixes: ['b'], inclusionRegexps: ['.*{pod_ip}[a-z]+'] },
      tracing: { datadog: { address: 'dd.example:1' } },
    },
  },
}

for (const { version, path: binary } of envoyBinaries()) {
  describe(`Envoy ${version} accepts the bootstrap of`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'mesh-bootstrap-'))
    after(() => rmSync(folder, { recursive: true, force: true }))

    for (const [what, given] of Object.entries(proxies))
      it(what, async () => {
        const { bootstrap, args } = prepareTestProxy(given)
        writeFileSync(join(folder, 'envoy-rev0.json'), JSON.stringify(bootstrap))
        const { stderr } = await run(binary, ['--mode', 'validate', ...args], { cwd: folder })
        const complaints = stderr.split('\n').filter((line) => /\twarning\t|\terror\t|\tcritical\t|"level":"(warning|error|critical)"/.test(line))
        // The deprecated bootstrap tracer is needed: the listeners that discovery sends name no tracer.
        expect(complaints.filter((line) => !line.includes("deprecated option 'envoy.config.bootstrap.v3.Bootstrap.tracing'"))).to.deep.equal([])
      })

    it('a proxy with a template of the user', async () => {
      const { settings, args } = prepareTestProxy({ proxyConfig: { proxyStatsMatcher: { inclusionSuffixes: ['x'] } } })
      const template = readFileSync(new URL('../unit/bootstrap/templates/gateway.json.tmpl', import.meta.url), 'utf8')
      const facts = { certificateProvider: 'meshd', stsPort: 0, project: '' }
      writeFileSync(join(folder, 'envoy-rev0.json'), parseTemplate('t', template, templateFunctions).render(templateParameters(settings, facts)))
      expect((await run(binary, ['--mode', 'validate', ...args], { cwd: folder })).stdout).to.contain('OK')
    })
  })
}
