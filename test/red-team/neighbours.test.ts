import { expect } from 'chai'
import { policyDocument } from '../harness/policies.ts'
import { send } from '../harness/raw-http.ts'
import { describeAttacks, namespace } from '../harness/red-team.ts'
import { until } from '../harness/until.ts'

const document = (kind: string, owner: string, name: string, spec: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${owner}}\nspec: ${spec}\n`
const entry = (owner: string, name: string, port: string, endpoint: string) =>
  document(
    'ServiceEntry',
    owner,
    name,
    `{hosts: [${name}.${owner}.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: ${port}}], endpoints: [${endpoint}]}`,
  )
const tokens = policyDocument(
  'RequestAuthentication',
  'tokens',
  '{jwtRules: [{issuer: issuer.example, jwks: \'{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}\'}]}',
)

describeAttacks(
  'ServiceEntries of other namespaces for the port of a workload',
  (place) => {
    const forged = () => send(place.address, place.backend.port, { headers: [['authorization', 'Bearer forged']] })

    before(async () => {
      // The workload has no Sidecar, so services declare its ports. The proxy listens at its own address, the workload at 127.0.0.1.
      place.service.write(`${place.id}.yaml`, entry(namespace, 'own', 'http', `{address: ${place.address}, ports: {http: ${place.backend.port}}}`))
      await until('the port of the service', async () => (await send(place.address, place.backend.port, {})) === 200)
    })

    it('change neither the protocol of the port nor the requests that its policies cover', async () => {
      await place.enforce(tokens)
      expect(await forged()).to.equal(401)
      for (const [file, port] of Object.entries({ 'earlier.yaml': 'tcp', 'later.yaml': 'mongo' })) {
        const name = file.startsWith('e') ? 'a' : 'z'
        place.service.write(
          file,
          entry('lab', name, port, `{address: ${place.address}, ports: {${port}: ${place.backend.port}}, labels: {app: other}}`),
        )
        await until('the service to be known', async () => (await place.envoy.admin('/clusters')).includes(`outbound|80||${name}.lab.example`))
        expect(await forged(), port).to.equal(401)
      }
    })
  },
  { side: 'sidecar' },
)

describeAttacks(
  'loopback endpoints at a gateway',
  (place) => {
    const hostile = ['127.0.0.1', '"::ffff:127.0.0.1"', '0.0.0.0']

    it("are reachable for services of the gateway's own namespace only", async () => {
      const route = (host: string) =>
        document(
          'VirtualService',
          namespace,
          place.id,
          `{hosts: ['*'], gateways: [${place.id}], http: [{route: [{destination: {host: ${host}, port: {number: 80}}}]}]}`,
        )
      const gateway = document(
        'Gateway',
        namespace,
        place.id,
        `{selector: {place: ${place.id}}, servers: [{port: {number: ${place.port}, name: http, protocol: HTTP}, hosts: ['*'], bind: ${place.address}}]}`,
      )
      for (const address of hostile)
        for (const [owner, status] of [
          ['lab', 503],
          [namespace, address === '127.0.0.1' ? 200 : undefined],
        ] as const) {
          if (status === undefined) continue
          const name = `to-${owner}-${hostile.indexOf(address)}`
          const service = entry(owner, name, 'http', `{address: ${address}, ports: {http: ${place.backend.port}}}`)
          place.service.write(`${place.id}.yaml`, [gateway, route(`${name}.${owner}.example`), service].join('---\n'))
          await until('the route to lead there', async () => (await place.envoy.admin('/config_dump?resource=dynamic_route_configs')).includes(name))
          await until(`${address} of ${owner} to be answered ${status}`, async () => (await place.call('/')).status === status)
        }
    })
  },
  { side: 'gateway' },
)
