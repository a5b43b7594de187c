/** Makes the text of `docs/reference.md` from the declarations of flags, variables, log scopes, pages and RPCs. */
import { readdirSync } from 'node:fs'
import type { FlagInput } from '@oclif/core/interfaces'
import { type Coverage, methodCoverage } from '../actors/discovery/admin/coverage.ts'
import { debugPages, unbuiltPages } from '../actors/discovery/admin/debug-table.ts'
import { pageTopics } from '../actors/discovery/admin/introspection.ts'
import { aboutPage } from '../actors/discovery/admin/page-parameters.ts'
import { profilePages } from '../actors/discovery/admin/profile-pages.ts'
import { AgentCommand } from '../src/cli/agent-command.ts'
import { DiscoveryCommand } from '../src/cli/discovery-command.ts'
import { agentVariables } from '../src/config/agent-features.ts'
import { discoveryVariables } from '../src/config/features.ts'
import type { DeclaredVariable } from '../src/config/variable.ts'
import { agentScopeTable, discoveryScopeTable, type Scope } from '../src/logging/scopes.ts'
import { isAliasGroup } from '../src/names/mesh-names.ts'
import { type Access, accesses, accessName, registrationAccesses, signerAccesses, statusAccesses } from '../src/orchestrator/access.ts'
import { methodsOf } from './rpcs.ts'

/** Returns a table. Bars and what would begin HTML are escaped. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll(/[|<]/g, '\\$&')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

const code = (text: string): string => (text === '' ? '' : `\`${text}\``)

interface CommandClass {
  readonly flags?: FlagInput
}

/** The commands of a binary with their flags, by the words that are typed. */
async function commandsIn(folder: string): Promise<[name: string, flags: FlagInput][]> {
  const files = readdirSync(new URL(`../bin/${folder}`, import.meta.url), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  )
  const loaded = files.sort().map(async (file): Promise<[string, FlagInput]> => {
    const exported = Object.values((await import(`../bin/${folder}/${file}`)) as Record<string, CommandClass>)
    return [file.slice(0, -'.ts'.length).replaceAll(/[\\/]/g, ' '), exported[0]?.flags ?? {}]
  })
  return (await Promise.all(loaded)).filter(([, flags]) => Object.keys(flags).length > 0)
}

async function flagRows(flags: FlagInput): Promise<string[][]> {
  const rows = Object.entries(flags).map(async ([name, flag]) => {
    const { helpValue, defaultHelp, default: standard } = flag as { helpValue?: string; defaultHelp?: () => Promise<string>; default?: unknown }
    const shown = flag.type === 'boolean' ? 'off' : ((await defaultHelp?.()) ?? String(standard))
    const names = [`--${name}`, ...(flag.char ? [`-${flag.char}`] : [])].map(code).join(', ')
    const variable = 'env' in flag && flag.env ? `; variable ${code(flag.env)}` : ''
    return [names, flag.type === 'boolean' ? 'switch' : (helpValue ?? ''), code(shown), `${flag.description}${variable}`]
  })
  return Promise.all(rows)
}

const flagTable = async (flags: FlagInput): Promise<string> => table(['Flag', 'Type', 'Default', 'Meaning'], await flagRows(flags))

async function flagSections(binary: string, folder: string, ofAll: FlagInput): Promise<string[]> {
  const commands = (await commandsIn(folder)).map(async ([name, flags]) => `### \`${binary} ${name}\`\n\n${await flagTable(flags)}`)
  return [`### Every command of \`${binary}\`\n\n${await flagTable(ofAll)}`, ...(await Promise.all(commands))]
}

function variableTable(variables: Readonly<Record<string, DeclaredVariable>>): string {
  const rows = Object.entries(variables).map(([name, variable]) => {
    const range = 'range' in variable ? `${variable.range[0]} to ${variable.range[1]}` : ''
    const without = variable.without === undefined ? [] : [`no effect: ${variable.without}`]
    const meaning = [...(variable.meaning === '' ? [] : [variable.meaning]), ...without].join('; ')
    return [code(name), variable.type, code(String(variable.default)), range, meaning]
  })
  return table(['Variable', 'Type', 'Default', 'Range', 'Meaning'], rows)
}

function scopeTable(scopes: Readonly<Record<string, Scope>>): string {
  return table(
    ['Scope', 'Lines'],
    Object.entries(scopes).map(([name, scope]) => [code(name), 'about' in scope ? scope.about : `none: ${scope.without}`]),
  )
}

const whoSees = {
  mesh: 'the mesh as a whole',
  namespaces: "rows of the caller's namespace",
  proxy: 'one proxy',
  nothing: 'an action only',
} as const

