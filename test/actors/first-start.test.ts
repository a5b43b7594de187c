import { symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { LocalDiscovery } from '../harness/discovery.ts'
import { until } from '../harness/until.ts'

const policy = 'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: ns}\nspec: {action: "DENY}\n'

describe('a first start with unreadable files', () => {
  let discovery: LocalDiscovery
  beforeEach(() => {
    discovery = new LocalDiscovery({ mode: 'in-thread' }, { PILOT_MOCK_SERVICES: '0' })
    discovery.write('garbage.yaml', `${policy}---\na: "never closed\n`)
    symlinkSync('nothing', join(discovery.dir, 'link.yaml'))
    writeFileSync(join(discovery.dir, 'mesh'), 'rootNamespace: [')
  })
  afterEach(() => discovery.dispose())
  const start = (allowUnreadableConfig: boolean) => discovery.start({ meshConfig: join(discovery.dir, 'mesh'), allowUnreadableConfig })
  const answers = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(discovery.grpcPort, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
      socket.on('connect', () => socket.destroy())
    })

  it('is not ready, reports why and serves nothing, until the files are corrected or removed', async () => {
    await start(false)
    await until('the watcher to say why', async () => (await discovery.ready()).text.includes('garbage.yaml'))
    const { status, text } = await discovery.ready()
    expect(status).to.equal(503)
    expect(text).to.match(/^source\/files has not delivered its complete state yet$/m)
    expect(text).to.match(/^mesh configuration .*mesh: not YAML, line 1: /m)
    expect(text).to.match(/^garbage.yaml, document 2: not YAML, line \d: /m)
    expect(text).to.match(/^link.yaml, document 1: cannot be read: ENOENT/m)
    expect(text).not.to.include('document 1: not YAML')
    expect(await answers(), 'the port of proxies').to.equal(false)
    await until('the log to say why', () =>
      /garbage.yaml, document 2.* a process that starts is not ready .*--allowUnreadableConfig/.test(discovery.log()),
    )
    const { waiting, standIns } = await discovery.debug<{ waiting: string[]; standIns: { key: string }[] }>('filez')
    expect([waiting.length, standIns.map(({ key }) => key)]).to.deep.equal([3, ['AuthorizationPolicy/ns/p']])
    discovery.remove('link.yaml')
    discovery.write('garbage.yaml', policy)
    await until(
      'one reason to be left',
      async () =>
        (await discovery.ready()).text.split('\n').filter((line) => line.includes('cannot be read') || line.includes('not YAML')).length === 1,
    )
    expect((await discovery.ready()).status).to.equal(503)
    writeFileSync(join(discovery.dir, 'mesh'), 'rootNamespace: given')
    await until('the service to be ready', async () => (await discovery.ready()).status === 200)
    expect(await discovery.debug('mesh')).to.include({ rootNamespace: 'given' })
    // Later faults do not affect readiness.
    discovery.write('later.yaml', 'b: "never closed\n')
    await until('the fault', () => discovery.log().includes('later.yaml, document 1: not YAML'))
    expect((await discovery.ready()).status).to.equal(200)
  })

  it('is ready with an unknown kind of the mesh that is no policy, and lists the document', async () => {
    for (const file of ['garbage.yaml', 'link.yaml']) discovery.remove(file)
    writeFileSync(join(discovery.dir, 'mesh'), '{}')
    discovery.write('kind.yaml', 'apiVersion: networking.istio.io/v1\nkind: VirtualServise\nmetadata: {name: v, namespace: ns}\n')
    await (await start(false)).ready()
    const problem =
      'kind.yaml, document 1, VirtualService/ns/v, field kind: unknown kind "VirtualServise", apiVersion "networking.istio.io/v1": did you mean VirtualService of networking.istio.io?; it is left out until it is valid'
    expect((await discovery.debug<{ problems: string[] }>('filez')).problems).to.deep.equal([problem])
    expect(discovery.log()).to.include(problem)
  })

  it('continues without the unreadable content if --allowUnreadableConfig is set, and logs it', async () => {
    await (await start(true)).ready()
    await until('the log to say so', () =>
      /warn.*--allowUnreadableConfig is set: the process goes on without the configuration in these: .*garbage.yaml, document 2/.test(
        discovery.log(),
      ),
    )
    expect(JSON.stringify(await discovery.debug('configz'))).to.include('"invalid"')
  })
})
