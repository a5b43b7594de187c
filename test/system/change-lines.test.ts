/** What the log says of changes of configuration. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const route = (timeout: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: ns}\nspec: {hosts: [a], http: [{timeout: ${timeout}, route: [{destination: {host: a}}]}]}\n`
const rule = 'apiVersion: networking.mesh.io/v1\nkind: DestinationRule\nmetadata: {name: g, namespace: ns}\nspec: {host: nobody.example.com}\n'

describe('the log says what a change did', () => {
  const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '1ms', PILOT_DEBOUNCE_MAX: '10ms' } })
  const clients: XdsClient[] = []
  const [web, cart] = [() => clients[0] as XdsClient, () => clients[1] as XdsClient]
  before(async () => {
    service.write('entry.yaml', `${serviceEntry('a')}---\n${serviceEntry('b')}`)
    service.write('route.yaml', route('1s'))
    await service.start()
    for (const [at, name] of ['web-0', 'cart-0'].entries())
      clients.push(await new XdsClient(service.grpcPort, sidecarNode(`10.1.0.${at + 1}`, name, 'ns'), at === 0).connect().ready())
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  it('at the start, how many objects there are, which are no changes', async () => {
    await service.output.says(`3 objects from 2 files of ${service.dir}`)
    service.output.lacks(/: \d+ added/)
  })

  it('which proxies have it, and after what time', async () => {
    service.write('route.yaml', route('2s'))
    await service.output.says(/info\tprocessing\troute\.yaml: 1 changed; 2 of 2 proxies have it after \d+ ms\n/)
    service.write('more.yaml', `${serviceEntry('c')}---\n${serviceEntry('d')}`)
    await service.output.says(/more\.yaml: 2 added; 2 of 2 proxies have it after \d+ ms\n/)
    service.remove('more.yaml')
    await service.output.says(/more\.yaml: 2 removed; 2 of 2 proxies have it after \d+ ms\n/)
  })

  it('that it changes nothing for any proxy', async () => {
    service.write('rule.yaml', rule)
    await service.output.says('rule.yaml: 1 added; nothing differs for any of 2 proxies\n')
  })

  it('which objects select no proxy, by their labels or their namespace, until they do', async () => {
    const select = (app: string, namespace = 'ns') =>
      `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ${namespace}}\nspec: {selector: {matchLabels: {${app}}}, action: AUDIT, rules: [{}]}\n`
    service.write('policy.yaml', select('app: wep'))
    await service.output.says(
      'policy.yaml: 1 added; nothing differs for any of 2 proxies; no connected proxy is selected by AuthorizationPolicy ns/p\n',
    )
    service.write(
      'gateway.yaml',
      'apiVersion: networking.mesh.io/v1\nkind: Gateway\nmetadata: {name: g, namespace: ns}\nspec: {selector: {app: gate}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}\n',
    )
    await service.output.says('gateway.yaml: 1 added; nothing differs for any of 2 proxies; no connected proxy is selected by Gateway ns/g\n')
    service.write('elsewhere.yaml', select('', 'nz'))
    await service.output.says(
      'elsewhere.yaml: 1 added; nothing differs for any of 2 proxies; no connected proxy is selected by AuthorizationPolicy nz/p\n',
    )
    for (const file of ['policy.yaml', 'gateway.yaml', 'elsewhere.yaml']) {
      const output = service.output.fromNow()
      service.remove(file)
      await output.says(new RegExp(`${file}: 1 removed; [^;\n]*\n`))
    }
    service.write('policy.yaml', select(''))
    await service.output.says(/policy\.yaml: 1 added; [^;\n]*\n/)
    service.remove('policy.yaml')
    await service.output.says(/policy\.yaml: 1 removed; [^;\n]*\n/, 2)
  })

  it('who refuses it and why, and who does not answer', async () => {
    web().refuseNext = 'timeout is too long'
    service.write('route.yaml', route('3s'))
    await service.output.says(
      /warn\tprocessing\troute\.yaml: 1 changed; 1 of 2 proxies have it after \d+ ms; web-0\.ns refused rds: timeout is too long\n/,
    )
    cart().silent = true
    service.write('route.yaml', route('4s'))
    await service.output.says(/warn\tprocessing\troute\.yaml: 1 changed; 1 of 2 proxies have it after \d+ ms; no answer after 10 s from cart-0\.ns\n/)
    clients.pop()?.close()
    await service.output.says(/route\.yaml: 1 changed; 1 of 2 proxies have it after \d+ ms; 1 proxy disconnected before the answer\n/)
  })

  it('that a document is mended, and not that one that is gone is', async () => {
    service.write('route.yaml', route('forever'))
    await service.output.says(/route\.yaml, document 1, VirtualService\/ns\/a.*its last good state stays/)
    service.write('rule.yaml', rule.replace('host: nobody', 'hots: nobody'))
    await service.output.says(/rule\.yaml, document 1, DestinationRule\/ns\/g/)
    service.remove('rule.yaml')
    service.write('route.yaml', route('5s'))
    await service.output.says('info\tvalidation\troute.yaml, document 1, VirtualService/ns/a: mended, what was wrong with it before is resolved\n')
    await service.output.says(/rule\.yaml: 1 removed/)
    service.output.lacks('DestinationRule/ns/g: mended')
    service.write('broken.yaml', 'kind: [')
    await service.output.says(/broken\.yaml.*the document is left out/)
    service.write('broken.yaml', serviceEntry('e'))
    await service.output.says(/broken\.yaml, document 1: mended/)
  })

  it('in one line a second, however much changes', async () => {
    const output = service.output.fromNow()
    const began = performance.now()
    for (let round = 0; round < 300; round++) {
      service.write('route.yaml', route(`${100 + round}s`))
      await pause(10)
    }
    service.write('last.yaml', serviceEntry('last'))
    await output.says(/last\.yaml.*\n/)
    const seconds = (performance.now() - began) / 1000
    await output.says(/: \d+ changes in \d+ pushes; all proxies concerned \(1 at most\) have them after \d+ ms\n/, 1, seconds + 1)
    const lines = output
      .soFar()
      .split('\n')
      .filter((line) => line.includes('\tprocessing\t'))
    expect(lines.length).to.be.at.most(seconds + 1)
  })
})
