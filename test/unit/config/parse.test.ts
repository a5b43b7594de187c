import { expect } from 'chai'
import fc from 'fast-check'
import { parse as parseYaml } from 'yaml'
import { parseDuration } from '../../../src/config/duration.ts'
import { readFeatures } from '../../../src/config/features.ts'
import { fileText } from '../../../src/config/file-text.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { PatternChecks } from '../../../src/config/patterns.ts'
import { isStandIn } from '../../../src/config/stand-in.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { cpuMs } from '../../harness/own-time.ts'
import { runs, seed } from '../../harness/seed.ts'

const names = meshNames('mesh.io')
const parse = (content: string) => parseConfigFile('file.yaml', content, names)
const rule = (spec: string, name = 'r', apiVersion = 'networking.mesh.io/v1alpha3') =>
  `apiVersion: ${apiVersion}\nkind: DestinationRule\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`

describe('the parser of configuration files', () => {
  it('leaves out what is labelled with another revision, in either form, and reports none of its faults', () => {
    const labelled = (name: string, labels: string, action = 'ALLOW') =>
      `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: ${name}, namespace: ns, labels: ${labels}}\nspec: {action: ${action}}\n`
    const documents = [
      labelled('all', '{}'),
      labelled('first', '{istio.io/rev: canary}'),
      labelled('second', '{mesh.io/rev: stable}'),
      labelled('wrong', '{mesh.io/rev: other}', 'WRONG'),
    ]
    const read = (revision: string) => {
      const { objects, faults, foreign } = parseConfigFile('f', documents.join('---\n'), names, undefined, undefined, revision)
      return { names: objects.map(({ name }) => name), faults: faults.length, foreign: [...foreign] }
    }
    const left = (...revisions: string[]) => revisions.map((revision) => [`AuthorizationPolicy of revision "${revision}"`, 1])
    expect(read('')).to.deep.equal({ names: ['all'], faults: 0, foreign: left('canary', 'stable', 'other') })
    expect(read('canary')).to.deep.equal({ names: ['all', 'first'], faults: 0, foreign: left('stable', 'other') })
    expect(read('other').faults).to.be.above(0)
    expect(parse(labelled('all', '{mesh.io/rev: 7}')).faults).to.have.length.above(0)
  })

  it('reads Namespaces, Nodes and Pods, in lists too, and takes manifests that describe none that is there for documents of others', () => {
    const { objects, faults, foreign } = parse(
      [
        'apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a, namespace: ns, labels: {app: web}, creationTimestamp: 2026-01-01T00:00:00Z}\n  spec: {nodeName: node, serviceAccountName: s, containers: [{name: c}]}\n  status: {podIP: "FD00::0001", podIPs: [{ip: "fd00::1"}, {ip: 10.1.1.1}], conditions: [{type: Ready, status: "True"}]}\n- metadata: {name: b, namespace: ns, deletionTimestamp: 2026-01-01T00:00:00Z}\n',
        'apiVersion: v1\nkind: Pod\nmetadata: {name: manifest}\nspec: {}\n',
        'apiVersion: v1\nkind: Pod\nmetadata: {generateName: manifest-, namespace: ns}\n',
        'apiVersion: v1\nkind: Namespace\nmetadata: {name: ns, namespace: ignored, labels: {istio.io/rev: x}}\n',
        'apiVersion: other.example/v1\nkind: Node\nmetadata: {name: n}\n',
        'apiVersion: v1\nkind: Pod\nmetadata: {name: wrong, namespace: ns}\nspec: {nodeName: [node]}\nstatus: {podIP: nowhere}\n',
      ].join('---\n'),
    )
    expect(objects.map((object) => [configKey(object), object.labels, object.spec])).to.deep.equal([
      ['Pod/ns/a', { app: 'web' }, { addresses: ['fd00::1', '10.1.1.1'], node: 'node', serviceAccount: 's', hostNetwork: false, readiness: 'ready' }],
      ['Pod/ns/b', {}, { addresses: [], node: '', serviceAccount: 'default', hostNetwork: false, readiness: 'terminating' }],
      ['Namespace//ns', { 'mesh.io/rev': 'x' }, {}],
    ])
    expect([...foreign]).to.deep.equal([
      ['Pod of v1 without a namespace', 1],
      ['Pod of v1 without a name', 1],
      ['Node of other.example/v1', 1],
    ])
    expect(faults.map(({ key, path, reason }) => [key, path, reason])).to.deep.equal([
      ['Pod/ns/wrong', 'status.podIP', '"nowhere" is not an IP address'],
      ['Pod/ns/wrong', 'spec.nodeName', 'expected text of at most 253 characters, got object'],
    ])
  })

  it('compiles each regular expression once, and within a time limit', () => {
    const match = (regex: string) => `{match: [{uri: {regex: "${regex}"}}], route: [{destination: {host: a}}]}`
    const document = (...regexes: string[]) =>
      `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: v, namespace: ns}\nspec: {hosts: [a], http: [${regexes.map(match).join(', ')}]}\n`
    const read = (text: string) => {
      // Each reading of the clock is a millisecond later, and compiling a pattern reads the clock twice.
      let ms = 0
      const patterns = new PatternChecks(2, () => ms++)
      return { ...parseConfigFile('file.yaml', text, names, patterns), ms: () => ms, patterns }
    }
    const twice = read(document('a', 'b', 'a', 'b'))
    expect(twice.patterns.isExhausted).to.equal(false)
    expect(twice.objects).to.have.length(1)
    expect(twice.ms()).to.equal(4)
    const many = read(document('a', 'b', 'c', 'd', 'e'))
    expect(many.patterns.isExhausted).to.equal(true)
    expect(many.ms()).to.equal(6)
    expect(read(document('a', '(', '(')).faults.map(({ path }) => path)).to.deep.equal([
      'spec.http[1].match[0].uri.regex',
      'spec.http[2].match[0].uri.regex',
    ])
  })

  it('reports an invalid document with number and field, and keeps the other documents', () => {
    const { objects, faults } = parse(
      `${rule('{host: a}', 'one')}---\n${rule('{host: b, subsets: [{name: "not ok!"}]}', 'two')}---\n${rule('{host: c}', 'three')}---\nkind: [\n`,
    )
    expect(objects.map((object) => object.name)).to.deep.equal(['one', 'three'])
    expect(faults[0]).to.include({ file: 'file.yaml', document: 2, key: 'DestinationRule/ns/two', path: 'spec.subsets[0].name' })
    expect(faults[1]).to.include({ document: 4, key: undefined })
    expect(faults[1]?.reason).to.match(/^not YAML, line \d+/)
  })

  it('accepts istio.io as an alias of the mesh domain in groups, labels and annotations', () => {
    const { objects } = parse(
      'apiVersion: networking.istio.io/v1beta1\nkind: Sidecar\nmetadata: {name: s, labels: {topology.istio.io/network: x}, annotations: {sidecar.istio.io/inject: "true"}}\nspec: {}\n',
    )
    expect(objects[0]).to.deep.include({
      group: 'networking.mesh.io',
      labels: { 'topology.mesh.io/network': 'x' },
      annotations: { 'sidecar.mesh.io/inject': 'true' },
    })
  })

  it('accepts snake_case fields, numbers as text, and JSON', () => {
    const { objects, faults } = parse(rule('{host: a, traffic_policy: {connection_pool: {tcp: {max_connections: "7"}}}}'))
    expect(faults).to.deep.equal([])
    expect(objects[0]?.spec).to.deep.equal({ host: 'a', trafficPolicy: { connectionPool: { tcp: { maxConnections: 7 } } } })
    expect(
      parse(
        JSON.stringify({
          apiVersion: 'networking.mesh.io/v1',
          kind: 'DestinationRule',
          metadata: { name: 'j', namespace: 'n' },
          spec: { host: 'h' },
        }),
      ).objects,
    ).to.have.length(1)
  })

  it('warns of unknown fields, ignores unknown kinds, and rejects unknown versions', () => {
    expect(parse(rule('{host: a, hosst: b}')).warnings[0]).to.include({
      path: 'spec.hosst',
      reason: 'unknown field, left out; did you mean "host"?',
    })
    expect(parse(rule('{host: a, colour: b}')).warnings[0]).to.include({ path: 'spec.colour', reason: 'unknown field, left out' })
    expect(parse('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n')).to.deep.equal({
      objects: [],
      secrets: [],
      faults: [],
      warnings: [],
      standIns: new Map(),
      foreign: new Map([['ConfigMap of v1', 1]]),
    })
    expect(parse(rule('{host: a}', 'r', 'networking.mesh.io/v9')).faults[0]?.path).to.equal('apiVersion')
  })

  it('reports the value and the accepted form of an invalid name', () => {
    const form = 'expected at most 253 letters, digits, "-", "_" and ".", beginning and ending with a letter or digit'
    expect(parse(rule('{host: a}', 'a/b')).faults[0]).to.include({
      path: 'metadata.name',
      reason: `"a/b" is not a valid object name: ${form}`,
    })
    expect(parse(rule('{host: a}', 'a'.repeat(300))).faults[0]?.reason).to.equal(`"${'a'.repeat(100)}" is not a valid object name: ${form}`)
  })

  it('reports a file with too many documents, and each document that is not UTF-8, with one fault', () => {
    const { faults, objects } = parse(`${rule('{host: a}')}---\n`.repeat(50_001))
    expect([faults.map(({ key, reason, mayBe }) => [key, reason, mayBe]), objects]).to.deep.equal([
      [[undefined, 'more than 50000 documents', 'anything']],
      [],
    ])
    const latin = (text: string) => parse(fileText(Buffer.from(`${rule('{host: ok}', 'first')}---\n${text}`, 'latin1')))
    const undecoded = (line: number) => `not UTF-8, line ${line}: it has bytes that are no characters; save the file as UTF-8`
    for (const [text, line, key] of [
      [`# none\n${rule('{host: caf\u00e9, subsets: [{name: \u00fc}]}')}`, 10, 'DestinationRule/ns/r'],
      [rule('{host: "a\u00e9}'), 9, 'DestinationRule/ns/r'],
    ] as const) {
      const read = latin(text)
      expect(read.faults.map((fault) => [fault.document, fault.key, fault.path, fault.reason])).to.deep.equal([[2, key, '', undecoded(line)]])
      expect(read.objects.map(({ name }) => name)).to.deep.equal(['first'])
    }
    const comment = latin(`# caf\u00e9\n${rule('{host: a}')}`)
    expect([comment.faults, comment.warnings.map(({ reason }) => reason), comment.objects.length]).to.deep.equal([[], [undecoded(6)], 2])
  })

  it('reports a misspelt kind or group that is no policy as a fault of the object that it means', () => {
    const document = (apiVersion: string, kind: string) =>
      parse(`apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: x, namespace: ns}\nspec: {hosts: [a]}\n`)
    for (const [apiVersion, kind, path, group = 'networking.mesh.io'] of [
      // A group stays in the form in which it is written.
      ['networking.istio.io/v1', 'VirtualServise', 'kind', 'networking.istio.io'],
      ['networking.mesh.io/v1', 'virtualservice', 'kind'],
      ['networkin.istio.io/v1', 'VirtualService', 'apiVersion', 'networking.istio.io'],
      ['networking.istio.oi/v1', 'VirtualService', 'apiVersion', 'networking.istio.io'],
      ['networking.mesh.oi/v1', 'VirtualService', 'apiVersion'],
      ['telemetry.mesh.io/v1', 'VirtualService', 'apiVersion'],
      ['v1', 'VirtualService', 'apiVersion'],
    ] as const)
      expect(document(apiVersion, kind), `${kind} of ${apiVersion}`).to.deep.include({
        faults: [
          {
            file: 'file.yaml',
            document: 1,
            key: 'VirtualService/ns/x',
            path,
            reason: `unknown kind "${kind}", apiVersion "${apiVersion}": did you mean VirtualService of ${group}?`,
          },
        ],
        foreign: new Map(),
      })
    for (const [apiVersion, kind, meant] of [
      ['networking.istio.io', 'VirtualService', 'VirtualService of networking.istio.io/v1'],
      ['networking.mesh.io', 'VirtualServise', 'VirtualService of networking.mesh.io/v1'],
      ['security.istio.io', 'AuthorizationPolicy', 'AuthorizationPolicy of security.istio.io/v1'],
    ] as const)
      expect(
        document(apiVersion, kind).faults.map(({ reason }) => reason),
        apiVersion,
      ).to.deep.equal([`unknown kind "${kind}", apiVersion "${apiVersion}": the version is missing: did you mean ${meant}?`])
    for (const [apiVersion, kind] of [
      ['networking.k8s.io/v1', 'Gateway'],
      ['install.istio.io/v1alpha1', 'IstioOperator'],
      ['v1', 'Service'],
    ] as const)
      expect(document(apiVersion, kind)).to.deep.include({ faults: [], warnings: [], foreign: new Map([[`${kind} of ${apiVersion}`, 1]]) })
  })

  it('warns of objects of the gateway API, which have no effect, once a kind and file', () => {
    const object = (kind: string, name: string) => `apiVersion: gateway.networking.k8s.io/v1\nkind: ${kind}\nmetadata: {name: ${name}}\n`
    const { objects, faults, warnings, foreign } = parse([object('Gateway', 'a'), object('HTTPRoute', 'b'), object('HTTPRoute', 'c')].join('---\n'))
    expect([objects, faults, foreign.get('HTTPRoute of gateway.networking.k8s.io/v1')]).to.deep.equal([[], [], 2])
    expect(warnings.map(({ document, path }) => [document, path])).to.deep.equal([
      [1, 'apiVersion'],
      [2, 'apiVersion'],
    ])
    expect(warnings[1]?.reason).to.match(
      /^the HTTPRoute b has no effect, and neither has any other HTTPRoute of gateway\.networking\.k8s\.io in the file: /,
    )
  })

  it('warns of an unknown kind in a group of the mesh that resembles no declared kind, and leaves it out', () => {
    const { objects, faults, warnings, foreign } = parse('apiVersion: networking.istio.io/v2\nkind: Newcomer\nmetadata: {name: x, namespace: ns}\n')
    expect({ objects, faults, foreign }).to.deep.equal({ objects: [], faults: [], foreign: new Map() })
    const reason = 'unknown kind "Newcomer", apiVersion "networking.istio.io/v2"; the document is left out'
    expect(warnings).to.deep.equal([{ file: 'file.yaml', document: 1, key: 'Newcomer/ns/x', path: 'kind', reason }])
  })

  for (const [what, spec, path] of [
    [
      'a VirtualService weight of all zero',
      'VirtualService|{hosts: [a], http: [{route: [{destination: {host: a}, weight: 0}, {destination: {host: b}, weight: 0}]}]}',
      'spec.http[0].route',
    ],
    ['a rule without action', 'VirtualService|{hosts: [a], http: [{match: []}]}', 'spec.http[0]'],
    [
      'a regular expression that RE2 refuses',
      'VirtualService|{hosts: [a], http: [{match: [{uri: {regex: "a(?=b)"}}], route: [{destination: {host: a}}]}]}',
      'spec.http[0].match[0].uri.regex',
    ],
    ['* with the mesh gateway', 'VirtualService|{hosts: ["*"], http: [{route: [{destination: {host: a}}]}]}', 'spec.hosts'],
    ['a port used twice', 'ServiceEntry|{hosts: [a.b], ports: [{number: 1, name: a}, {number: 1, name: b}]}', 'spec.ports[1].number'],
    [
      'a host name as STATIC endpoint',
      'ServiceEntry|{hosts: [a.b], resolution: STATIC, ports: [{number: 1, name: a}], endpoints: [{address: c.d}]}',
      'spec.endpoints[0].address',
    ],
    ['a ServiceEntry exported to text that is no namespace', 'ServiceEntry|{hosts: [a.b], exportTo: [., "n ipv4"]}', 'spec.exportTo[1]'],
    ['a DestinationRule exported to text that is no namespace', 'DestinationRule|{host: a, exportTo: [""]}', 'spec.exportTo[0]'],
    [
      'a VirtualService exported to text that is no namespace',
      'VirtualService|{hosts: [a], exportTo: [n/m], http: [{route: [{destination: {host: a}}]}]}',
      'spec.exportTo[0]',
    ],
    ['HTTPS without tls', 'Gateway|{servers: [{port: {number: 1, name: a, protocol: HTTPS}, hosts: [a]}]}', 'spec.servers[0].tls'],
    ['a Sidecar host without namespace', 'Sidecar|{egress: [{hosts: [a]}]}', 'spec.egress[0].hosts[0]'],
    [
      'an EnvoyFilter without value',
      'EnvoyFilter|{configPatches: [{applyTo: CLUSTER, patch: {operation: MERGE}}]}',
      'spec.configPatches[0].patch.value',
    ],
  ] as const) {
    it(`rejects ${what}`, () => {
      const [kind, body] = spec.split('|') as [string, string]
      const { faults } = parse(`apiVersion: networking.mesh.io/v1alpha3\nkind: ${kind}\nmetadata: {name: x, namespace: ns}\nspec: ${body}\n`)
      expect(faults.map((fault) => fault.path)).to.include(path)
    })
  }
})

