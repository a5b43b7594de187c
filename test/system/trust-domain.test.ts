import { expect } from 'chai'
import { clusterType, listenerType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const config = `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: a, namespace: shop}
spec:
  hosts: [a.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http}]
  endpoints: [{address: 10.0.0.1, serviceAccount: one, labels: {app: a}}]
---
apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: callers, namespace: shop}
spec: {rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/two]}}]}]}
---
apiVersion: security.mesh.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: shop}
spec: {mtls: {mode: STRICT}}
`

/** Returns the clusters and listeners of a sidecar of the service, as text. */
async function sent(service: Service): Promise<{ clusters: string; listeners: string }> {
  const client = new XdsClient(service.grpcPort, sidecarNode('10.0.0.1', 'a', 'shop', { PROXY_CONFIG: {}, LABELS: { app: 'a' } }), false)
  try {
    await client.connect().ready()
    const text = (type: string) => [...(client.resources.get(type)?.values() ?? [])].map((bytes) => bytes.toString('latin1')).join('\n')
    return { clusters: text(clusterType), listeners: text(listenerType) }
  } finally {
    client.close()
  }
}

describe('--trust-domain', () => {
  for (const [title, mesh] of [
    ['is the trust domain of names, certificates and principals', undefined],
    ['overrules the mesh configuration, and says so', 'trustDomain: file.example\n'],
  ] as const)
    it(title, async () => {
      const service = new Service({ flags: ['--trust-domain', 'td.example', '--registries', 'Mock'], env: { PILOT_MOCK_SERVICES: '1' } })
      try {
        service.write('all.yaml', config)
        if (mesh) service.write('mesh-config', mesh)
        await service.start()
        const { clusters, listeners } = await sent(service)
        expect(clusters, 'names that a server may have').to.contain('spiffe://td.example/ns/shop/sa/one')
        expect(clusters, 'names that a server of the Mock registry may have').to.contain('spiffe://td.example/ns/mock-0/sa/default')
        expect(listeners, 'principals of a policy').to.contain('spiffe://td.example/ns/shop/sa/two')
        expect(listeners, 'certificates of callers').to.contain('spiffe://td.example/')
        expect(`${clusters}${listeners}`).not.to.contain('spiffe://cluster.local/').and.not.to.contain('file.example')
        const line = 'trustDomain file.example has no effect: --trust-domain=td.example overrules it'
        await service.output.says('ready after')
        if (mesh) await service.output.says(line)
        else service.output.lacks(line)
      } finally {
        await service.dispose()
      }
    })
})
