/** Makes `charts/meshd/templates/_access.tpl`, the rules of discovery's roles, from the declaration of what it does in a cluster. */
import { stringify } from 'yaml'
import { kinds } from '../src/config/kinds.ts'
import { groupSpellings } from '../src/names/mesh-names.ts'
import { type Access, accesses, registrationAccesses, signerAccesses, statusAccesses } from '../src/orchestrator/access.ts'
import { injectorNames } from '../src/orchestrator/injector-object.ts'
import { settingsNames } from '../src/orchestrator/settings-object.ts'

/** In names it stands for what differs between revisions. */
const revision = 'REVISION'
const suffix = '{{ include "meshd.suffix" . }}'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

/** The rules of a role: one for all resources with the same group, verbs and names, and one for all kinds of the mesh, which no two groups share. */
function rulesOf(where: Access['where'], of: readonly Access[] = accesses): Rule[] {
  const rules = new Map<string, Rule>()
  for (const { resource, group, verbs, names, why } of of.filter((access) => access.where === where)) {
    const key = JSON.stringify([why === 'configuration' || why === 'its status' ? why : group, verbs, names])
    const { apiGroups = [], resources = [] } = rules.get(key) ?? {}
    const rule = { apiGroups: [...new Set([...apiGroups, group])], resources: [...new Set([...resources, resource])], verbs }
    rules.set(key, { ...rule, ...(names ? { resourceNames: namesOfRevision(names) } : {}) })
  }
  return [...rules.values()]
}

/** The names of objects that each revision has of its own, with the place of its suffix. */
function namesOfRevision(names: readonly string[]): readonly string[] {
  const ofRevision = [settingsNames, injectorNames].find((namesOf) => namesOf('').join() === names.join())
  return ofRevision?.(revision) ?? names.map((name) => (name === 'meshd-mesh-system' ? `meshd-${revision}-{{ .Release.Namespace }}` : name))
}

/** Returns the text of `charts/meshd/templates/_access.tpl`. */
export function accessTemplate(): string {
  const groups = [...new Set([...kinds.values()].flatMap(({ group }) => groupSpellings(group)))]
  const parts: readonly (readonly [string, unknown])[] = [
    ['clusterRules', rulesOf('cluster')],
    ['rules', rulesOf('control plane')],
    ['signerClusterRules', rulesOf('cluster', signerAccesses)],
    ['signerRules', rulesOf('control plane', signerAccesses)],
    ['statusClusterRules', rulesOf('cluster', statusAccesses)],
    ['registrationClusterRules', rulesOf('cluster', registrationAccesses)],
    ['registrationRules', rulesOf('control plane', registrationAccesses)],
    ['groups', groups],
  ]
  const head =
    '{{- /* What discovery may do: made by npm run tables from src/orchestrator/access.ts. groups: those of the kinds, in both spellings. */ -}}\n'
  return head + parts.map(([name, value]) => `{{- define "meshd.${name}" -}}\n${templateOf(value)}{{- end }}\n`).join('\n')
}

const templateOf = (value: unknown): string =>
  stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })
    .replaceAll(`-${revision}`, suffix)
    .replaceAll('example.com/mesh', '{{ .Values.signer | quote }}')
