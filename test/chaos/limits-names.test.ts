/** What name servers of fetched URLs can cost discovery, and one namespace another (docs/limits.md). */
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { DnsUpstream, emptyResponse, type UpstreamQuery } from '../harness/dns-upstream.ts'
import { Issuer } from '../harness/issuer.ts'
import { OwnTime } from '../harness/own-time.ts'
import { CostRecorder } from '../harness/process-cost.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const preloaded = fileURLToPath(new URL('../harness/name-server.cjs', import.meta.url))
const authentication = (namespace: string, rules: readonly { issuer: string; jwksUri: string }[]) =>
  `apiVersion: security.mesh.io/v1\nkind: RequestAuthentication\nmetadata: {name: p, namespace: ${namespace}}\nspec: {jwtRules: ${JSON.stringify(rules)}}\n`

/** The name in a query, in lower case, and the wanted type of record. */
function asked({ message }: UpstreamQuery): { readonly name: string; readonly type: number } {
  const labels: string[] = []
  let at = 12
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), type: message.readUInt16BE(at + 1) }
}

/** A response with the address 127.0.0.1 for an A query. */
function loopback(query: UpstreamQuery): Buffer {
  const question = query.message.subarray(0, 12 + asked(query).name.length + 2 + 4)
  const head = Buffer.from(question)
  head.writeUInt16BE(0x8180, 2)
  head.writeUInt16BE(1, 6)
  head.fill(0, 8, 12)
  return Buffer.concat([head, Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1])])
}

describe('name servers of fetched URLs', () => {
  const issuer = new Issuer('https://issuer.example')
  let names: DnsUpstream
  let service: Service
  let client: XdsClient
  let treat: (query: UpstreamQuery) => void

  before(async () => {
    await issuer.start()
    names = await DnsUpstream.open()
    names.onQuery = (query) => {
      const { name, type } = asked(query)
      if (!name.endsWith('victim.test')) treat(query)
      else query.reply(type === 1 ? loopback(query) : emptyResponse(query.message))
    }
    service = new Service({
      env: {
        PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1',
        PILOT_DEBOUNCE_AFTER: '10ms',
        NODE_OPTIONS: `--require=${preloaded}`,
        NAME_SERVER: `127.0.0.1:${names.port}`,
      },
    })
    await service.start()
    client = await new XdsClient(service.grpcPort, sidecarNode('10.8.0.1', 'victim', 'victim'), true).connect().ready()
  })
  after(async () => {
    client.close()
    await service.dispose()
    await issuer.stop()
    names.close()
  })

  const isKnown = async (token: string) => {
    const page = `authz?proxyID=victim.victim&header=${encodeURIComponent(`authorization: Bearer ${token}`)}`
    return (await service.debug<{ requestPrincipal?: string }>(page)).requestPrincipal === `${issuer.name}/subject`
  }
  /** Five namespaces have ten names each looked up; keys of the namespace `victim`, by name too, arrive all the same within two seconds. */
  const victimIsServed = async (attack: string) => {
    for (let namespace = 0; namespace < 5; namespace++) {
      const rules = Array.from({ length: 10 }, (_, index) => ({ issuer: `i${index}`, jwksUri: `http://${attack}${index}.n${namespace}.test/keys` }))
      service.write(`${attack}-${namespace}.yaml`, authentication(`${attack}-${namespace}`, rules))
    }
    const costs = new CostRecorder(service.pid)
    const namespaces = () =>
      new Set(names.queries.map((query) => asked(query).name).flatMap((name) => new RegExp(`^${attack}\\d+\\.(n\\d+)\\.test$`).exec(name)?.[1] ?? []))
    await until('lookups of all these namespaces', () => namespaces().size === 5)
    const token = await issuer.token()
    const watch = new OwnTime()
    const jwksUri = `http://${attack}-victim.test:${issuer.port}/jwks`
    service.write('victim.yaml', authentication('victim', [{ issuer: issuer.name, jwksUri }]))
    await until('the keys of the victim', () => isKnown(token))
    expect(watch.ms(), 'milliseconds until the keys').to.be.below(2000)
    const { mib, descriptors } = costs.stop()
    expect(mib, 'memory in MiB').to.be.below(100)
    expect(descriptors, 'open files').to.be.at.most(60)
    service.remove('victim.yaml')
    for (let namespace = 0; namespace < 5; namespace++) service.remove(`${attack}-${namespace}.yaml`)
    await until('the policy to be gone', async () => !(await isKnown(token)))
  }

  it('that never answer delay nothing but their own namespace', async () => {
    treat = () => undefined
    await victimIsServed('silent')
  })

  it('that answer without an end over TCP cost no memory, and delay nothing but their own namespace', async () => {
    let sent = 0
    treat = (query) => {
      if (query.isStream) {
        for (let times = 0; times < 200; times++) query.reply(Buffer.alloc(65_000, sent++ & 255))
        return
      }
      const truncated = emptyResponse(query.message)
      truncated.writeUInt16BE(0x8380, 2)
      query.reply(truncated)
    }
    await victimIsServed('endless')
    expect(sent).to.be.above(200)
  })
})
