/** `CALL_CREDENTIALS`: the token of the workload takes the place of its certificate in calls of discovery. */
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { envoysWith } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const variants = [
  { caller: 'the agent', viaAgent: 'true' },
  { caller: 'the proxy', viaAgent: 'false' },
]

for (const { version, path: binary, caller, viaAgent } of envoysWith(...variants)) {
  describe(`call credentials, Envoy ${version}, ${caller} calls discovery`, () => {
    let service: Service
    let agent: Agent
    before(async () => {
      const port = await freePort()
      service = new Service({ flags: ['--secureGRPCAddr', `127.0.0.1:${port}`] })
      await service.start()
      agent = new Agent({
        binary,
        env: {
          CALL_CREDENTIALS: 'true',
          CREDENTIAL_FETCHER_TYPE: 'meshd',
          MESHD_ADMIN_SOCKET: service.env.MESHD_ADMIN_SOCKET as string,
          POD_NAMESPACE: 'shop',
          SERVICE_ACCOUNT: 'web',
          PROXY_XDS_VIA_AGENT: viaAgent,
        },
        proxyConfig: { discoveryAddress: `localhost:${port}` },
      })
      await agent.start()
    })
    after(async () => {
      await agent.dispose()
      await service.dispose()
    })

    it('gives the proxy its configuration by the identity in the token', async () => {
      await until('the configuration', async () => (await agent.admin('/listeners')).includes('virtualInbound'))
      expect((await agent.admin('/config_dump')).includes('"header_prefix": "Bearer "')).to.equal(viaAgent === 'false')
    })
  })
}
