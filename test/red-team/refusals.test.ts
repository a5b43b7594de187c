import { expect } from 'chai'
import { unusableKeys, usableKeys } from '../harness/odd-keys.ts'
import { policyDocument } from '../harness/policies.ts'
import { describeAttacks, namespace } from '../harness/red-team.ts'
import { until } from '../harness/until.ts'

const deny = policyDocument('AuthorizationPolicy', 'secret', "{action: DENY, rules: [{to: [{operation: {paths: ['/secret']}}]}]}")
let count = 0
/** A policy with a unique name: with a reused name, the last good state of the previous policy would stay in force. */
const denied = (rule: string) => policyDocument('AuthorizationPolicy', `odd-${++count}`, `{action: DENY, rules: [${rule}]}`)
const networking = (kind: string, name: string, spec: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`
const long = (start: string, length: number) => start + 'x'.repeat(length - start.length)
const entry = (more: string) =>
  `{hosts: [odd.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}, {number: 9, name: any}], ${more}}`
const route = 'route: [{destination: {host: backend.example, port: {number: 80}}}]'

/** Objects that Envoy would reject unchanged, applied beside a DENY policy. `closed`: the object is an invalid policy, which denies all requests. */
const odd: Readonly<Record<string, { readonly document: string; readonly closed?: boolean }>> = {
  'a policy for any server name': {
    document: denied("{from: [{source: {principals: [nobody]}}], when: [{key: connection.sni, values: ['*']}]}"),
  },
  'a policy for a long host': { document: denied(`{to: [{operation: {hosts: [${long('h', 90)}]}}]}`) },
  'a policy for a long host and all below': { document: denied(`{to: [{operation: {hosts: ['*.${long('h', 120)}']}}]}`) },
  'a policy for a long claim': { document: denied(`{when: [{key: 'request.auth.claims[c]', values: [${long('c', 100)}]}]}`) },
  'a policy for a long principal': { document: denied(`{from: [{source: {principals: ['*${long('p', 100)}']}}]}`) },
  'a policy for a long header': { document: denied(`{when: [{key: 'request.headers[x]', values: [${long('v', 200)}]}]}`) },
  'a policy for an abbreviated address': { document: denied('{from: [{source: {ipBlocks: ["127.1"]}}]}'), closed: true },
  'a policy for an address with leading zeros': { document: denied('{from: [{source: {ipBlocks: ["010.001.0.1"]}}]}'), closed: true },
  'a policy for an address with a zone': { document: denied('{from: [{source: {ipBlocks: ["fe80::1%eth0"]}}]}'), closed: true },
  'a policy for a prefix length above 32': { document: denied('{from: [{source: {ipBlocks: ["10.0.0.0/33"]}}]}'), closed: true },
  'a policy for a prefix length with a leading zero': { document: denied('{from: [{source: {ipBlocks: ["10.0.0.0/010"]}}]}'), closed: true },
  'a policy for an IPv4-mapped range': { document: denied('{from: [{source: {ipBlocks: ["::ffff:1.2.3.4/120"]}}]}') },
  'a route for a large pattern': {
    document: networking('VirtualService', 'odd', `{hosts: [odd.example], http: [{match: [{uri: {regex: '/[a-z]{1,90}'}}], ${route}}]}`),
  },
  'a service with an address twice': {
    document: networking('ServiceEntry', 'odd', entry('addresses: [240.0.9.1, 240.0.9.1], endpoints: [{address: 127.0.0.1}]')),
  },
  'a service with an address in two spellings': {
    document: networking('ServiceEntry', 'odd', entry('addresses: ["2001:db8::9", "2001:DB8:0::9"], endpoints: [{address: 127.0.0.1}]')),
  },
  'a service at a socket with a long path': {
    document: networking('ServiceEntry', 'odd', entry(`endpoints: [{address: "unix:///${long('p', 150)}"}]`)),
  },
  'a rule with NUL in its server name': {
    document: networking('DestinationRule', 'odd', '{host: backend.example, trafficPolicy: {tls: {mode: SIMPLE, sni: "a\\0b"}}}'),
  },
  'a server for a wildcard within a name': {
    document: networking(
      'Gateway',
      'odd',
      `{selector: {app: app}, servers: [{port: {number: 9443, name: https, protocol: HTTPS}, hosts: ['a*'], tls: {mode: ISTIO_MUTUAL}}]}`,
    ),
  },
}

describeAttacks('objects that Envoy would reject as they are written', (place) => {
  for (const [name, { document, closed }] of Object.entries(odd))
    it(`${name} disables no other policy`, async () => {
      await place.enforce(deny, document)
      expect((await place.call('/secret')).status).to.equal(403)
      await until('the object to count', async () => (await place.call('/open')).status === (closed ? 403 : 200))
    })

  it('unusable keys in a key set disable neither token validation nor other policies', async () => {
    const [good] = Object.values(usableKeys)
    const keys = (list: unknown[]) =>
      policyDocument('RequestAuthentication', 'keys', JSON.stringify({ jwtRules: [{ issuer: 'i', jwks: JSON.stringify({ keys: list }) }] }))
    for (const list of [[...Object.values(unusableKeys), good], Object.values(unusableKeys)]) {
      await place.enforce(deny, keys(list))
      expect((await place.call('/secret')).status).to.equal(403)
      expect((await place.call('/open', { headers: { authorization: 'Bearer x' } })).status).to.equal(401)
    }
  })
})