describe('policies in a configuration file', () => {
  const policy = (kind: string, spec: string, metadata = '{name: p, namespace: shop}', group = 'security.mesh.io') =>
    `apiVersion: ${group}/v1\nkind: ${kind}\nmetadata: ${metadata}\nspec: ${spec}\n`
  const deny = '{selector: {matchLabels: {app: a}}, action: DENY, rules: [{}]}'
  /** Returns the effective objects of a file with the labels that they select: keys, with `!` before stand-ins. */
  const counts = (content: string) => {
    const { objects, standIns } = parse(content)
    const labels = (spec: unknown) => JSON.stringify((spec as { selector?: { matchLabels?: object } }).selector?.matchLabels ?? {})
    const all = [...objects, ...[...standIns.values()].filter((one) => !objects.some((other) => configKey(other) === configKey(one)))]
    return all.map((object) => `${isStandIn(object) ? '!' : ''}${configKey(object)} ${labels(object.spec)}`).sort()
  }

  it('are replaced by a stand-in if their document is not YAML but recognisable, without losing neighbouring documents', () => {
    const broken = policy('AuthorizationPolicy', '{action: DENY, rules: [{to: [{operation: {paths: ["/x]}}]}]}', '{name: q, namespace: shop}')
    expect(counts([policy('AuthorizationPolicy', deny), broken, rule('{host: a}')].join('---\n'))).to.deep.equal([
      '!AuthorizationPolicy/shop/q {}',
      'AuthorizationPolicy/shop/p {"app":"a"}',
      'DestinationRule/ns/r {}',
    ])
    expect(counts(`${broken.replace('name: q, ', '')}---\n${policy('PeerAuthentication', '{}')}`)).to.deep.equal([
      '!AuthorizationPolicy/shop/(file.yaml#1.1) {}',
      'PeerAuthentication/shop/p {}',
    ])
    expect(counts(broken + policy('PeerAuthentication', '{}'))).to.deep.equal(['!AuthorizationPolicy/shop/q {}', '!PeerAuthentication/shop/p {}'])
  })

  it('are replaced by a stand-in if kind or group are misspelt', () => {
    for (const text of [
      policy('AuthorisationPolicy', deny),
      policy('authorizationpolicy', deny),
      policy('Policy', deny),
      policy('AuthorizationPolicy', deny, undefined, 'security.istio.oi'),
      policy('AuthorizationPolicy', deny).replace('security.mesh.io/', ''),
      policy('AuthorizationPolicy', deny).replace(/^apiVersion.*\n/, ''),
      policy('AuthorizationPolicy', deny).replace(/kind.*\n/, ''),
      policy('AuthorizationPolicy', deny).replace('kind', 'Kind'),
    ])
      expect(counts(text), text).to.deep.equal(['!AuthorizationPolicy/shop/p {}'])
    expect(parse(policy('AuthorisationPolicy', deny)).faults).to.deep.include({
      file: 'file.yaml',
      document: 1,
      key: 'AuthorizationPolicy/shop/p',
      path: 'kind',
      reason: 'unknown kind "AuthorisationPolicy", apiVersion "security.mesh.io/v1": did you mean AuthorizationPolicy of security.mesh.io?',
      mayBe: 'AuthorizationPolicy',
    })
    expect(counts(policy('AuthorizationPolicy', deny, undefined, 'policy.linkerd.io'))).to.deep.equal([])
  })

  it('are read from lists', () => {
    const [one, two] = [policy('AuthorizationPolicy', deny), policy('PeerAuthentication', '{mtls: {mode: STRICT}}')].map(
      (text) => parseYaml(text) as object,
    )
    const both = ['AuthorizationPolicy/shop/p {"app":"a"}', 'PeerAuthentication/shop/p {}']
    expect(counts(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [one, two] }))).to.deep.equal(both)
    expect(counts(JSON.stringify([one, two]))).to.deep.equal(both)
    expect(counts(JSON.stringify([one, [two]], undefined, 2).replaceAll('"', "'"))).to.deep.equal(both)
    const { apiVersion: _, kind, ...rest } = one as { apiVersion: string; kind: string }
    const typed = { apiVersion: 'security.istio.io/v1', kind: 'AuthorizationPolicyList', items: [rest] }
    expect([kind, counts(JSON.stringify(typed))]).to.deep.equal(['AuthorizationPolicy', both.slice(0, 1)])
    for (const items of [{ Items: [one, two] }, { items: { a: one, b: two } }])
      expect(counts(JSON.stringify({ apiVersion: 'v1', kind: 'List', ...items }))).to.deep.equal([
        '!AuthorizationPolicy/shop/p {}',
        '!PeerAuthentication/shop/p {}',
      ])
    const spoilt = parse(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [one, { ...two, spec: { mtls: { mode: 'X' } } }] }))
    expect(spoilt.objects).to.have.length(1)
    expect(spoilt.faults[0]).to.include({ path: 'items[1].spec.mtls.mode', key: 'PeerAuthentication/shop/p' })
  })

  it('without a valid namespace apply to all namespaces, as the strictest policy that they could mean', () => {
    for (const metadata of [
      '{name: p}',
      '{name: p, namespace: null}',
      '{name: p, namespace: 5}',
      '{name: p, namespace: ""}',
      '{name: p, namespace: [shop]}',
      '{name: p, Namespace: shop}',
      '{name: p, namespace: other, Namespace: shop}',
      '{name: p, namespace: "a b"}',
    ]) {
      const spec = deny.replace('DENY', 'ALLOW')
      expect(counts(policy('AuthorizationPolicy', spec, metadata)), metadata).to.deep.equal(['!AuthorizationPolicy//p {"app":"a"}'])
      expect(counts(policy('AuthorizationPolicy', deny, metadata)), metadata).to.deep.equal(['AuthorizationPolicy//p {"app":"a"}'])
      const [fault] = parse(policy('AuthorizationPolicy', deny, metadata)).faults
      expect(fault, metadata).to.include({ path: 'metadata.namespace', key: 'AuthorizationPolicy//p', mayBe: 'AuthorizationPolicy' })
    }
    const anywhere = (kind: string, spec: string, metadata = '{name: p}') => counts(policy(kind, spec, metadata))
    expect(anywhere('PeerAuthentication', '{mtls: {mode: STRICT}}')).to.deep.equal(['PeerAuthentication//p {}'])
    expect(anywhere('PeerAuthentication', '{mtls: {mode: DISABLE}}')).to.deep.equal([])
    expect(
      anywhere('PeerAuthentication', '{selector: {matchLabels: {app: a}}, mtls: {mode: DISABLE}, portLevelMtls: {80: {mode: STRICT}}}'),
    ).to.deep.equal(['!PeerAuthentication//p {"app":"a"}'])
    expect(anywhere('RequestAuthentication', '{jwtRules: [{issuer: a}]}')).to.deep.equal(['!RequestAuthentication//p {}'])
    expect(anywhere('AuthorizationPolicy', '{}', '{name: p, annotations: {istio.io/dry-run: "true"}}')).to.deep.equal(['AuthorizationPolicy//p {}'])
  })

  it('with two spellings of a field apply as the stricter of both readings', () => {
    const two = '{selector: {matchLabels: {app: a}}, Selector: {matchLabels: {app: b}}, action: DENY, rules: [{}]}'
    expect(counts(policy('AuthorizationPolicy', two))).to.deep.equal(['!AuthorizationPolicy/shop/p {}'])
    expect(counts(policy('AuthorizationPolicy', '{selector: {matchLabels: {app: a}, match_labels: {app: b}}}'))).to.deep.equal([
      '!AuthorizationPolicy/shop/p {}',
    ])
    expect(counts(policy('RequestAuthentication', '{}').replace('spec:', 'Spec:'))).to.deep.equal(['!RequestAuthentication/shop/p {}'])
    expect(counts(`${policy('AuthorizationPolicy', deny)}spec: {}\n`)).to.deep.equal(['!AuthorizationPolicy/shop/p {}'])
    expect(
      counts(`{"apiVersion": "security.mesh.io/v1", "kind": "AuthorizationPolicy", "metadata": {"name": "p", "namespace": "shop", "name": "q"}}`),
    ).to.deep.equal(['!AuthorizationPolicy/shop/p {}'])
  })

  it('with two different definitions apply as the stricter of both', () => {
    const other = deny.replace('app: a', 'app: b')
    expect(counts(`${policy('AuthorizationPolicy', deny)}---\n${policy('AuthorizationPolicy', deny)}`)).to.deep.equal([
      'AuthorizationPolicy/shop/p {"app":"a"}',
    ])
    expect(counts(`${policy('AuthorizationPolicy', deny)}---\n${policy('AuthorizationPolicy', other)}`)).to.deep.equal([
      '!AuthorizationPolicy/shop/p {}',
    ])
    expect(
      counts(
        `${policy('AuthorizationPolicy', deny)}---\n${policy('AuthorizationPolicy', deny.replace('[{}]', '[{to: [{operation: {ports: ["1"]}}]}]'))}`,
      ),
    ).to.deep.equal(['!AuthorizationPolicy/shop/p {"app":"a"}'])
    expect(counts(`${policy('AuthorizationPolicy', deny)}---\n${policy('AuthorizationPolicy', '{actoin: DENY}')}`)).to.deep.equal([
      '!AuthorizationPolicy/shop/p {}',
    ])
  })

  it('are replaced by a stand-in if their values are not valid UTF-8, but not because of bytes in comments', () => {
    const text = policy('AuthorizationPolicy', '{action: DENY, rules: [{to: [{operation: {paths: ["/\uDC80"]}}]}]}')
    expect(counts(`# \uDC80\n${policy('PeerAuthentication', '{}')}---\n${text}`)).to.deep.equal([
      '!AuthorizationPolicy/shop/p {}',
      'PeerAuthentication/shop/p {}',
    ])
  })

  it('are recognised with zero bytes before, within and between their characters', () => {
    const text = policy('AuthorizationPolicy', deny)
    for (const given of [
      `\0${text}`,
      `\0\0\0${text}`,
      text.replace('kind', 'ki\0nd'),
      [...text].join('\0'),
      JSON.stringify({ kind: 'AuthorizationPolicy\0' }),
    ])
      expect(counts(given).join(), JSON.stringify(given.slice(0, 40))).to.match(/^!AuthorizationPolicy\//)
  })

  it('with very many keys are parsed in time linear in their number, with a bounded number of faults', () => {
    const wide = (count: number) => policy('AuthorizationPolicy', `\n${Array.from({ length: count }, (_, index) => `  k${index}: 1\n`).join('')}`)
    const timed = (count: number) => cpuMs(() => parse(wide(count)))
    timed(500)
    const [small, large] = [Math.max(10, timed(2000)), timed(20_000)]
    expect(large / small).to.be.below(40)
    const { faults, standIns } = parse(wide(20_000))
    expect(faults).to.have.length(21)
    expect(faults[20]?.reason).to.equal('unknown field; faults beyond this one: 19979')
    expect(JSON.stringify(standIns.get('AuthorizationPolicy/shop/p')?.spec.invalid).length).to.be.below(2000)
  })

  it('survive arbitrary corruption of a neighbouring document', () => {
    const own = [
      policy('AuthorizationPolicy', deny, '{name: before, namespace: shop}'),
      policy('PeerAuthentication', '{mtls: {mode: STRICT}}', '{name: after, namespace: shop}'),
    ]
    const victim = `${policy('AuthorizationPolicy', deny)}# [[{\n`
    const garbled = fc
      .array(
        fc.tuple(
          fc.nat(victim.length),
          fc.nat(8),
          fc.oneof(fc.constantFrom(...'"\'[]{}|>#&*!%@`\t\r\n:-,?', '\uFEFF', '\n...\n', '---', '\n--- |\n'), fc.string({ maxLength: 5 })),
        ),
        { minLength: 1, maxLength: 5 },
      )
      .map((edits) => edits.reduce((text, [at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut), victim))
    fc.assert(
      fc.property(garbled, (text) => {
        const { objects } = parse([own[0], text, own[1]].join('\n---\n'))
        expect(objects.map(configKey)).to.include.members(['AuthorizationPolicy/shop/before', 'PeerAuthentication/shop/after'])
      }),
      { numRuns: runs(2000), seed },
    )
  })
})

