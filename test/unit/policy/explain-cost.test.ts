import { expect } from 'chai'
import type { DescribedRequest } from '../../../protocols/messages/described-request.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { Faults } from '../../../src/model/faults.ts'
import { explain } from '../../../src/policy/explain.ts'
import { policiesFor } from '../../../src/snapshot/policies.ts'
import { MeshState } from '../../../src/snapshot/state.ts'
import { describedRequest } from '../../harness/described-request.ts'
import { names, testSettings } from '../../harness/settings.ts'

const request: DescribedRequest = {
  ...describedRequest,
  ...{ host: 'a.example', sourceIp: '10.0.0.1', remoteIp: '10.0.0.1', destinationIp: '10.0.0.2', destinationPort: 80 },
}

/** Explains a request to a workload with one policy. */
function explained(spec: object, asked: Partial<DescribedRequest>, servedHost = '') {
  const state = new MeshState(testSettings(), new Faults())
  const document = { apiVersion: 'security.mesh.io/v1', kind: 'AuthorizationPolicy', metadata: { name: 'p', namespace: 'ns' }, spec }
  for (const object of parseConfigFile('f.yaml', JSON.stringify(document), names).objects) state.setConfig(configKey(object), object)
  const { snapshot } = state.take(0)
  const policies = policiesFor(snapshot.policies, 'mesh-system', { namespace: 'ns', labels: {} })
  const proxy = { trustsForwarded: false, isGateway: false, hasCertificate: false, servedHost }
  return explain(policies, { ...request, ...asked }, snapshot, { now: 0, ...proxy })
}

const deny = (values: readonly string[], key = 'request.headers[x]') => ({ action: 'DENY', rules: [{ when: [{ key, values }] }] })

describe('the CPU time of an explanation', () => {
  const most = 59_000
  for (const [name, header] of [
    ['commas', ','.repeat(most)],
    ['spaces and commas', ' ,'.repeat(most / 2)],
    ['elements that nearly match', 'aaaaaaaab,'.repeat(most / 10)],
    ['one letter', 'a'.repeat(most)],
  ] as const)
    it(`is bounded for a header of 59,000 characters: ${name}`, async () => {
      const values = Array.from({ length: 50 }, (_, index) => `aaaaaaaa${'b,'.repeat(index)}*`)
      const before = process.threadCpuUsage()
      const value = await explained(deny(values), { headers: { x: [header] } })
      const { user, system } = process.threadCpuUsage(before)
      expect(value.status).to.equal(name === 'one letter' || name.startsWith('elements') ? 403 : 200)
      expect((user + system) / 1000, 'milliseconds of CPU').to.be.below(500)
    })

  it('is limited: a comparison that is too large is rejected with a message', async () => {
    const values = Array.from({ length: 1000 }, (_, index) => `value-${index}`)
    const asked = explained(deny(values), { headers: { x: [','.repeat(most)] } })
    expect(await asked.then(String, (error: Error) => error.message)).to.match(/more to compare than 20000000 characters/)
    const claims = { c: Array.from({ length: 30_000 }, (_, index) => index) }
    const listed = explained(deny(values, 'request.auth.claims[c]'), { claims })
    expect(await listed.then(String, (error: Error) => error.message)).to.match(/more to compare than 20000000 characters/)
  })
})

describe('an explanation of a request without a host', () => {
  it('takes one that the proxy serves, and says so of rules on hosts', async () => {
    const asked = async (action: string, host: string) => {
      const { status, considered } = await explained({ action, rules: [{ to: [{ operation: { hosts: [host] } }] }] }, { host: '' }, 'web.example')
      return [status, considered[0]?.because.split('; ').at(-1)]
    }
    const told = 'no host was given: web.example was taken, which the proxy serves'
    expect(await asked('DENY', 'evil.example')).to.deep.equal([200, told])
    expect(await asked('DENY', 'web.example')).to.deep.equal([403, told])
    expect(await asked('ALLOW', 'web.example')).to.deep.equal([200, told])
  })

  it('says of rules on addresses and ports that none was given', async () => {
    const because = async (rule: object, given: Partial<DescribedRequest>) =>
      (await explained({ action: 'DENY', rules: [rule] }, given)).considered[0]?.because.split('; ').at(-1)
    const onSource = { from: [{ source: { ipBlocks: ['10.0.0.0/8'] } }] }
    expect(await because(onSource, { sourceIp: '', remoteIp: '' })).to.equal(
      'no source address was given, and this rule is on it: name the source address',
    )
    expect(await because(onSource, {})).to.equal('')
    const onPort = { to: [{ operation: { ports: ['81'] } }] }
    expect(await because(onPort, { destinationPort: 0 })).to.equal('no port was given, and this rule is on it: name the port')
    expect(await because(onPort, {})).to.equal('operation.ports is none of 81')
  })

  it('says of rules on hosts that none was given where the proxy serves none, whether they match or not', async () => {
    const onHosts = { to: [{ operation: { hosts: ['evil.example'] } }] }
    const told = 'no host was given, and this rule is on it: name the host'
    const because = async (action: string, rule: object, host: string) =>
      (await explained({ action, rules: [rule] }, { host })).considered[0]?.because
    expect(await because('DENY', onHosts, '')).to.equal(told)
    expect(await because('ALLOW', onHosts, '')).to.equal(`operation.hosts is none of evil.example; ${told}`)
    expect(await because('DENY', { when: [{ key: 'request.headers[host]', values: ['evil.example'] }] }, '')).to.equal(told)
    expect(await because('DENY', onHosts, 'evil.example')).to.equal('')
    expect(await because('DENY', { to: [{ operation: { paths: ['/'] } }] }, '')).to.equal('')
  })
})

describe('an explanation of a TCP connection', () => {
  const rules = [{ to: [{ operation: { paths: ['/admin'], ports: ['80'] } }], when: [{ key: 'request.headers[x]', values: ['y'] }] }]

  it('says of a rule that denies it which conditions do not count there: the rule only said that it matches', async () => {
    const { status, considered } = await explained({ action: 'DENY', rules }, { protocol: 'tcp' })
    expect([status, considered[0]?.because]).to.deep.equal([0, 'on a TCP connection operation.paths and request.headers[x] do not count'])
    expect(
      (await explained({ action: 'DENY', rules: [{ to: [{ operation: { ports: ['80'] } }] }] }, { protocol: 'tcp' })).considered[0]?.because,
    ).to.equal('')
    expect((await explained({ action: 'ALLOW', rules }, { protocol: 'tcp' })).considered[0]?.because).to.equal(
      'operation.paths cannot be judged on a TCP connection',
    )
  })
})