/** What a page or method covers, in the words of the table. */
const covered: Readonly<Record<Coverage, string>> = {
  replicas: 'all replicas',
  configuration: 'what every replica has',
  authority: 'what replicas share',
  process: 'the replica that is asked',
}

const accessAbout =
  'What the role of `pilot-discovery` permits (`manifests/access.yaml`; [operation.md](operation.md), M1). The kinds of the mesh are in both groups,\n`mesh.io` and `istio.io`.'

const rpcsAbout =
  'Of `mesh.admin.v1.AdminService`; its schema is `protocols/proto/mesh/admin/v1/admin.proto`. Ports, other services and who may ask:\n[operation.md](operation.md#admin-service).'

const coverage: Readonly<Record<string, Coverage>> = methodCoverage
const rpcRows = (path: string): string[][] =>
  methodsOf(path).map(({ name, asks, about }) => [code(name), asks.map(code).join(', '), covered[coverage[name] ?? 'process'], about])

const accessColumns = ['Resource', 'Verbs', 'Where', 'What for']
const signerAbout = 'With `ORCH_SIGNER` also (`manifests/optional/signer.yaml`; [certificates.md](certificates.md), E7):'
const registrationAbout =
  'With `PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION` also (`manifests/optional/registration.yaml`; [registration.md](registration.md), R12):'
const statusAbout = 'With `PILOT_ENABLE_STATUS` also (`manifests/optional/status.yaml`; [status.md](status.md), S6):'

const accessRows = (of: readonly Access[]): string[][] => {
  const isAlias = ({ group }: Access) => isAliasGroup(group)
  return of
    .filter((access) => !isAlias(access))
    .map((access) => [
      code(accessName(access)),
      access.verbs.join(', '),
      access.where === 'cluster' ? 'all namespaces' : 'namespace of the control plane',
      `${access.why}${access.names ? `; ${access.names.map(code).join(', ')} only` : ''}`,
    ])
}

/** Returns the text of `docs/reference.md`. */
export async function referencePage(): Promise<string> {
  const pages = Object.entries({ ...debugPages, ...profilePages }).map(([name, page]) => [
    code(`/debug/${name}`),
    whoSees[page.shows],
    covered[page.covers],
    aboutPage(page),
  ])
  const unbuilt = [...unbuiltPages].map(([name, reason]) => [code(`/debug/${name}`), '', '', `404: ${reason}`])
  const topics = Object.entries(pageTopics).map(([name, about]) => [code(`/${name}z`), code(`/${name}j`), about])
  return `${[
    '# Reference',
    'Flags, variables, log scopes, pages and RPCs with their types and defaults. Generated by `npm run tables` from the declarations that the commands\nuse; `npm run check` compares the two. What has no effect says why. Metrics are in [metrics.md](metrics.md), kinds and fields in\n[kinds.md](kinds.md).',
    '## Flags',
    'How they are written: [operation.md](operation.md#flags).',
    ...(await flagSections('pilot-discovery', 'discovery', DiscoveryCommand.baseFlags)),
    ...(await flagSections('pilot-agent', 'agent', AgentCommand.baseFlags)),
    '## Variables',
    `### \`pilot-discovery\`\n\n${variableTable(discoveryVariables)}`,
    `### \`pilot-agent\`\n\n${variableTable(agentVariables)}`,
    '## Log scopes',
    `### Of \`pilot-discovery\`\n\n${scopeTable(discoveryScopeTable)}`,
    `### Of \`pilot-agent\`\n\n${scopeTable(agentScopeTable)}`,
    `## Debug pages\n\nWho may see what: [operation.md](operation.md#debug-pages). What covers all replicas: A5 and A6 there.\n\n${table(['Page', 'Shows', 'Covers', 'Contents'], [...pages, ...unbuilt])}`,
    `## RPCs\n\n${rpcsAbout}\n\n${table(['Method', 'Request', 'Covers', 'Contents'], rpcRows('mesh/admin/v1/admin.proto'))}`,
    `## Access to a cluster\n\n${accessAbout}\n\n${table(accessColumns, accessRows(accesses))}`,
    `${signerAbout}\n\n${table(accessColumns, accessRows(signerAccesses))}`,
    `${statusAbout}\n\n${table(accessColumns, accessRows(statusAccesses))}`,
    `${registrationAbout}\n\n${table(accessColumns, accessRows(registrationAccesses))}`,
    `## ControlZ\n\n${table(['Page', 'As JSON', 'Contents'], topics)}`,
  ].join('\n\n')}\n`
}
