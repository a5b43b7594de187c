/** What servers of key sets can do to the running service that fetches from them, and one namespace to another. */
import { createServer as createHttpServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { expect } from 'chai'
import { costlyChain, costlyShapes } from '../../bench/costly-chain.ts'
import { Issuer } from '../harness/issuer.ts'
import { OwnTime } from '../harness/own-time.ts'
import { CostRecorder } from '../harness/process-cost.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const authentication = (namespace: string, name: string, rules: readonly { issuer: string; jwksUri: string }[]) =>
  `apiVersion: security.mesh.io/v1\nkind: RequestAuthentication\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {jwtRules: ${JSON.stringify(rules)}}\n`

describe('servers of key sets', () => {
  const service = new Service({ env: { PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1', PILOT_DEBOUNCE_AFTER: '10ms' } })
  const issuer = new Issuer('https://issuer.example')
  const closing: (() => void)[] = []
  let client: XdsClient
  let attacks = 0

  before(async () => {
    await issuer.start()
    await service.start()
    client = await new XdsClient(service.grpcPort, sidecarNode('10.8.0.1', 'victim', 'victim'), true).connect().ready()
  })
  after(async () => {
    client.close()
    await service.dispose()
    await issuer.stop()
    for (const close of closing) close()
  })

  const listening = async (server: Server | ReturnType<typeof createTlsServer>) => {
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    closing.push(() => server.close())
    return (server.address() as AddressInfo).port
  }
  /** Writes five policies with 20 sources each, in a namespace of their own. */
  const attack = (origin: string) => {
    const namespace = `hostile-${++attacks}`
    for (let policy = 0; policy < 5; policy++) {
      const rules = Array.from({ length: 20 }, (_, index) => ({ issuer: `i${index}`, jwksUri: `${origin}/${policy}/${index}` }))
      service.write(`${namespace}-${policy}.yaml`, authentication(namespace, `p${policy}`, rules))
    }
  }
  const withdraw = () => {
    for (let policy = 0; policy < 5; policy++) service.remove(`hostile-${attacks}-${policy}.yaml`)
  }
  /** Whether a proxy of the namespace `victim` knows who has issued a token. */
  const isKnown = async (token: string) => {
    const page = `authz?proxyID=victim.victim&header=${encodeURIComponent(`authorization: Bearer ${token}`)}`
    return (await service.debug<{ requestPrincipal?: string }>(page)).requestPrincipal === `${issuer.name}/subject`
  }
  /**
   * Names the issuer in a policy of the namespace `victim` during an attack. Its keys arrive, and meanwhile the service answers within a
   * second.
   */
  const victimIsServed = async () => {
    const token = await issuer.token()
    expect(await isKnown(token)).to.equal(false)
    service.write('victim.yaml', authentication('victim', 'p', [{ issuer: issuer.name, jwksUri: issuer.jwksUri }]))
    let slowest = 0
    let answers = 0
    await until('the keys of the victim, and twenty answers of the service', async () => {
      const time = new OwnTime()
      expect((await fetch(`http://127.0.0.1:${service.httpPort}/ready`)).status).to.equal(200)
      slowest = Math.max(slowest, time.ms())
      return ++answers >= 20 && (await isKnown(token))
    })
    expect(slowest, 'milliseconds of the slowest answer').to.be.below(1000)
    service.remove('victim.yaml')
    await until('the policy to be gone', async () => !(await isKnown(token)))
  }

  for (const [name, shape] of Object.entries({ ...costlyShapes, 'a short chain': { names: 4000, authorities: 26, constraints: 82 } }))
    it(`with a chain that is costly to verify (${name}) delay nothing but their own namespace`, async () => {
      const server = createTlsServer(costlyChain(shape, Date.now()))
      let connections = 0
      server.on('tlsClientError', () => undefined).on('connection', () => connections++)
      attack(`https://127.0.0.1:${await listening(server)}`)
      await until('the attack', () => connections >= 10)
      await victimIsServed()
      withdraw()
      await service.output.says(/keys of https:.* could not be fetched: (the peer sent more than 32768 bytes|certificate signature failure)/)
    })

  for (const [name, content, reason] of [
    ['a megabyte of deep lists', '['.repeat(1_048_000), 'nested in more than 256 levels'],
    ['90,000 keys', `{"keys":[${'{},'.repeat(90_000)}{}]}`, 'more than 50000 values'],
  ] as const)
    it(`with ${name} delay nothing but their own namespace`, async () => {
      let requests = 0
      const server = createHttpServer((_, response) => response.end(content)).on('request', () => requests++)
      const port = await listening(server)
      const cost = new CostRecorder(service.pid)
      attack(`http://127.0.0.1:${port}`)
      await until('the attack', () => requests >= 10)
      await victimIsServed()
      await until('more of the attack', () => requests >= 100)
      expect(cost.stop().mib, 'MiB more').to.be.below(100)
      withdraw()
      await service.output.says(new RegExp(`keys of http:.* could not be fetched: ${reason}`))
    })

  it('with large key sets fill no more than the share of their namespace', async () => {
    const key = JSON.parse(issuer.jwks).keys[0] as object
    const content = JSON.stringify({ keys: Array.from({ length: 300 }, (_, index) => ({ ...key, kid: String(index).repeat(500) })) })
    const port = await listening(createHttpServer((_, response) => response.end(content)))
    attack(`http://127.0.0.1:${port}`)
    await service.output.says('with them the key sets of namespace hostile-7 are larger than 4194304 characters together')
    await victimIsServed()
    withdraw()
  })

  it('that never answer delay no other namespace', async () => {
    let requests = 0
    const port = await listening(createHttpServer(() => requests++))
    attack(`http://127.0.0.1:${port}`)
    await until('the attack', () => requests >= 16)
    await victimIsServed()
    withdraw()
  })

  it('leave a place to other namespaces, however many a namespace names', async () => {
    const port = await listening(createHttpServer((_, response) => response.writeHead(404).end()))
    const rules = (policy: number) =>
      Array.from({ length: 100 }, (_, index) => ({ issuer: `i${index}`, jwksUri: `http://127.0.0.1:${port}/${policy}/${index}` }))
    for (let policy = 0; policy < 22; policy++) service.write(`greedy-${policy}.yaml`, authentication('greedy', `p${policy}`, rules(policy)))
    await service.output.says(
      /namespace greedy: the keys of [1-9]\d* sources, such as http:.*, are not fetched, since the mesh needs more than 2000 key sets/,
    )
    await victimIsServed()
    for (let policy = 0; policy < 22; policy++) service.remove(`greedy-${policy}.yaml`)
  })
})
