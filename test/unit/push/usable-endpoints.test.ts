/** Which objects are named where callers of other networks lose endpoints, and where nobody is told. */
import { expect } from 'chai'
import type { Endpoint, Service } from '../../../protocols/data.ts'
import { toldOf, type UsableSlice } from '../../../src/push/groups/usable-endpoints.ts'

const service = {
  hostname: 'a.shop.svc.cluster.local',
  namespace: 'shop',
  name: 'a',
  provider: 'Orchestrator',
  cluster: 'c1',
  ports: [],
} as unknown as Service
const endpoint = { address: '10.0.0.1', namespace: 'shop', workload: 'a-1' } as Endpoint

function told(lost: Endpoint, of: Service = service) {
  const slice: UsableSlice = { endpoints: [], refused: [], odd: [], hidden: [], unreachable: new Map([['n2', [lost]]]), unpassed: [] }
  return toldOf('eds', of, [slice]).map((outcome) => ('problem' in outcome ? outcome.problem?.objects : undefined))
}

describe('endpoints that callers of other networks lose', () => {
  it('are told with the WorkloadEntry that they are, and with no object of that kind where they are pods', () => {
    const [ofEntry] = told(endpoint)
    const [ofPod] = told({ ...endpoint, node: 'node-1' })
    expect(ofEntry).to.have.lengthOf(2)
    expect(ofEntry?.[0]).to.equal('WorkloadEntry/shop/a-1')
    expect(ofPod).to.deep.equal(ofEntry?.slice(1))
  })

  it('are not told where they are the gateway of the network itself', () => {
    expect(told(endpoint, { ...service, outside: { addresses: [], ports: {}, gateway: { network: 'n2', port: 15_443 } } })).to.deep.equal([])
  })
})
