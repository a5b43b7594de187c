import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { discoveryFlags, discoveryLogging, rootFlags } from '../../src/cli/discovery-flags.ts'
import { notYetOf } from '../../src/cli/flags.ts'
import { unbuiltVariables } from '../../src/config/unbuilt-variables.ts'
import { discoveryScript } from '../harness/commands.ts'
import { OwnTime } from '../harness/own-time.ts'
import { textOf } from '../harness/page-text.ts'
import { runCommand, Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

describe('pilot-discovery on the command line', () => {
  it('runs as a user without an entry in the list of users, as in many containers', function () {
    const run = (command: string, ...args: string[]) => spawnSync(command, args, { uid: 54_321, gid: 54_321, env: {}, encoding: 'utf8' })
    if (process.getuid?.() !== 0 || run('/usr/bin/test', '-r', discoveryScript).status !== 0) this.skip()
    const { status, stdout, stderr } = run(process.execPath, discoveryScript, 'version', '--short')
    expect({ status, stdout, stderr }).to.deep.equal({ status: 0, stdout: '0.1.0\n', stderr: '' })
  })

  it('ends with one line and its status for failures when standard output or standard error cannot be written, as on a full disk', function () {
    if (!existsSync('/dev/full')) this.skip()
    const dir = mkdtempSync(join(tmpdir(), 'mesh-full-'))
    const full = openSync('/dev/full', 'w')
    try {
      const [route, pod] = [join(dir, 'route.yaml'), join(dir, 'pod.yaml')]
      writeFileSync(route, 'apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: b}\nspec: {hosts: 1}\n')
      writeFileSync(pod, 'apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: d}]}\n')
      const run = (args: readonly string[], stdout: 'pipe' | number, stderr: 'pipe' | number) =>
        spawnSync(process.execPath, [discoveryScript, ...args], { stdio: ['ignore', stdout, stderr], encoding: 'utf8' })
      for (const args of [
        ['analyze', route],
        ['analyze', '--json', route],
        ['inject', '-f', pod],
        ['version'],
        ['--help'],
        ['ca', '--json', '--none'],
      ]) {
        const { status, stderr } = run(args, full, 'pipe')
        const line = stderr.split('\n').filter((each) => each !== '' && !each.includes(' finding in '))
        expect([status, line], args.join(' ')).to.deep.equal([255, ['Error: standard output: ENOSPC: no space left on device, write']])
      }
      expect(run(['analyze', route], 'pipe', full).status).to.equal(1)
      expect(run(['validate', pod], 'pipe', full).status).to.equal(0)
    } finally {
      closeSync(full)
      rmSync(dir, { recursive: true })
    }
  })

  it('prints its version in every format', async () => {
    const short = await runCommand(['version', '--short'])
    expect([short.stdout, short.code]).to.deep.equal(['0.1.0\n', 0])
    expect((await runCommand(['version'])).stdout).to.match(
      /^version\.BuildInfo\{Version:"0\.1\.0", GitRevision:".*", GolangVersion:".*", BuildStatus:".*", GitTag:".*"\}\n$/,
    )
    expect((await runCommand(['version', '--json'])).stdout).to.equal((await runCommand(['version', '-o', 'json'])).stdout)
    expect(Object.keys(JSON.parse((await runCommand(['version', '-o', 'json', '--short=false'])).stdout).clientVersion)).to.deep.equal([
      'version',
      'revision',
      'golang_version',
      'status',
      'tag',
    ])
    expect((await runCommand(['version', '-o', 'yaml'])).stdout).to.match(
      /^clientVersion:\n {2}golang_version: .*\n {2}revision: .*\n {2}status: .*\n {2}tag: .*\n {2}version: 0\.1\.0\n\n$/,
    )
  })

  for (const [args, message] of [
    [['version', '-o', 'xml'], "--output must be 'yaml' or 'json'"],
    [['discovery', '--bogus'], 'Nonexistent flag: --bogus'],
    [['discovery', 'extra'], 'Unexpected argument: extra'],
    [['discovery', '--ctrlz_port', '70000'], '"--ctrlz_port": expected a whole number from 0 to 65535'],
    [['discovery', '--resync', 'soon'], '"--resync": expected a duration'],
    [['discovery', '--httpAddr', ''], '--httpAddr: an address is needed'],
    [['discovery', '--registries', 'Consul'], '--registries: "Consul" is not a registry'],
    [['discovery', '--log_output_level', 'nope:info'], '--log_output_level: unknown scope "nope"'],
    [['discovery', '--log_output_level', 'ads:loud'], '--log_output_level: unknown level "loud"'],
    [['discovery', '--grpcAddr', 'here'], '--grpcAddr: "here" is not an address'],
    [
      ['discovery', '--keepaliveMaxServerConnectionAge', '0s'],
      '"--keepaliveMaxServerConnectionAge": expected a duration such as 1m30s, from 1s to 2562047h47m16.854775807s',
    ],
    [['discovery', '--keepaliveInterval', '-5s'], '"--keepaliveInterval": expected a duration such as 1m30s, from 1s to'],
    [['discovery', '--writers', '-1'], 'invalid argument "-1" for "--writers": expected a whole number from 0 to 256'],
    [['discovery', '--log_rotate_max_size=0'], 'invalid argument "0" for "--log_rotate_max_size": expected a whole number from 1 to 2147483647'],
    [['discovery', '--log_rotate_max_age=-1'], '"--log_rotate_max_age": expected a whole number from 0'],
    [['discovery', '--resync', '99999999h'], '"--resync": expected a duration such as 1m30s, from 0s to 2562047h47m16.854775807s'],
    [['discovery', '--trust-domain', 'a/b'], '--trust-domain: "a/b" is not a trust domain'],
  ] as const) {
    it(`rejects ${args.join(' ')}`, async () => {
      const { code, stderr } = await runCommand(args)
      expect(code).to.equal(255)
      expect(stderr)
        .to.match(/^Error: /)
        .and.to.contain(message)
    })
  }

  for (const [args, near] of [
    [['nonsense'], '; "pilot-discovery help" lists them'],
    [['requst', 'GET', '/x'], '; did you mean "request"?'],
    [['proxy-config', 'cluster', 'x'], '; did you mean "proxy-config clusters"?'],
    [['prxy-config', 'clusters', 'x'], '; did you mean "proxy-config clusters"?'],
  ] as const)
    it(`names the unknown command in ${args.join(' ')}`, async () => {
      const { code, stderr } = await runCommand(args, { CI: 'true' })
      expect(code).to.equal(255)
      const [, typed = '', last] = /^Error: "(.*)" is not a pilot-discovery command(; .*)\n$/.exec(stderr) ?? []
      expect(args.join(' ')).to.satisfy((line: string) => line.startsWith(typed) && typed.startsWith(args[0]))
      expect(last).to.equal(near)
    })

  it('names the unknown command in JSON, and writes nothing else', async () => {
    const asked = async (...args: string[]) => {
      const { code, stdout, stderr } = await runCommand([...args, '--json'])
      expect([code, stderr]).to.deep.equal([255, ''])
      return JSON.parse(stdout).error
    }
    expect(await asked('requst', 'GET')).to.equal('"requst" is not a pilot-discovery command; did you mean "request"?')
    expect(await asked('proxy-config', 'cluster', 'x')).to.equal(
      '"proxy-config cluster x" is not a pilot-discovery command; did you mean "proxy-config clusters"?',
    )
    expect(await asked('n\u001b[31m')).to.equal('"n\\u001b[31m" is not a pilot-discovery command; "pilot-discovery help" lists them')
    expect(await asked('proxy-config')).to.match(/^name a command: proxy-config bootstrap, proxy-config clusters, /)
    expect(await asked()).to.match(/^name a command: analyze, authz, /)
  })

  it('escapes what is not its own text in an error, so that it cannot look like lines of the command', async () => {
    const forged = 'none\nError: forged\u001b[31m'
    for (const args of [
      ['analyze', `/${forged}`],
      ['analyze', `--${forged}`],
      ['diff', `/${forged}`],
      ['inject', '-f', `/${forged}`],
      ['token', '-n', 'a', '-o', `/${forged}/b`],
      ['proxy-status', '--address', 'localhost:1', '--token-file', `/${forged}`],
      [forged],
      ['proxy-config', forged],
    ]) {
      const { stderr, code } = await runCommand(args, { CI: 'true' })
      expect(code, args.join(' ')).to.equal(args[0] === 'diff' ? 2 : 255)
      expect(stderr, args.join(' '))
        .to.match(/none\\u000aError[: ] forged\\u001b\[31m/)
        .and.not.contain('\u001b[31m')
      expect(stderr.match(/^Error: /gm), args.join(' ')).to.have.lengthOf(1)
    }
  })

  it('escapes the names of the folder that the quickstart keeps, and of the program that is no Envoy', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mesh-kept-'))
    try {
      const { stdout, stderr, code } = await runCommand(['quickstart', '--keep', join(folder, 'kept\u001b[31m\nhere')], {
        ENVOY_BIN: join(folder, 'none\u001b[31m'),
      })
      expect([code, stdout]).to.deep.equal([
        255,
        `The files are in ${folder}/kept\\u001b[31m\\u000ahere; its README.md says how to start it by hand.\n`,
      ])
      expect(stderr).to.match(/^Error: .*none\\u001b\[31m.*\n$/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it('runs the command that it suggests in a terminal with all that was typed behind the unknown one', () => {
    const terminal = '--import=data:text/javascript,process.stdin.isTTY=true'
    const run = (...args: string[]) =>
      spawnSync(process.execPath, [terminal, discoveryScript, ...args], { input: '\r', encoding: 'utf8', env: { ...process.env, NO_COLOR: '1' } })
    expect(run('versoin', '-ojson').stdout).to.contain('Did you mean version?').and.to.contain('"version": "0.1.0"')
    expect(run('discvery', '--httpAddr', 'here').stderr).to.contain('--httpAddr: "here" is not an address')
  })

  it('uses the last value of a repeated flag, and all entries of list flags', async () => {
    const twice = ['discovery', '--grpcAddr', 'here', '--grpcAddr=:0', '--httpAddr', ':0', '--monitoringAddr', 'there', '--registries', 'Mock']
    const { stderr } = await runCommand([...twice, '--registries=Mock,Consul', '--monitoringAddr', 'nowhere'])
    expect(stderr).to.equal(
      'Error: --monitoringAddr: "nowhere" is not an address such as :15010 or 127.0.0.1:15010; --registries: "Consul" is not a registry; choose from Orchestrator, Mock\n',
    )
    expect((await runCommand(['--log_as_json', 'version', '--short', '-s=false', '-ojson', '-o', 'yaml', '-s'])).stdout).to.match(/^clientVersion:/)
  })

  it('rejects variables that are out of range, all in one error', async () => {
    const { code, stderr } = await runCommand(['discovery', '--registries', 'Mock'], { PILOT_PUSH_THROTTLE: '-1', PILOT_DEBOUNCE_AFTER: '-1ms' })
    expect(code).to.equal(255)
    expect(stderr).to.equal(
      'Error: environment variable PILOT_DEBOUNCE_AFTER: "-1ms" is not a duration such as 1m30s, from 0s to 2562047h47m16.854775807s; environment variable PILOT_PUSH_THROTTLE: "-1" is not a whole number from 1 to 2147483647\n',
    )
  })

  it('prints help with flags and log scopes', async () => {
    const help = await runCommand(['discovery', '--help'])
    expect(help.code).to.equal(0)
    for (const part of ['--registries', '-a, --appNamespace', '2562047h47m16.854775807s', 'validationController', '--log_rotate_max_size'])
      expect(help.stdout).to.contain(part)
  })

  it('prints flags of processes in the help of commands that are some, and accepts and checks them with all', async () => {
    const ofProcesses = /--(ctrlz_port|keepaliveInterval|log_output_level|log_target|log_rotate_max_size)/
    for (const command of ['explain', 'proxy-status', 'request', 'version', 'analyze', 'quickstart'])
      expect((await runCommand([command, '--help'])).stdout, command)
        .to.contain('USAGE')
        .and.not.to.match(ofProcesses)
    expect((await runCommand(['config', '--help'])).stdout).to.match(ofProcesses)
    const flags = ['--ctrlz_port', '0', '--keepaliveInterval', '30s', '--log_target', 'stderr', '--log_rotate_max_size', '1']
    expect(await runCommand(['version', '--short', ...flags])).to.include({ code: 0, stderr: '' })
    expect((await runCommand(['version', '--log_output_level', 'nope:info'])).stderr).to.contain('--log_output_level: unknown scope "nope"')
  })

  it('prints the same help with -h as with --help', async () => {
    for (const command of [[], ['discovery']]) {
      const { stdout } = await runCommand([...command, '--help'])
      expect(await runCommand([...command, '-h'])).to.include({ code: 0, stdout, stderr: '' })
    }
  })

  it('prints the same help with the word before a command as with --help after it', async () => {
    for (const command of [['proxy-config', 'clusters'], ['push', 'watch'], ['version'], ['proxy-config'], ['autocomplete']]) {
      const { stdout } = await runCommand([...command, '--help'])
      expect(stdout).to.match(new RegExp(`\\n {2}\\$ pilot-discovery ${command.join(' ')}[^-]*\\n`))
      expect(await runCommand(['help', ...command]), command.join(' ')).to.include({ code: 0, stdout, stderr: '' })
    }
  })

  it('generates completion for powershell, which knows commands and flags', async () => {
    const home = mkdtempSync(join(tmpdir(), 'mesh-home-'))
    try {
      const result = await runCommand(['autocomplete', 'powershell'], {
        HOME: home,
        XDG_CACHE_HOME: join(home, 'cache'),
        XDG_DATA_HOME: join(home, 'data'),
      })
      expect(result.code).to.equal(0)
      const files = readdirSync(home, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
      expect(files.map((file) => readFileSync(join(file.parentPath, file.name), 'utf8')).join('\n'))
        .to.contain('grpcAddr')
        .and.to.contain('log_target')
    } finally {
      rmSync(home, { recursive: true, force: true })
    }
  })

  it('names the shells that are completed', async () => {
    const known = 'completion is for bash, zsh, fish and powershell'
    for (const [args, SHELL, error] of [
      [['bassh'], '/bin/bash', `"bassh" is not a shell that is known: ${known}; did you mean "bash"?`],
      [['script', 'fsh'], '/bin/bash', `"fsh" is not a shell that is known: ${known}`],
      [[], '/bin/tcsh', `${known}; SHELL names "tcsh": name one`],
    ] as const)
      expect(await runCommand(['autocomplete', ...args], { SHELL })).to.include({ code: 255, stdout: '', stderr: `Error: ${error}\n` })
    expect((await runCommand(['autocomplete', '--help'])).stdout).to.contain('[SHELL]  bash, zsh, fish, powershell; that of the user')
  })

  describe('a running discovery service', () => {
    const service = new Service({
      env: { PILOT_MOCK_SERVICES: '10', PILOT_MOCK_ENDPOINT: '2', NODE_NAME: 'one', PILOT_ENABLED_SERVICE_APIS: 'true' },
      flags: ['--clusterRegistriesNamespace', 'shop', '--log_as_json', '--log_caller', 'default', '--log_output_level', 'default:info,ads:debug'],
    })
    let share = 1
    before(async () => {
      const starting = new OwnTime()
      await service.start()
      share = starting.share()
    })
    after(() => service.dispose())

    it('is ready within 2.5 seconds of own time', async () => {
      const startup = Number(/^startup_duration_seconds (.*)$/m.exec(await service.metrics())?.[1])
      expect(startup).to.be.greaterThan(0)
      expect(startup * share, 'seconds of own time').to.be.lessThan(2.5)
    })

    it('logs each setting without effect by name, as JSON lines with the caller', async () => {
      await service.output.says('ready after')
      const lines = service.output
        .soFar()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, string>)
      const messages = lines.map((line) => line.msg)
      for (const wanted of [
        'environment variable PILOT_ENABLED_SERVICE_APIS has no effect: the orchestrator client has no such part yet',
        'FLAG: --clusterRegistriesNamespace="shop"',
        'variable "PILOT_MOCK_ENDPOINT" is not known; did you mean PILOT_MOCK_ENDPOINTS?',
      ])
        expect(messages).to.include(wanted)
      // Variables of others are no misspelt ones.
      expect(messages.join('\n')).not.to.contain('NODE_NAME')
      expect(messages.join('\n')).to.contain('in plain text')
      // Built, several modules are one file.
      expect(lines[0]?.caller).to.match(/^(discovery\/service\.ts|bin\/[\w-]+\.js):\d+$/)
      expect(Object.keys(lines[0] ?? {})).to.deep.equal(['level', 'time', 'caller', 'msg'])
    })

    it('serves /version, /metrics and every debug page', async () => {
      for (const path of ['/debug', '/debug/']) {
        const list = `http://127.0.0.1:${service.httpPort}${path}`
        expect(await (await fetch(list, { headers: { accept: 'text/html' } })).text()).to.contain('<h1>Debug pages</h1>')
        expect(await (await fetch(list)).text()).to.match(/^Debug pages:\n(\/debug\/\S+ +\S.*\n)+$/)
      }
      expect(await textOf(await fetch(`http://127.0.0.1:${service.httpPort}/debug/synz`))).to.equal(
        'there is no page /debug/synz; did you mean /debug/syncz?',
      )
      const version = await fetch(`http://127.0.0.1:${service.monitoringPort}/version`)
      // The commit of the clone that the commands were built from.
      expect(await textOf(version)).to.match(/^0\.1\.0-([0-9a-f]{40}(-dirty)?|unknown)-Source$/)
      for (const page of [
        'adsz',
        'syncz',
        'configz',
        'registryz',
        'endpointz',
        'endpointShardz',
        'cachez',
        'instancesz',
        'push_status',
        'mesh',
        'resourcesz',
        'actorsz',
      ])
        expect(await service.debug(page), page).not.to.equal(null)
      const [[host, shards] = []] = Object.entries(await service.debug<Record<string, object>>('endpointShardz'))
      expect(shards, host).to.have.nested.property('mock-0.Mock/Orchestrator').of.length(3)
      expect((await service.debug<object[]>('registryz'))[0]).to.include({ provider: 'Mock', cluster: 'Orchestrator' })
      const inject = await fetch(`http://127.0.0.1:${service.httpPort}/debug/inject`)
      expect([inject.status, await textOf(inject)]).to.deep.equal([
        404,
        'no webhooks run yet (INJECT_ENABLED, --httpsAddr, a cluster, a first review)',
      ])
      for (const page of ['edsz', 'ndsz', 'config_dump', 'sidecarz']) {
        const url = `http://127.0.0.1:${service.httpPort}/debug/${page}`
        expect((await fetch(url)).status).to.equal(400)
        expect((await fetch(`${url}?proxyID=nobody`)).status).to.equal(404)
      }
      await until('an empty mailbox', async () => (await service.metrics()).includes('actor_mailbox_depth{actor="push-queue"} 0'))
      const metrics = await service.metrics()
      for (const name of ['pilot_services 10', 'pilot_info{version="0.1.0"} 1', 'actor_cpu_seconds{actor="xds-writer/0"}'])
        expect(metrics).to.contain(name)
    })

    it('exits with 255 if an address is in use', async () => {
      for (const [flag, port] of [
        ['--grpcAddr', service.grpcPort],
        ['--httpAddr', service.httpPort],
      ] as const) {
        const others = ['--grpcAddr', '--httpAddr', '--monitoringAddr'].filter((name) => name !== flag).flatMap((name) => [name, '127.0.0.1:0'])
        const { code, stderr } = await runCommand(['discovery', '--registries', 'Mock', flag, `127.0.0.1:${port}`, ...others])
        expect([code, stderr]).to.deep.include(255)
        expect(stderr).to.match(/^Error: .*EADDRINUSE/)
      }
    })

    it('shuts down on SIGTERM with status 0', async () => {
      expect(await service.stop()).to.equal(0)
      await service.output.says('shutting down')
    })
  })

  it('warns of every flag, variable and plugin without effect, with the reason', async () => {
    const idle = Object.entries({ ...rootFlags, ...discoveryLogging, ...discoveryFlags }).filter(([, flag]) => notYetOf(flag) !== undefined)
    const service = new Service({
      env: Object.fromEntries(Object.entries(unbuiltVariables).map(([name, { default: value }]) => [name, String(value) || 'x'])),
      flags: [
        ...idle.flatMap(([name, flag]) =>
          flag.type === 'boolean' ? [`--${name}`] : [`--${name}`, name === 'resync' ? '1m' : String(flag.default) || 'x'],
        ),
        '--plugins',
        'authn,metadata_exchange,__proto__',
      ],
    })
    try {
      await service.start()
      for (const [name, flag] of idle) await service.output.says(`flag --${name} has no effect yet: ${notYetOf(flag)}\n`)
      await service.output.says('--plugins: "metadata_exchange" has no effect: there is no exchange of metadata yet\n')
      await service.output.says('--plugins: "__proto__" has no effect: it is none of ext_authz, authn, authz, metadata_exchange\n')
      for (const [name, { without }] of Object.entries(unbuiltVariables))
        await service.output.says(`environment variable ${name} has no effect: ${without}\n`)
    } finally {
      await service.dispose()
    }
  })

  it('hides debug pages if ENABLE_DEBUG_ON_HTTP is false, and writes its log to files', async () => {
    const logs = mkdtempSync(join(tmpdir(), 'mesh-log-'))
    const service = new Service({
      env: { ENABLE_DEBUG_ON_HTTP: 'false' },
      flags: ['--log_target', join(logs, 'target.log'), '--log_rotate', join(logs, 'rotated.log'), '--log_rotate_max_size', '1'],
    })
    try {
      await service.start()
      expect((await fetch(`http://127.0.0.1:${service.httpPort}/debug/adsz`)).status).to.equal(404)
      const health = `http://127.0.0.1:${service.httpPort}/grpc.health.v1.Health/List`
      const told = await fetch(health, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
      expect(((await told.json()) as { statuses: object }).statuses).to.have.all.keys('', 'grpc.health.v1.Health')
      await until('the logs', () => ['target.log', 'rotated.log'].every((name) => readFileSync(join(logs, name), 'utf8').includes('ready after')))
      expect(readFileSync(join(logs, 'target.log'), 'utf8')).to.match(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\tinfo\t/)
      await service.stop()
      expect(await service.output.whole()).to.equal('')
    } finally {
      await service.dispose()
      rmSync(logs, { recursive: true, force: true })
    }
  })

  it('sets V8: heaps grow to twice what is in use and are marked from 96 MiB on, and threads compile their functions themselves once it is ready', async () => {
    // Prints every flag that is given to V8 at run time.
    const printFlags = `import v8 from 'node:v8'; import { syncBuiltinESMExports } from 'node:module';
      const set = v8.setFlagsFromString; v8.setFlagsFromString = (flag) => { console.log('V8', flag); set(flag) }; syncBuiltinESMExports()`
    const service = new Service({ env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(printFlags)}` } })
    try {
      await service.start()
      await service.stop()
      // The bound of the young generation sets a flag of its own whenever a collection finds it there (`young-generation.test.ts`), and the first collection of
      // an idle thread another (`garbage.ts`): both on a slow machine before the service is stopped.
      const flags = (await service.output.whole()).match(/^V8 (?!--semi-space-growth-factor|--expose-gc).*$/gm)
      expect(flags).to.deep.equal([
        'V8 --heap-growing-percent=100',
        'V8 --initial-heap-size=96',
        'V8 --no-single-threaded-gc-in-background',
        'V8 --efficiency-mode',
      ])
      service.output.lacks(/illegal value|unrecognized flag/)
    } finally {
      await service.dispose()
    }
  })
})
