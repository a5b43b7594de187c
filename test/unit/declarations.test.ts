import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { debugPages, unbuiltPages } from '../../actors/discovery/admin/debug-table.ts'
import { agentLogging, proxyFlags, waitFlags } from '../../src/cli/agent-flags.ts'
import { distrustFlags, exportFlags, importFlags, ledgerFlags, rotateFlags } from '../../src/cli/ca-flags.ts'
import { discoveryFlags, discoveryLogging, rootFlags, tokenFlags } from '../../src/cli/discovery-flags.ts'
import { notYetOf } from '../../src/cli/flags.ts'
import { injectFlags } from '../../src/cli/inject-flags.ts'
import { redirectFlags } from '../../src/cli/redirect-flags.ts'
import { versionFlags } from '../../src/cli/version.ts'
import { agentVariables } from '../../src/config/agent-features.ts'
import { discoveryVariables, variables } from '../../src/config/features.ts'
import { unbuiltVariables } from '../../src/config/unbuilt-variables.ts'
import { agentScopeTable, discoveryScopeTable, type Scope } from '../../src/logging/scopes.ts'
import { variableAliases } from '../../src/names/mesh-names.ts'
import { idleNames, loggedScopes, scopeFaults, undeclaredNames } from '../harness/declaration-uses.ts'
import { idleMetrics } from '../harness/metric-uses.ts'
import { type SourceFile, sourceFile, sourceFiles } from '../harness/syntax.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const tables = ['agent-features.ts', 'features.ts', 'unbuilt-variables.ts'].map((file) => join('src/config', file))
/** Names of Node, Linux and Envoy, and an example, that documents mention. */
const foreign = [
  'CAP_NET_ADMIN',
  'NET_ADMIN',
  'NET_RAW',
  'NET_BIND_SERVICE',
  'SO_REUSEPORT',
  'NODE_EXTRA_CA_CERTS',
  'STATE_BOUND',
  '--bootstrap-version',
  '--inspect',
  '--switch',
]
const declaredFlags = {
  ...{ ...rootFlags, ...discoveryLogging, ...discoveryFlags, ...tokenFlags, ...injectFlags, ...versionFlags },
  ...{ ...ledgerFlags, ...rotateFlags, ...distrustFlags, ...exportFlags, ...importFlags },
  ...{ ...agentLogging, ...proxyFlags, ...waitFlags, ...redirectFlags },
}
/** The variables of flags. */
const environment = Object.values(declaredFlags).flatMap((flag) => ('env' in flag && flag.env ? [flag.env] : []))

describe('what is declared', () => {
  let files: SourceFile[]
  before(() => {
    files = sourceFiles(['src', 'actors', 'bin'])
  })
  const users = () => files.filter(({ path }) => !tables.includes(path))

  it('as a variable is read, or says why it has no effect', () => {
    expect(idleNames(Object.keys({ ...variables, ...agentVariables }), users())).to.deep.equal([])
  })

  it('as a variable that the program does not read is not read, and has a reason', () => {
    const discovery = users().filter(({ path }) => path.startsWith('actors/discovery'))
    expect(idleNames(Object.keys(unbuiltVariables), discovery)).to.deep.equal(Object.keys(unbuiltVariables))
    expect(Object.keys(variables).filter((name) => Object.hasOwn(unbuiltVariables, name))).to.deep.equal([])
    for (const [name, { without }] of Object.entries(unbuiltVariables)) expect(without, name).not.to.equal('')
  })

  it('as a flag is read, or says why it has no effect', () => {
    const effective = Object.entries(declaredFlags).filter(([, flag]) => notYetOf(flag) === undefined)
    expect(
      idleNames(
        effective.map(([name]) => name),
        users(),
      ),
    ).to.deep.equal([])
  })

  it('as a metric is moved', () => {
    expect(idleMetrics(files)).to.deep.equal([])
  })

  for (const [binary, table, rooms] of [
    ['pilot-discovery', discoveryScopeTable, /^actors\/(?!agent\/)/],
    ['pilot-agent', agentScopeTable, /^actors\/(?!discovery\/)/],
  ] as const)
    it(`as a log scope of ${binary} is written, or says why it is not; no other scope is written`, () => {
      const logged = loggedScopes(files.filter(({ path }) => rooms.test(path)))
      expect(scopeFaults(table satisfies Readonly<Record<string, Scope>>, logged)).to.deep.equal([])
    })

  it('as another name of a variable names a variable', () => {
    const known = new Set([...Object.keys({ ...discoveryVariables, ...agentVariables }), ...environment])
    expect([...variableAliases].filter(([, name]) => !known.has(name))).to.deep.equal([])
  })

  it('is what documents name', () => {
    const documents = ['README.md', 'ARCHITECTURE.md', ...readdirSync(join(root, 'docs')).map((file) => join('docs', file))]
    const texts = documents.filter((path) => path.endsWith('.md')).map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
    const metrics = [...(texts.find(({ path }) => path === 'docs/metrics.md')?.text ?? '').matchAll(/^\| `(\w+)`/gm)].map(
      ([, name]) => name as string,
    )
    const declared = {
      variables: new Set([...Object.keys({ ...discoveryVariables, ...agentVariables }), ...environment]),
      flags: new Set(Object.keys(declaredFlags)),
      metrics: new Set(metrics),
      pages: new Set([...Object.keys(debugPages), ...unbuiltPages.keys()]),
    }
    const unknown = texts.flatMap(({ path, text }) => undeclaredNames(text, declared, files).map((name) => ({ path, name })))
    expect(unknown.filter(({ name }) => !foreign.includes(name))).to.deep.equal([])
  })
})

