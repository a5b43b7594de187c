/** `pilot-discovery diff`: what files would change for connected proxies, without applying them. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { discoveryScript } from '../harness/commands.ts'
import { runCommand, Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const route = (timeout: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: ns}\nspec: {hosts: [a], http: [{timeout: ${timeout}, route: [{destination: {host: a}}]}]}\n`

describe('diff', () => {
  const service = new Service({ flags: ['--writers', '1'] })
  const clients: XdsClient[] = []
  const given = mkdtempSync(join(tmpdir(), 'diff-'))
  const run = (...args: string[]) => runCommand(['diff', ...args], service.env)
  const file = (name: string, text: string) => {
    writeFileSync(join(given, name), text)
    return join(given, name)
  }
  before(async () => {
    service.write('entry.yaml', serviceEntry('a'))
    service.write('route.yaml', route('1s'))
    await service.start()
    for (const [name, namespace] of [
      ['web-0', 'ns'],
      ['cart-0', 'ns'],
      ['far-0', 'other'],
    ] as const)
      clients.push(await new XdsClient(service.grpcPort, sidecarNode(`10.1.0.${clients.length + 1}`, name, namespace), true).connect().ready())
  })
  after(async () => {
    for (const client of clients) client.close()
    rmSync(given, { recursive: true })
    await service.dispose()
  })

  it('finds no difference in what the server has, however it is written', async () => {
    const same = file(
      'same.json',
      JSON.stringify({
        kind: 'VirtualService',
        apiVersion: 'networking.mesh.io/v1',
        spec: { http: [{ route: [{ destination: { host: 'a' } }], timeout: '1s' }], hosts: ['a'] },
        metadata: { namespace: 'ns', name: 'a' },
      }),
    )
    expect(await run(same)).to.include({
      code: 0,
      stderr: '',
      stdout: '0 objects would differ, 1 as they are; 0 proxies would see a difference, 3 none\n',
    })
  })

  it('tells the field that would change, by the proxies that see it', async () => {
    const { stdout, code } = await run(file('route.yaml', route('2s')))
    expect(code, stdout).to.equal(1)
    expect(stdout).to.match(
      /^3 proxies: cart-0\.ns, far-0\.other, web-0\.ns\nTYPE +RESOURCE +CHANGE +DIFFERENCE\nrds +80 +CHANGED +virtual_hosts\[a\.ns\.svc\.cluster\.local:80\]\.routes\[\S+\]\.route\.timeout: 1s → 2s\n/,
    )
    expect(stdout).to.match(
      /\nchanged: VirtualService ns\/a \(\S*route\.yaml, document 1\)\n1 object would differ, 0 as they are; 3 proxies would see a difference, 0 none\n$/,
    )
  })

  it('tells apart proxies that see different things, and what is added and removed, from standard input and a directory', async () => {
    const own = `${serviceEntry('b')}---\n${serviceEntry('c').replace('resolution:', 'exportTo: ["."], resolution:')}`
    const { stdout } = await runCommand(['diff', '-', '--json'], service.env, discoveryScript, own)
    const answer = JSON.parse(stdout)
    const sets = answer.changed.map(
      ({ nodeIds, resources }: { nodeIds: string[]; resources: { typeUrl: string; name: string; change: string }[] }) => [
        nodeIds.map((id) => id.split('~')[2]),
        resources.filter(({ typeUrl }) => typeUrl.endsWith('Cluster')).map(({ name, change }) => `${change} ${name}`),
      ],
    )
    expect([answer.differs, sets]).to.deep.equal([
      true,
      [
        [
          ['cart-0.ns', 'web-0.ns'],
          ['added outbound|80||b.ns.svc.cluster.local', 'added outbound|80||c.ns.svc.cluster.local'],
        ],
        [['far-0.other'], ['added outbound|80||b.ns.svc.cluster.local']],
      ],
    ])
    const all = join(given, 'all')
    mkdirSync(all)
    writeFileSync(join(all, 'entry.yaml'), serviceEntry('b'))
    const replaced = await run(all, '--replace')
    expect(replaced.code).to.equal(1)
    expect(replaced.stdout).to.match(/\ncds +outbound\|80\|\|a\.ns\.svc\.cluster\.local +REMOVED +-\n/)
    expect(replaced.stdout)
      .to.contain('\nadded: ServiceEntry ns/b')
      .and.to.contain('\nremoved: ServiceEntry ns/a')
      .and.to.contain('\nremoved: VirtualService ns/a')
  })

  it('puts objects without a namespace where files of the server are, or where it is told to', async () => {
    const bare = file('bare.yaml', route('1s').replace(', namespace: ns', ''))
    expect((await run(bare)).stdout).to.match(/\nadded: VirtualService default\/a \(/)
    expect(await run(bare, '-n', 'ns')).to.include({
      code: 0,
      stdout: '0 objects would differ, 1 as they are; 0 proxies would see a difference, 3 none\n',
    })
    const { code, stderr } = await run(bare, '-n', 'A b')
    expect([code, stderr]).to.deep.equal([2, 'Error: --namespace: "A b" is not a name\n'])
  })

  it('names documents that cannot be used and what could not be made, and what it does not compare', async () => {
    const text = `${route('3s').replace('3s', '3')}---\napiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: ns}\nspec: {}\n`
    const { code, stderr, stdout } = await run(file('wrong.yaml', text))
    expect([code, stdout]).to.deep.equal([
      2,
      'not compared: 1 Service of v1\n0 objects would differ, 0 as they are; 0 proxies would see a difference, 3 none\n',
    ])
    expect(stderr).to.match(/^Error: \S*wrong\.yaml, document 1: VirtualService ns\/a, spec\.http\[0\]\.timeout: .+\n$/)
  })

  it('exits with 2 when it cannot compare', async () => {
    for (const [args, said] of [
      [[join(given, 'none')], 'no such file'],
      [[given, '--nothing'], 'nothing'],
      [[], 'path'],
    ] as const) {
      const { code, stderr } = await run(...args)
      expect([code, stderr.includes(said)], stderr).to.deep.equal([2, true])
    }
    const nobody = await runCommand(['diff', given, '--json'])
    expect(nobody.code).to.equal(2)
    expect(JSON.parse(nobody.stdout).error).to.contain('no server listens')
  })

  it('does not change what the server has, so that the next change is the whole of it', async () => {
    service.write('route.yaml', route('2s'))
    await until('no difference any more', async () => (await run(join(given, 'route.yaml'))).code === 0)
  })
})
