import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { templateFunctions, templateParameters } from '../../../src/bootstrap/template-parameters.ts'
import { parseTemplate } from '../../../src/template/template.ts'
import { type GivenProxy, prepareTestProxy } from '../../harness/prepared-proxy.ts'

const facts = { certificateProvider: 'meshd', stsPort: 0, project: '' }
const render = (template: string, given: GivenProxy = {}, changed = {}) =>
  parseTemplate('t', template, templateFunctions).render(templateParameters(prepareTestProxy(given).settings, { ...facts, ...changed }))
const env = { POD_NAME: 'web', POD_NAMESPACE: 'shop' }

describe('parameters of a custom bootstrap template', () => {
  it('have the names and forms of the reference', () => {
    const given: GivenProxy = {
      env,
      options: { outlierLogPath: '/o', stsPort: 1 },
      pod: { labels: { 'mesh-locality': 'r/z/s' } },
      proxyConfig: { tracing: { openCensusAgent: { address: 'dns:oc', context: ['B3'] } }, discoveryAddress: 'meshd.example:15012' },
      found: { statsd: { host: '10.1.1.1', port: 9125 } },
    }
    const shown = (names: string) =>
      render(
        names.replaceAll(/\w+/g, (name) => `${name}={{.${name}}}`),
        given,
        { stsPort: 1, project: 'p' },
      )
    expect(shown('nodeID cluster region zone sub_zone')).to.equal(
      'nodeID=sidecar~10.1.2.3~web.shop~shop.svc.cluster.local cluster=mesh-proxy region=r zone=z sub_zone=s',
    )
    expect(shown('pilot_SAN localhost wildcard dns_lookup_family proxy_via_agent')).to.equal(
      'pilot_SAN=[meshd.example] localhost=127.0.0.1 wildcard=0.0.0.0 dns_lookup_family=V4_ONLY proxy_via_agent=true',
    )
    expect(shown('discovery_address discovery_host pilot_grpc_address pilot_cert_provider')).to.equal(
      'discovery_address=meshd.example:15012 discovery_host=meshd.example pilot_grpc_address={"address":"meshd.example","port_value":15012} pilot_cert_provider=meshd',
    )
    expect(shown('sts sts_port gcp_project_id openCensusAgent openCensusAgentContexts statsd outlier_log_path')).to.equal(
      'sts=true sts_port=1 gcp_project_id=p openCensusAgent=dns:oc openCensusAgentContexts=["B3"] statsd={"address":"10.1.1.1","port_value":9125} outlier_log_path=/o',
    )
    expect(shown('inclusionPrefix')).to.equal('inclusionPrefix=[cluster_manager listener_manager server cluster.xds-grpc wasm]')
  })

  it('are absent if they are not set', () => {
    const names =
      'provisioned_cert call_credentials sts sts_port lightstep datadog stackdriver tracing_tls envoy_metrics_service_address envoy_accesslog_service_tls statsd inclusionSuffix inclusionRegexps outlier_log_path region'
    expect(render(names.replaceAll(/\w+/g, (name) => `{{if .${name}}}${name}{{end}}`))).to.equal(names.replaceAll(/\w+/g, ''))
  })

  it('contain the proxy configuration under the field names of Go', () => {
    const given = {
      proxyConfig: { tracing: { zipkin: { address: 'z.example:1' } }, proxyMetadata: { A: 'b' }, drainDuration: '1s', parentShutdownDuration: '90s' },
    }
    const template =
      '{{.config.ProxyAdminPort}} {{.config.Tracing.Zipkin.Address}} {{.config.GetTracing.GetLightstep.GetAddress}} {{.config.ProxyMetadata.A}} {{.config.ParentShutdownDuration.Seconds}} {{.config.Concurrency.Value}} {{.config.StatsdUdpAddress}}|{{range .config.ExtraStatTags}}x{{else}}none{{end}}'
    expect(render(template, given)).to.equal('15000 z.example:1 <no value> b 90 2 |none')
    expect(() => render('{{.config.Unheard}}')).to.throw("can't evaluate field Unheard in type *v1alpha1.ProxyConfig")
    expect(() => render('{{.config.EnvoyMetricsService.Address}}')).to.throw('nil pointer')
  })

  it('are sufficient to render a complete bootstrap', () => {
    const template = readFileSync(new URL('./templates/gateway.json.tmpl', import.meta.url), 'utf8')
    for (const given of [
      { env },
      {
        env: { ...env, PROXY_XDS_VIA_AGENT: 'false' },
        proxyConfig: { envoyMetricsService: { address: 'm.example:1', tcpKeepalive: { time: '5s' } } },
      },
    ])
      expect(JSON.parse(render(template, given))).to.nested.include({ 'node.metadata.NAME': 'web' })
  })
})