describe('the search for what is declared and not used', () => {
  const file = (text: string) => [sourceFile('actors/x.ts', text)]

  it('finds names that only types and comments mention', () => {
    expect(idleNames(['A_B'], file("type T = Pick<Features, 'A_B'>; const a = (features: { A_B: string }) => 1 // features.A_B"))).to.deep.equal([
      'A_B',
    ])
    expect(idleNames(['A_B'], file('features.A_B = 1'))).to.deep.equal(['A_B'])
    for (const used of ['f(features.A_B)', 'const { A_B } = features', 'class C { m({ A_B: a }: Features) { return a } }', "read('A_B')"])
      expect(idleNames(['A_B'], file(used)), used).to.deep.equal([])
  })

  const made = "const one = new Counter({ name: 'm', registers })\n"
  for (const [what, text] of Object.entries({
    'is declared alone': made,
    'only begins with zero': `${made}one.inc(labels, 0)`,
    'is added to by a function that nothing calls': `function metrics() {\n${made}return { added: () => one.inc() } }`,
    'is added to by a method that nothing calls': "class C { constructor() { this.#one = new Counter({ name: 'm' }) } add() { this.#one.inc() } }",
    'is handed out and not moved': `function metrics() {\n${made}return { one } }`,
    'is made by a function of the file': "const counter = (name) => new Counter({ name })\nconst one = counter('m')",
  }))
    it(`finds a metric that ${what}`, () => {
      expect(idleMetrics(file(text)).map(({ metric }) => metric)).to.deep.equal(['m'])
    })

  for (const [what, text] of Object.entries({
    'is added to': `${made}one.inc()`,
    'is added to by a function that is called': `function metrics() {\n${made}return { added: () => one.inc() } }\nmetrics().added()`,
    'is handed out and moved': `function metrics() {\n${made}return { one } }\nmetrics().one.inc()`,
    'reads its value itself': "new Gauge({ name: 'm', collect() { this.set(1) } })",
    'is set at once': "new Gauge({ name: 'm' }).set(1)",
  }))
    it(`finds no fault with a metric that ${what}`, () => {
      expect(idleMetrics(file(text))).to.deep.equal([])
    })

  it('finds scopes without lines, lines without scope, and reasons that no longer hold', () => {
    const table = { a: { about: 'x' }, b: { about: 'x' }, c: { without: 'x' }, d: { without: 'x' } }
    const text = "log('a').info(''); this.#log(is ? 'c' : 'e').warn(''); function tell(scope = 'default') { log(scope) }"
    expect(scopeFaults(table, loggedScopes(file(text)))).to.deep.equal([
      'b: nothing is logged to it',
      'c: lines are logged to it, although it is declared without',
      'default: is not declared',
      'e: is not declared',
    ])
  })

  it('finds names in documents that nothing declares', () => {
    const declared = { variables: new Set(['A_B']), flags: new Set(['flag']), metrics: new Set(['pilot_x']), pages: new Set(['adsz']) }
    const text = '`A_B=1` `A_C` `--flag x` `--flog` `pilot_x` `pilot_y{a="b"}` `/debug/adsz` `/debug/adz` `KIND_OF` A_D'
    expect(undeclaredNames(text, declared, file("x('KIND_OF')"))).to.deep.equal(['A_C', '--flog', 'pilot_y', '/debug/adz'])
  })
})
