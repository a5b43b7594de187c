import { expect } from 'chai'
import { policyDocument } from '../harness/policies.ts'
import { describeAttacks } from '../harness/red-team.ts'

const policy = (action: string, operation: string) =>
  policyDocument('AuthorizationPolicy', 'hosts', `{action: ${action}, rules: [{to: [{operation: ${operation}}]}]}`)

describeAttacks('hosts', (place) => {
  const statusOf = async (host: string) => (await place.raw(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status

  it('a denied host is denied with a port, a final dot and in any case', async () => {
    await place.enforce(policy('DENY', '{hosts: [secret.com]}'))
    for (const host of ['secret.com', 'SECRET.com', 'secret.com:80', 'secret.com.', 'secret.com.:8080'])
      expect(await statusOf(host), host).to.equal(403)
    expect(await statusOf('open.com')).to.equal(200)
  })
})
