import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { clusterType } from '../../src/xds/type-urls.ts'
import { Agent } from '../harness/agent.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { runCommand, Service } from '../harness/service.ts'
import { readmeTour, takeTour } from '../harness/tour.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

interface Locked {
  readonly version: string
  readonly optionalDependencies?: Record<string, string>
}

describe('the lock file', () => {
  it('has every part of every package, those of other platforms too', () => {
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> }
    const names = new Set(Object.keys(packages).map((path) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)))
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies }]) =>
      Object.keys(optionalDependencies ?? {}).flatMap((name) => (names.has(name) ? [] : `${path}: ${name}`)),
    )
    expect(missing).to.deep.equal([])
  })
})

/** Returns a Node of the system in `PATH` that is too old for the project; undefined when there is none. */
function oldNode(): string | undefined {
  const candidates = (process.env.PATH ?? '').split(':').map((path) => join(path, 'node'))
  return candidates.find((path) => {
    const { stdout } = spawnSync(path, ['--version'], { encoding: 'utf8' })
    return Number(/^v(\d+)/.exec(stdout ?? '')?.[1] ?? 99) < 22
  })
}

describe('the package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-package-'))
  const installed = join(folder, 'node_modules/mesh-control-plane')
  const npm = (args: readonly string[], cwd: string) =>
    execFileSync(process.platform === 'win32' ? 'npm.cmd' : 'npm', [...args, '--no-audit', '--no-fund'], {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  /** Where the package of the agent alone is installed. */
  const agentFolder = mkdtempSync(join(tmpdir(), 'mesh-agent-package-'))
  /** The Node that `engines` names as the oldest, and both packages without the one that comes with them, as macOS and musl have them. */
  const oldestFolder = mkdtempSync(join(tmpdir(), 'mesh-oldest-node-'))
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { engines: { node: string } }
  const oldest = `${engines.node.replace('>=', '')}.0`
  const runtime = join(oldestFolder, 'runtime/node_modules/.bin/node')
  let files: readonly string[] = []

  before(() => {
    const [packed] = JSON.parse(npm(['pack', '--json', '--silent', '--pack-destination', folder], root)) as {
      filename: string
      files: { path: string }[]
    }[]
    files = packed?.files.map((file) => file.path) ?? []
    writeFileSync(join(folder, 'package.json'), '{"private": true}')
    npm(['install', '--prefer-offline', join(folder, packed?.filename ?? '')], folder)
    const [agent] = JSON.parse(npm(['pack', '--json', '--silent', '--pack-destination', folder, './dist-agent'], root)) as { filename: string }[]
    writeFileSync(join(agentFolder, 'package.json'), '{"private": true}')
    npm(['install', '--prefer-offline', join(folder, agent?.filename ?? '')], agentFolder)
    const install = (where: string, ...args: string[]) => {
      const place = join(oldestFolder, where)
      mkdirSync(place)
      writeFileSync(join(place, 'package.json'), '{"private": true}')
      npm(['install', '--prefer-offline', ...args], place)
    }
    for (const { filename } of [packed, agent].filter((one) => one !== undefined))
      install(filename.replace(/-\d.*/, ''), '--omit=optional', join(folder, filename))
    install('runtime', `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}@${oldest}`)
  })
  after(() => {
    for (const one of [folder, agentFolder, oldestFolder]) rmSync(one, { recursive: true, force: true })
  })

  it('holds built JavaScript and the wire types, no sources, and installs no tools', () => {
    expect(files).to.include.members([
      'README.md',
      'SECURITY.md',
      'LICENSE',
      'docs/agent.md',
      'examples/two-workloads/mesh/stock.yaml',
      'schemas/mesh.json',
      'examples/two-workloads/stock/etc/mesh/config/mesh',
      'bin/pilot-discovery.js',
      'bin/pilot-agent.js',
      'dist/bin/discovery-main.js',
      'dist/bin/agent-main.js',
      'dist/bin/thread.js',
      'dist/bin/discovery/oclif.manifest.json',
      'dist/bin/discovery/ca/show.js',
      'dist/bin/agent/oclif.manifest.json',
    ])
    expect(
      files.filter((file) =>
        /\.ts$|\.proto$|^(src|test|actors|bench\/.*\.[jt]s|protocols|node_modules)\/|\/var\/|\/etc\/(certs|cacerts|mesh\/proxy)\//.test(file),
      ),
    ).to.deep.equal([])
    for (const tool of ['@bufbuild/buf', '@bufbuild/protoc-gen-es', '@grpc/grpc-js-xds', 'typescript', 'mocha'])
      expect(existsSync(join(folder, 'node_modules', tool)), tool).to.equal(false)
    const { scripts } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
    expect(scripts).not.to.have.any.keys('preinstall', 'install', 'postinstall')
  })

  it('says which commit it was made from', function () {
    const { status, stdout: commit } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' })
    if (status !== 0 || !existsSync(join(root, '.git'))) return this.skip()
    for (const [where, name] of [
      [folder, 'pilot-discovery'],
      [folder, 'pilot-agent'],
      [agentFolder, 'pilot-agent'],
    ] as const) {
      const { stdout } = spawnSync(join(where, 'node_modules/.bin', name), ['version'], { encoding: 'utf8', cwd: where })
      expect(/ GitRevision:"([0-9a-f]*)(-dirty)?"/.exec(stdout)?.[1], `${where}: ${stdout}`).to.equal(commit.trim())
    }
  })

  it('has documents whose links lead to files of it', () => {
    const documents = files.filter((file) => file.endsWith('.md'))
    expect(documents).to.include.members(['README.md', 'docs/xds-protocol.md'])
    const dead = documents.flatMap((file) =>
      [...readFileSync(join(installed, file), 'utf8').matchAll(/\]\((?![a-z]+:)([^)#\s]+)(?:#[^)]*)?\)/g)]
        .map(([, path = '']) => path)
        .filter((path) => !existsSync(join(installed, file, '..', path)))
        .map((path) => `${file}: ${path}`),
    )
    expect(dead).to.deep.equal([])
  })

  it('has one file for what a thread runs, which loads no other of the package', () => {
    const loaded = files.filter((file) => /^dist\/bin\/[\w-]+-(thread|task)\.js$/.test(file))
    expect(loaded).to.include.members(
      ['push-queue', 'xds-writer', 'file-watcher', 'sign'].map((name) => `dist/bin/${name}-${name === 'sign' ? 'task' : 'thread'}.js`),
    )
    expect(loaded.filter((file) => /\b(from|import)\s*\(?["']\.{1,2}\//.test(readFileSync(join(installed, file), 'utf8')))).to.deep.equal([])
  })

  it('has a manifest of its commands, so that version --short uses less than 150 ms of CPU more than an empty script', () => {
    const cpu = (args: readonly string[]) => {
      const { output } = spawnSync(process.execPath, ['--require', join(root, 'test/harness/report-cpu.cjs'), ...args], {
        encoding: 'utf8',
        stdio: ['ignore', 'ignore', 'inherit', 'pipe'],
      })
      return Number(output[3]) / 1000
    }
    const version = [join(installed, 'bin/pilot-discovery.js'), 'version', '--short']
    const more = Array.from({ length: 7 }, () => cpu(version) - cpu(['-e', '0'])).sort((one, next) => one - next)
    expect(more[3], `${more} ms`).to.be.greaterThan(1).and.to.be.lessThan(150)
    const { commands } = JSON.parse(readFileSync(join(installed, 'dist/bin/agent/oclif.manifest.json'), 'utf8')) as { commands: object }
    expect(commands).to.have.all.keys('complete', 'mesh-clean-iptables', 'mesh-iptables', 'proxy', 'request', 'version', 'wait')
  })

  it('rests in 195 MB with two writers and the Mock registry', async function () {
    if (process.platform !== 'linux') return this.skip()
    const service = new Service({
      script: join(folder, 'node_modules/.bin/pilot-discovery'),
      flags: ['--configDir', '', '--writers', '2'],
      env: { PILOT_MOCK_SERVICES: '10' },
    })
    try {
      await service.start()
      // What is made ahead of the first proxy is made, and the threads have come to rest.
      const used = async () => /^process_cpu_seconds_total (\S+)$/m.exec(await service.metrics())?.[1]
      let before: string | undefined
      await until('the process to rest', async () => {
        const [earlier, now] = [before, await used()]
        before = now
        return now !== undefined && earlier !== undefined && Number(now) - Number(earlier) < 0.03
      })
      // On a busy machine a process uses little CPU before it rests, too.
      const bytes = () => 1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))?.[1])
      let least = bytes()
      await until('195 MB', () => (least = Math.min(least, bytes())) < 195e6).catch(() => undefined)
      expect(least).to.be.lessThan(195e6)
    } finally {
      await service.dispose()
    }
  })

  for (const [where, script] of [
    ['installed into an empty folder', join(folder, 'node_modules/.bin/pilot-agent')],
    ['installed alone', join(agentFolder, 'node_modules/.bin/pilot-agent')],
    ['run from dist/', join(root, 'dist/bin/pilot-agent.js')],
  ] as const)
    it(`${where}: has an agent that helps, serves and drains a proxy`, async () => {
      expect((await runCommand(['proxy', '--help'], {}, script)).stdout).to.contain('--templateFile')
      expect((await runCommand(['help', 'wait'], {}, script)).stdout).to.contain('--timeoutSeconds')
      expect((await runCommand(['autocomplete', 'script', 'bash'], {}, script)).stdout).to.match(/^source '.*\/pilot-agent\.bash'\n$/)
      expect((await runCommand(['prxy'], {}, script)).stderr).to.contain('"prxy" is not a pilot-agent command; did you mean "proxy"?')
      const agent = new Agent({ script, env: { TERMINATION_DRAIN_DURATION_SECONDS: '0' } })
      try {
        await agent.start()
        expect((await runCommand(['request', 'GET', '/pid'], agent.env, script)).code).to.equal(0)
        expect(await agent.stop()).to.equal(0)
      } finally {
        await agent.dispose()
      }
    })

  it('has a sibling with the agent alone, of at most 40 MB without the Node that comes with it', () => {
    const sizes = readdirSync(join(agentFolder, 'node_modules'), { recursive: true, encoding: 'utf8' })
      .filter((path) => !/^(node-|node_modules\/node-)/.test(path))
      .map((path) => lstatSync(join(agentFolder, 'node_modules', path)))
      .map((found) => (found.isFile() ? found.size : 0))
    expect(sizes.reduce((sum, size) => sum + size, 0))
      .to.be.greaterThan(1e6)
      .and.lessThan(40e6)
    expect(readdirSync(join(agentFolder, 'node_modules')).filter((name) => !/^(\.|node-)/.test(name))).to.deep.equal(['mesh-agent'])
  })

  it('runs on an older Node: it starts the one that came with it', function () {
    const older = oldNode()
    if (older === undefined) return this.skip()
    for (const [where, name] of [
      [folder, 'pilot-discovery'],
      [agentFolder, 'pilot-agent'],
    ] as const) {
      const { status, stdout } = spawnSync(older, [join(where, 'node_modules/.bin', name), 'version'], { encoding: 'utf8' })
      expect([status, stdout], name).to.deep.include(0)
      expect(stdout, name).to.contain(`node ${process.version}`)
    }
    rmSync(join(agentFolder, 'node_modules/.bin/node'))
    const without = spawnSync(older, [join(agentFolder, 'node_modules/.bin/pilot-agent'), 'version'], { encoding: 'utf8' })
    expect(without.status).to.equal(255)
    expect(without.stderr).to.match(/^Error: Node v\d+\.\S+ is too old: version 22\.19 or newer is needed\. /)
    if (process.platform !== 'linux') return
    // As on musl: the program is there, its loader is not.
    const foreign = readFileSync(process.execPath)
    foreign.write('missing', foreign.indexOf('ld-linux-'))
    writeFileSync(join(agentFolder, 'node_modules/.bin/node'), foreign, { mode: 0o755 })
    const onMusl = spawnSync(older, [join(agentFolder, 'node_modules/.bin/pilot-agent'), 'version'], { encoding: 'utf8' })
    expect(onMusl.status).to.equal(255)
    expect(onMusl.stderr).to.match(/^Error: \S+\/node needs glibc, which this system .* lacks: install Node 22\.19 or newer, .*--omit=optional"\n$/)
  })

  describe('on the oldest Node, without the one that comes with it', () => {
    const script = (name: 'mesh-control-plane' | 'mesh-agent', command: string) => join(oldestFolder, name, 'node_modules/.bin', command)
    const commands = [
      ['mesh-control-plane', 'pilot-discovery'],
      ['mesh-control-plane', 'pilot-agent'],
      ['mesh-agent', 'pilot-agent'],
    ] as const

    it('says its version, helps, and warns of nothing', () => {
      for (const [name, command] of commands) {
        expect(readdirSync(join(oldestFolder, name, 'node_modules')).filter((found) => found.startsWith('node-linux'))).to.deep.equal([])
        for (const [args, said] of [
          [['version'], `node v${oldest}`],
          [['--help'], 'version'],
        ] as const) {
          const { status, stdout, stderr } = spawnSync(runtime, [script(name, command), ...args], { encoding: 'utf8' })
          expect([status, stderr], `${name}: ${command} ${args}`).to.deep.equal([0, ''])
          expect(stdout).to.contain(said)
        }
      }
    })

    it('serves a proxy', async () => {
      const service = new Service({ script: script('mesh-control-plane', 'pilot-discovery'), runtime, env: { PILOT_MOCK_SERVICES: '3' } })
      try {
        await service.start()
        const client = await new XdsClient(service.grpcPort, sidecarNode('10.9.0.1', 'pod', 'ns'), true).connect().ready()
        await until('a cluster of the Mock registry', () => (client.resources.get(clusterType)?.size ?? 0) > 3)
        client.close()
        service.output.lacks(/warning/i)
        expect(await service.stop()).to.equal(0)
      } finally {
        await service.dispose()
      }
    })

    for (const [name, command] of commands.filter(([, command]) => command === 'pilot-agent'))
      it(`has an agent that serves and drains a proxy (${name})`, async () => {
        const agent = new Agent({ script: script(name, command), runtime, env: { TERMINATION_DRAIN_DURATION_SECONDS: '0' } })
        try {
          await agent.start()
          expect(await agent.stop()).to.equal(0)
        } finally {
          await agent.dispose()
        }
      })

    it('prints what the tour of README says', async function () {
      const envoy = envoyBinaries().at(-1)
      if (!envoy) return this.skip()
      await takeTour(readmeTour(), {
        ...{ folder: join(oldestFolder, 'mesh-control-plane'), script: script('mesh-control-plane', 'pilot-discovery') },
        ...{ envoy: envoy.path, runtime },
      })
    })
  })

  it('prints what the tour of README says, installed', async function () {
    const envoy = envoyBinaries().at(-1)
    if (!envoy) return this.skip()
    await takeTour(readmeTour(), { folder, script: join(folder, 'node_modules/.bin/pilot-discovery'), envoy: envoy.path })
  })

  it('helps, completes and suggests without any other package', async () => {
    const alone = mkdtempSync(join(tmpdir(), 'mesh-alone-'))
    const env = { HOME: alone, XDG_CACHE_HOME: join(alone, 'cache') }
    try {
      cpSync(installed, join(alone, 'package'), { recursive: true, filter: (path) => !path.startsWith(join(installed, 'node_modules')) })
      for (const [name, command, mistyped] of [
        ['pilot-discovery', 'discovery', 'discvery'],
        ['pilot-agent', 'proxy', 'prxy'],
      ] as const) {
        const run = (...args: string[]) => runCommand(args, env, join(alone, `package/bin/${name}.js`))
        expect((await run('help')).stdout, name).to.contain(`\n  ${command} `)
        expect((await run('--help')).stdout, name).to.contain('autocomplete')
        expect((await run(command, '--help')).stdout, name).to.contain('--log_target')
        expect((await run('autocomplete', 'bash')).stdout, name).to.contain(`${name} autocomplete script bash`)
        expect(readFileSync(join(alone, `cache/${name}/autocomplete/functions/bash/${name}.bash`), 'utf8'), name).to.contain(
          `complete -o default -F _${name.replace('-', '_')}_words ${name}\n`,
        )
        expect((await run('complete', '--', command.slice(0, -1))).stdout, name).to.match(new RegExp(`^${command}\\t`, 'm'))
        expect(await run(mistyped), name)
          .to.deep.include({ code: 255 })
          .and.property('stderr')
          .contain(`"${mistyped}" is not a ${name} command; did you mean "${command}"?`)
      }
    } finally {
      rmSync(alone, { recursive: true, force: true })
    }
  })

  const places = [
    ['installed into an empty folder', join(folder, 'node_modules/.bin/pilot-discovery')],
    ['run from dist/', join(root, 'dist/bin/pilot-discovery.js')],
  ] as const
  for (const [where, script] of places) {
    it(`${where}: says its version, helps, and serves a proxy`, async () => {
      const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
      expect((await runCommand(['version', '--short'], {}, script)).stdout.trim()).to.equal(version)
      expect((await runCommand(['discovery', '--help'], {}, script)).stdout).to.contain('--configDir')
      const service = new Service({ script, env: { PILOT_MOCK_SERVICES: '3' } })
      try {
        await service.start()
        const client = await new XdsClient(service.grpcPort, sidecarNode('10.9.0.1', 'pod', 'ns'), true).connect().ready()
        // Large enough to be parsed by the pool.
        const comment = `# ${'x'.repeat(200)}\n`.repeat(2000)
        service.write(
          'big.yaml',
          `${comment}apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: big, namespace: ns}\nspec: {hosts: [big.ns], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1}]}\n`,
        )
        await until('the cluster of a large file', () => client.resources.get(clusterType)?.has('outbound|80||big.ns') ?? false)
        const { configs } = await service.debug<{ configs: unknown[] }>('config_dump?proxyID=pod')
        expect(configs.length).to.be.greaterThan(2)
        expect(await service.metrics()).to.match(/^pilot_xds\{version="[^"]*"\} 1$/m)
        client.close()
        expect(await service.stop()).to.equal(0)
      } finally {
        await service.dispose()
      }
    })
  }
})
