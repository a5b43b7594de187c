/** `pilot-discovery push watch`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { expect } from 'chai'
import { discoveryScript } from '../harness/commands.ts'
import { Output } from '../harness/output.ts'
import { runCommand, Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { startInTerminal } from '../harness/terminal.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const route = (timeout: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: ns}\nspec: {hosts: [a], http: [{timeout: ${timeout}, route: [{destination: {host: a}}]}]}\n`

/** What Ctrl-C is for a terminal. */
const interrupt = '\x03'

describe('push watch', () => {
  const service = new Service()
  const clients: XdsClient[] = []
  const watches: ChildProcess[] = []
  const watch = (args: readonly string[] = [], { env } = service) => {
    const child = spawn(process.execPath, [discoveryScript, 'push', 'watch', ...args], { env: { ...process.env, ...env } })
    watches.push(child)
    const output = new Output()
    output.follow(child)
    return { child, output, ended: new Promise<number | null>((resolve) => child.once('close', resolve)) }
  }
  before(async () => {
    service.write('entry.yaml', serviceEntry('a'))
    service.write('route.yaml', route('1s'))
    await service.start()
    for (const [at, name] of ['web-0', 'cart-0'].entries())
      clients.push(await new XdsClient(service.grpcPort, sidecarNode(`10.1.0.${at + 1}`, name, 'ns'), at === 0).connect().ready())
  })
  after(async () => {
    for (const child of watches) child.kill('SIGKILL')
    for (const client of clients) client.close()
    await service.dispose()
  })

  it('prints a line for each push, what of it is refused and not answered, and ends when it is interrupted', async () => {
    const { child, output, ended } = watch()
    await output.says(/TIME +REASON +PROXIES +RESOURCES +BYTES +50 % +99 % +LAST +OBJECTS\n/)
    service.write('route.yaml', route('2s'))
    await output.says(
      /\d\d:\d\d:\d\d\.\d{3} +config +2 of 2 +rds \d +[\d.]+ (B|KiB) +\d+ m?s +\d+ m?s +\d+ m?s +VirtualService ns\/a \(route\.yaml, document 1\)\n/,
    )
    const [web, cart] = clients as [XdsClient, XdsClient]
    web.refuseNext = 'timeout is \u001b[31mtoo long'
    cart.silent = true
    service.write('route.yaml', route('3s'))
    await output.says(/0 of 2 .*\n {2}web-0\.ns refused rds: timeout is \\u001b\[31mtoo long.*\n {2}1 proxy has not answered: cart-0\.ns\n/)
    cart.close()
    await output.says(/0 of 2 .*\n {2}web-0\.ns refused rds: timeout is \\u001b\[31mtoo long( \(made from .*\))?\n(?! {2})/)
    child.kill('SIGINT')
    expect(await ended).to.equal(0)
    output.lacks('Error')
  })

  it('prints a push in several lines on a narrow terminal', async () => {
    const { child, output, ended } = startInTerminal(['push', 'watch'], service.env, 60)
    watches.push(child)
    await output.says(/TIME +REASON +PROXIES +LAST\r\n/)
    service.write('route.yaml', route('20s'))
    await output.says(
      /\d\d:\d\d:\d\d\.\d{3} +config +(\d) of \1 +\d+ m?s\r\n {2}rds \d; [\d.]+ (B|KiB); 50 % after \d+ m?s, 99 % after \d+ m?s\r\n {2}VirtualService ns\/a \(route\.yaml, document 1\)\r\n/,
    )
    child.stdin.write(interrupt)
    expect(await ended).to.equal(0)
    output.lacks(/[^\r\n]{61}/)
  })

  it('prints JSON in lines, from the pushes before with --past, and ends when nobody reads them', async () => {
    const { child, output, ended } = watch(['--json', '--past'])
    const [line = ''] = await output.says(/^\{.*"reasons":\["config"\].*\}$/m)
    expect(JSON.parse(line)).to.deep.include({ reasons: ['config'], applied: true })
    child.stdout?.destroy()
    service.write('route.yaml', route('4s'))
    expect(await ended).to.equal(0)
  })

  it('says that its server has ended', async () => {
    const mortal = new Service({ flags: ['--writers', '1'] })
    try {
      await mortal.start()
      const { output, ended } = watch([], mortal)
      await output.says('OBJECTS\n')
      await mortal.stop('SIGKILL')
      expect(await ended).to.equal(255)
      await output.says(`Error: admin socket ${mortal.env.MESHD_ADMIN_SOCKET}: the connection was lost: the server has ended\n`)
    } finally {
      await mortal.dispose()
    }
  })

  it('is an error without a server', async () => {
    const { code, stdout } = await runCommand(['push', 'watch', '--json'])
    expect(code).to.equal(255)
    expect(JSON.parse(stdout).error).to.contain('admin.sock')
  })
})
