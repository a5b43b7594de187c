import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { discoveryScript } from '../harness/commands.ts'
import { schemaFaults } from '../harness/json-schema.ts'

describe('pilot-discovery analyze and validate', () => {
  let dir: string
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-analyze-'))
    mkdirSync(join(dir, 'below'))
  })
  after(() => rmSync(dir, { recursive: true, force: true }))
  const write = (name: string, content: string) => writeFileSync(join(dir, name), content)
  const run = (args: readonly string[], input = '') => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [discoveryScript, ...args], { input, encoding: 'utf8', env: { ...process.env } })
    return { status, stdout, stderr }
  }
  const route = (host: string) =>
    `apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web, namespace: shop}\nspec: {hosts: [web], http: [{route: [{destinaton: {}, destination: {host: ${host}}}]}]}\n`
  const service = 'apiVersion: v1\nkind: Service\nmetadata: {name: reviews, namespace: shop}\nspec: {ports: [{name: http, port: 80}]}\n'

  it('find what is wrong in directories, with file, document, object and field, and fail from the level that was asked for', () => {
    write('route.yaml', `${service}---\n${route('reviws')}`)
    write(
      'below/more.json',
      '{"apiVersion": "networking.mesh.io/v1", "kind": "Sidecar", "metadata": {"name": "s", "namespace": "shop"}, "spec": {"egress": [{}]}}',
    )
    write('route.yaml.txt', route('web'))
    const analyzed = run(['analyze', dir])
    const at = join(dir, 'route.yaml')
    expect(analyzed.stdout.split('\n')).to.deep.equal([
      `warning MESH0001 ${at}.txt: not read, since its name does not end in .yaml, .yml or .json: rename it, or move it elsewhere`,
      `error IST0106 ${join(dir, 'below/more.json')}:1:128: Sidecar shop/s: spec.egress[0].hosts: required, but missing`,
      `warning IST0133 ${at}:9:39: VirtualService shop/web: spec.http[0].route[0].destinaton: unknown field, left out; did you mean "destination"?`,
      `warning MESH0012 ${at}:9:16: VirtualService shop/web: spec.hosts[0]: there is no service web.shop.svc.cluster.local, so no request to a service takes these routes`,
      `error IST0101 ${at}:9:69: VirtualService shop/web: spec.http[0].route[0].destination.host: there is no service reviws.shop.svc.cluster.local, so requests are answered with an error; did you mean "reviews"?`,
      '',
    ])
    expect(analyzed.stderr).to.equal(`5 findings in 2 files; 1 file not read, since their names do not end in .yaml, .yml or .json: ${at}.txt\n`)
    expect(analyzed.status).to.equal(1)
    const validated = run(['validate', at])
    expect([validated.status, validated.stdout.split('\n').length]).to.deep.equal([0, 2])
    expect(run(['validate', '--fail-on', 'warning', at]).status).to.equal(1)
    expect(run(['validate', join(dir, 'below')]).status).to.equal(1)
  })

  it('tell fields and kinds without effect, with the reason, of files and of standard input', () => {
    const rule = 'apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: web, namespace: shop}\n'
    const text = `${rule}spec:\n  host: reviews\n  trafficPolicy: {tunnel: {}}\n---\napiVersion: extensions.istio.io/v1alpha1\nkind: WasmPlugin\nmetadata: {name: w, namespace: shop}\n`
    write('idle.yaml', `${text}---\n${service}`)
    const tunnel = 'DestinationRule shop/web: spec.trafficPolicy.tunnel: has no effect yet: connections are not tunnelled'
    const plugin = 'WasmPlugin shop/w: has no effect yet: no Envoy filter is generated from it; use an EnvoyFilter instead'
    for (const command of ['validate', 'analyze'])
      for (const [given, name] of [
        [join(dir, 'idle.yaml'), join(dir, 'idle.yaml')],
        ['-', '(standard input)'],
      ] as const) {
        const { status, stdout } = run([command, given], `${text}---\n${service}`)
        expect([status, stdout.split('\n')]).to.deep.equal([
          0,
          [`warning IST0133 ${name}:6:19: ${tunnel}`, `warning IST0133 ${name}:8:1: ${plugin}`, ''],
        ])
      }
    expect(run(['validate', '--fail-on', 'warning', join(dir, 'idle.yaml')]).status).to.equal(1)
    write('idle.yaml', text.replace('metadata: {', "metadata: {annotations: {galley.istio.io/analyze-suppress: 'IST0133'}, "))
    expect(run(['validate', join(dir, 'idle.yaml')]).stdout).not.to.contain('tunnel')
    rmSync(join(dir, 'idle.yaml'))
  })

  it('tell what is wrong with the mesh configuration in a ConfigMap, with the field', () => {
    const map = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mesh, namespace: mesh-system}\ndata:\n  mesh: |\n    '
    const at = 'ConfigMap mesh-system/mesh: data.mesh: field'
    for (const [text, line] of [
      [
        'accessLogEncodin: JSON',
        `warning IST0133 (standard input):5:3: ${at} accessLogEncodin: unknown field, left out; did you mean "accessLogEncoding"?`,
      ],
      ['enableAutoMtls: maybe', `error IST0106 (standard input):5:3: ${at} enableAutoMtls: expected true or false, got string "maybe"`],
    ] as const)
      for (const command of ['validate', 'analyze']) expect(run([command, '-'], `${map}${text}\n`).stdout).to.equal(`${line}\n`)
  })

  it('check mesh configuration and networks in files of their own, with field and place, and analyze beside them', () => {
    const [mesh, networks] = [join(dir, 'mesh.yaml'), join(dir, 'networks.yaml')]
    write('mesh.yaml', 'accessLogEncodin: JSON\nextensionProviders:\n- name: check\n')
    write('networks.yaml', 'networks:\n  far:\n    endpoints:\n    - fromRegistry: Kubernete\n')
    const flags = ['--meshConfig', mesh, '--networksConfig', networks]
    const unknown = `warning IST0133 ${mesh}:1:1: accessLogEncodin: unknown field, left out; did you mean "accessLogEncoding"?`
    expect(run(['validate', ...flags])).to.deep.equal({ status: 0, stdout: `${unknown}\n`, stderr: '1 finding in 2 files\n' })
    const policy = `apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: shop}\nspec: {action: CUSTOM, provider: {name: chek}, rules: [{}]}\n`
    const maps = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mesh, namespace: mesh-system}\ndata: {mesh: "extensionProviders: [{name: chek}]", meshNetworks: "networks: {}"}\n`
    const analyzed = run(['analyze', ...flags, '-'], `${policy}---\n${maps}`)
    expect(analyzed.stdout.split('\n').filter(Boolean)).to.have.members([
      unknown,
      `error IST0126 ${networks}:4:7: mesh networks: networks.far.endpoints[0].fromRegistry: there is no cluster Kubernete, so this network has none of its endpoints`,
      'error IST0101 (standard input):4:35: AuthorizationPolicy shop/p: spec.provider.name: extensionProviders of the mesh configuration have no chek, so all requests that the rules match are denied; did you mean "check"?',
    ])
    write('mesh.yaml', 'enableAutoMtls: maybe\nconnectTimeout: soon\n')
    const { status, stdout } = run(['validate', '--meshConfig', mesh])
    expect([status, stdout.split('\n')]).to.deep.equal([
      1,
      [
        `error IST0106 ${mesh}:1:1: enableAutoMtls: expected true or false, got string "maybe"`,
        `error IST0106 ${mesh}:2:1: connectTimeout: expected a duration such as 5s, got string "soon"`,
        '',
      ],
    ])
    expect(run(['analyze', '--networksConfig', join(dir, 'none')]).stderr).to.equal(
      `Error: --networksConfig: ${join(dir, 'none')}: there is no such file\n`,
    )
    for (const name of ['mesh.yaml', 'networks.yaml']) rmSync(join(dir, name))
  })

  it('fail at standard input without a document, as inject does: the command before them in a pipeline has failed', () => {
    for (const args of [
      ['validate', '-'],
      ['analyze', '-'],
      ['analyze', dir, '-'],
      ['inject', '-f', '-'],
    ])
      for (const input of ['', '# nothing\n---\n'])
        expect(run(args, input), args.join(' ')).to.deep.equal({ status: 255, stdout: '', stderr: 'Error: standard input: has no objects\n' })
  })

  it('read standard input beside files, and print JSON and SARIF', () => {
    write('service.yaml', service)
    const json = run(['analyze', '--json', '-', join(dir, 'service.yaml')], route('reviws'))
    const found = JSON.parse(json.stdout) as {
      code: string
      name: string
      file: string
      document: number
      line: number
      column: number
      object: string
    }[]
    expect(found.map(({ code, name, file, document, line, column, object }) => [code, name, file, document, line, column, object])).to.deep.equal([
      ['IST0133', 'SchemaWarning', '(standard input)', 1, 4, 39, 'VirtualService shop/web'],
      ['MESH0012', 'HostOfNoService', '(standard input)', 1, 4, 16, 'VirtualService shop/web'],
      ['IST0101', 'ReferencedResourceNotFound', '(standard input)', 1, 4, 69, 'VirtualService shop/web'],
    ])
    const sarif = JSON.parse(run(['analyze', '--sarif', join(dir, 'route.yaml')]).stdout)
    const schema = JSON.parse(readFileSync(new URL('sarif/sarif-schema-2.1.0.json', import.meta.url), 'utf8'))
    expect(schemaFaults(schema, sarif)).to.deep.equal([])
    expect(schemaFaults(schema, { ...sarif, version: '2.0', runs: [{ results: [{ message: {}, level: 'bad' }] }] })).to.have.length.above(3)
    const [{ results, tool }] = sarif.runs
    const region = { startLine: 9, startColumn: 39 }
    expect(results[0].locations[0].physicalLocation).to.deep.equal({ artifactLocation: { uri: `file://${dir}/route.yaml` }, region })
    expect([sarif.version, tool.driver.rules.map(({ id }: { id: string }) => id)]).to.deep.equal(['2.1.0', ['IST0101', 'IST0133', 'MESH0012']])
    const uris = results.map(
      ({ ruleId, level, locations }: { ruleId: string; level: string; locations: { physicalLocation: { artifactLocation: { uri: string } } }[] }) => [
        ruleId,
        level,
        locations[0]?.physicalLocation.artifactLocation.uri,
      ],
    )
    expect(uris).to.deep.equal([
      ['IST0133', 'warning', `file://${dir}/route.yaml`],
      ['MESH0012', 'warning', `file://${dir}/route.yaml`],
      ['IST0101', 'error', `file://${dir}/route.yaml`],
    ])
  })

  it('name files in SARIF by references that programs can read, and objects that several files have', () => {
    const at = (name: string) => join(dir, 'several', name)
    mkdirSync(join(dir, 'several'))
    const policy = (spec: string) =>
      `apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, namespace: shop}\nspec: ${spec}\n`
    writeFileSync(at('a 1.yaml'), `${route('reviews')}---\n${policy('{}')}---\n${service}`)
    writeFileSync(at('b%ü.yaml'), `${policy('{action: DENY, rules: [{}]}')}---\n${route('web')}`)
    const found = JSON.parse(run(['analyze', '--json', join(dir, 'several'), at('a 1.yaml')]).stdout) as Record<string, string>[]
    const of = `the same object is in ${at('a 1.yaml')}, document`
    expect(found.filter(({ path }) => path === 'metadata.name').map(({ code, object, message }) => [code, object, message])).to.deep.equal([
      ['IST0106', 'AuthorizationPolicy shop/p', `${of} 2; it differs, so neither counts: remove one`],
      ['IST0133', 'VirtualService shop/web', `${of} 1; the first one counts: remove one`],
    ])
    const { results } = JSON.parse(run(['analyze', '--sarif', at('b%ü.yaml')]).stdout).runs[0]
    const [{ physicalLocation }] = results[0].locations
    expect(physicalLocation.artifactLocation.uri).to.equal(`file://${dir}/several/b%25%C3%BC.yaml`)
  })

  it('print names of files that a terminal would obey, and that hold line breaks, on the line of the finding', () => {
    const names = mkdtempSync(join(tmpdir(), 'mesh-names-'))
    const name = 'a\x1b[2K\r\nerror IST0101 b\u202e\u009b'
    const shown = join(names, 'a\\u001b[2K\\u000d\\u000aerror IST0101 b\\u202e\\u009b')
    for (const end of ['.yaml', '.txt', '.yaml.txt']) writeFileSync(join(names, `${name}${end}`), 'kind: Sidecar\n')
    for (const command of ['validate', 'analyze']) {
      const { stdout, stderr } = run([command, names])
      expect(stdout.split('\n')).to.deep.equal([
        `warning MESH0001 ${shown}.yaml.txt: not read, since its name does not end in .yaml, .yml or .json: rename it, or move it elsewhere`,
        `error IST0106 ${shown}.yaml:1:1: Sidecar (${shown}.yaml#1.1): apiVersion: required, but missing`,
        '',
      ])
      expect(stderr)
        .to.match(/^2 findings in 1 file; 2 files not read, [^\n]*\n$/)
        .and.not.match(/[\p{Cc}\p{Cf}]./u)
      const json = run([command, '--json', names]).stdout
      expect(json).not.to.match(/[^\P{C}\n]/u)
      expect(JSON.parse(json)[1].file).to.equal(join(names, `${name}.yaml`))
    }
    const missing = run(['analyze', join(names, '\x1b[2K')])
    expect(missing.stderr)
      .to.match(/^Error: [^\n]*\\u001b\[2K[^\n]*\n$/)
      .and.not.contain('\x1b')
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web\nError: b\x1b[2K', labels: { 'sidecar.mesh.io/inject': 'false' } }, spec: {} }
    const injected = run(['inject', '-f', '-'], JSON.stringify(pod))
    expect(injected.stderr).to.match(/^document 1 \(Pod default\/web\\u000aError: b\\u001b\[2K\) gets no sidecar: [^\n]*\n$/)
    rmSync(names, { recursive: true })
  })

  it('say that a file that was named has no object, and that a directory has no configuration, and fail', () => {
    const readme = join(dir, 'README.md')
    writeFileSync(readme, '# Examples\n\n- AuthorizationPolicy: `kind: AuthorizationPolicy` denies\n* [a]: *b\n')
    const { stdout, status } = run(['analyze', readme])
    expect(stdout).to.match(/^error IST0106 .*README\.md:\d+:1: there is no object in it that can be read: not YAML, line \d+: .*\n$/)
    expect(status).to.equal(1)
    for (const text of ['# Examples\n', 'a: text\n']) {
      writeFileSync(readme, text)
      const said = run(['analyze', readme])
      expect([said.stdout, said.status]).to.deep.equal([
        `error IST0106 ${readme}${text.startsWith('#') ? '' : ':1:1'}: there is no object in it\n`,
        1,
      ])
    }
    rmSync(readme)
    const empty = join(dir, 'empty')
    mkdirSync(empty)
    const none = run(['analyze', '--json', empty])
    expect([none.status, none.stdout]).to.deep.equal([1, '[]\n'])
    expect(none.stderr).to.equal(`Error: no configuration was found: ${empty} has no file whose name ends in .yaml, .yml or .json\n`)
    rmSync(empty, { recursive: true })
  })

  it('take objects without a namespace for those of one, with the place of each finding, and validate as a server reads them', () => {
    const manifest = [
      'apiVersion: v1\nkind: Service\nmetadata: {name: reviews}\nspec: {selector: {app: reviews}, ports: [{name: http, port: 80}]}',
      'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: reviews}\nspec: {template: {metadata: {labels: {app: reviews}}}}',
      'apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: reviews}\nspec: {hosts: [reviews], http: [{route: [{destination: {host: reviews}}]}]}',
      'apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: reviews}\nspec: {selector: {matchLabels: {app: reviews}}}',
      'apiVersion: v1\nkind: List\nitems:\n- apiVersion: networking.istio.io/v1\n  kind: DestinationRule\n  metadata: {name: r}\n  spec: {host: ratings}',
    ].join('\n---\n')
    write('plain.yaml', manifest)
    const at = join(dir, 'plain.yaml')
    const missing = (namespace: string) =>
      `error IST0101 ${at}:27:10: DestinationRule ${namespace}/r: spec.host: there is no service ratings.${namespace}.svc.cluster.local, so the rule has no effect\n`
    const untold = run(['analyze', at]).stdout
    const assumed = 'metadata.namespace: missing, so the object counts in the namespace default'
    expect(untold.split('\n')).to.deep.equal([
      `error IST0106 ${at}:18:1: AuthorizationPolicy reviews: metadata.namespace: required, but missing`,
      `warning IST0133 ${at}:13:1: VirtualService default/reviews: ${assumed}`,
      `warning IST0133 ${at}:26:3: DestinationRule default/r: items[0].${assumed}`,
      ...missing('default').split('\n'),
    ])
    expect(run(['validate', at]).stdout.split('\n')).to.deep.equal([...untold.split('\n').slice(0, 3), ''])
    expect(run(['analyze', '-n', 'shop', at]).stdout).to.equal(missing('shop'))
    write('named.yaml', service)
    expect(run(['analyze', '--namespace', 'shop', '--fail-on', 'info', join(dir, 'named.yaml')]).status).to.equal(0)
    expect(run(['analyze', '-n', 'a b', at]).stderr).to.equal('Error: --namespace: "a b" is not a name\n')
  })

  it('tell the place of the networks in their ConfigMap, also in a list', () => {
    const networks = 'networks: {net: {endpoints: [{fromRegistry: nowhere}], gateways: [{address: 192.0.2.1, port: 15443}]}}'
    const map = `{apiVersion: v1, kind: ConfigMap, metadata: {name: mesh, namespace: mesh-system},\n  data: {meshNetworks: "${networks}"}}`
    for (const [name, text, at] of [
      ['networks.yaml', map, '2:10'],
      ['networks-list.yaml', `apiVersion: v1\nkind: List\nitems:\n- ${service.trim().replaceAll('\n', '\n  ')}\n- ${map}\n`, '9:10'],
    ] as const) {
      write(name, text)
      const { stdout } = run(['analyze', join(dir, name)])
      expect(stdout).to.contain(
        `error IST0126 ${join(dir, name)}:${at}: mesh networks: networks.net.endpoints[0].fromRegistry: there is no cluster nowhere`,
      )
      const [result] = JSON.parse(run(['analyze', '--sarif', join(dir, name)]).stdout).runs[0].results
      expect(result.locations[0].physicalLocation.region.startLine).to.equal(Number(at.split(':')[0]))
    }
  })

  it('say what cannot be read or used of the command line', () => {
    const error = (...args: string[]) => run(args).stderr.trim()
    expect(error('analyze', join(dir, 'nosuch'))).to.contain(`Error: ${join(dir, 'nosuch')}: ENOENT`)
    expect(error('analyze', '--fail-on', 'everything', dir)).to.equal(
      'Error: --fail-on: "everything" is not a level; choose from error, warning, info',
    )
    const both = run(['analyze', '--json', '--sarif', dir])
    expect([both.stdout, both.stderr]).to.deep.equal(['{\n  "error": "--json and --sarif exclude each other"\n}\n', ''])
    expect(error('analyze', dir, '--nosuch')).to.equal('Error: unknown flag: --nosuch')
    expect(error('analyze')).to.equal('Error: a file or directory is needed, or - for standard input, or --cluster')
    expect(error('validate')).to.equal('Error: a file or directory is needed, or - for standard input')
    const nowhere = join(dir, 'no-such-file')
    for (const flag of ['--kubeconfig', '--orchconfig'])
      expect(error('analyze', flag, nowhere, dir), flag)
        .to.match(/^Error: --cluster: /)
        .and.to.contain(nowhere)
    expect(error('analyze', '--kubeconfig', nowhere, '--orchconfig', nowhere)).to.equal(
      'Error: --kubeconfig and --orchconfig exclude each other: both name the file of the cluster',
    )
    expect(run(['analyze']).status).to.equal(255)
  })
})