describe('durations, variables and mesh configuration', () => {
  it('are read: durations in the syntax of Go', () => {
    expect(['1h2m3.5s', '100ms', '0', '-1.5s', '1us', '2562047h47m16.854775807s'].map(parseDuration)).to.deep.equal([
      3723500, 100, 0, -1500, 0.001, 9223372036854.775,
    ])
    expect(['', '5', 's', '1x', '1 s'].map(parseDuration)).to.deep.equal([undefined, undefined, undefined, undefined, undefined])
  })

  it('are read: variables, with a warning for those without effect', () => {
    const { features, warnings } = readFeatures({ PILOT_DEBOUNCE_AFTER: '20ms', PILOT_ENABLED_SERVICE_APIS: 'true' })
    expect([features.PILOT_DEBOUNCE_AFTER, features.PILOT_DEBOUNCE_MAX]).to.deep.equal([20, 10_000])
    expect(warnings).to.deep.equal(['environment variable PILOT_ENABLED_SERVICE_APIS has no effect: the orchestrator client has no such part yet'])
  })

  it('are read: a mesh configuration whose defaultConfig is merged and whose faults name the field', () => {
    const read = readMeshConfig('rootNamespace: root\ndefaultConfig: {concurrency: 9}\n')
    if ('error' in read) throw new Error(read.error)
    expect(read.value).to.nested.include({
      rootNamespace: 'root',
      trustDomain: 'cluster.local',
      'defaultConfig.concurrency': 9,
      'defaultConfig.statusPort': 15_020,
    })
    expect(read.warnings).to.deep.equal([])
    expect(readMeshConfig('connectTimeout: soon')).to.deep.equal({ error: 'field connectTimeout: expected a duration such as 5s, got string "soon"' })
  })
})
