/**
 * Makes `manifests/access.yaml`, the namespace, the service account and the roles of discovery, and `manifests/optional/signer.yaml`, what a signer of the
 * orchestrator needs beside that, from the declaration of what discovery does in a cluster.
 */
import { stringify } from 'yaml'
import { type Access, accesses, signerAccesses } from '../src/orchestrator/access.ts'
import { injectorNames } from '../src/orchestrator/injector-object.ts'
import { settingsNames } from '../src/orchestrator/settings-object.ts'

const name = 'meshd'
const namespace = 'mesh-system'

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
    const key = JSON.stringify([why === 'configuration' ? why : group, verbs, names])
    const { apiGroups = [], resources = [] } = rules.get(key) ?? {}
    const rule = { apiGroups: [...new Set([...apiGroups, group])], resources: [...new Set([...resources, resource])], verbs }
    rules.set(key, { ...rule, ...(names ? { resourceNames: names } : {}) })
  }
  return [...rules.values()]
}

const group = 'rbac.authorization.k8s.io'

function roleAndBinding(kind: 'Role' | 'ClusterRole', place: object, rules: Rule[], role = name): object[] {
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  const metadata = { name: role, ...place, labels: { app: name } }
  return [
    { apiVersion: `${group}/v1`, kind, metadata, rules },
    { apiVersion: `${group}/v1`, kind: `${kind}Binding`, metadata, roleRef: { apiGroup: group, kind, name: role }, subjects },
  ]
}

/** Returns the text of `manifests/access.yaml`. */
export function accessManifest(): string {
  const documents = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace, labels: { app: name } } },
    ...roleAndBinding('ClusterRole', {}, rulesOf('cluster')),
    ...roleAndBinding('Role', { namespace }, rulesOf('control plane')),
  ]
  const head =
    '# The namespace of the control plane, the account of discovery and what it may do. Made by npm run tables from src/orchestrator/access.ts.\n'
  return head + text(documents)
}

/** Returns the text of `manifests/optional/signer.yaml`. */
export function signerManifest(): string {
  const role = `${name}-signer`
  const documents = [
    ...roleAndBinding('ClusterRole', {}, rulesOf('cluster', signerAccesses), role),
    ...roleAndBinding('Role', { namespace }, rulesOf('control plane', signerAccesses), role),
  ]
  const head =
    '# What discovery may do beside access.yaml where ORCH_SIGNER is set: replace example.com/mesh by that signer. The Role is for certificates of\n' +
    '# the mesh configuration only. Made by npm run tables from src/orchestrator/access.ts.\n'
  return head + text(documents)
}

/** Returns the text of `manifests/optional/revision.yaml`, in which `REVISION` stands for the name of a revision. */
export function revisionManifest(): string {
  const rules = accesses.flatMap(({ group: apiGroup, resource, verbs, names }) => {
    const ofRevision = [settingsNames, injectorNames].find((namesOf) => namesOf('').join() === names?.join())
    return ofRevision ? { apiGroups: [apiGroup], resources: [resource], verbs, resourceNames: ofRevision('REVISION') } : []
  })
  const head =
    '# What discovery of a revision may read beside access.yaml: replace REVISION by its name. Made by npm run tables from src/orchestrator/access.ts.\n'
  return head + text(roleAndBinding('Role', { namespace }, rules, `${name}-REVISION`))
}

const text = (documents: readonly object[]): string =>
  documents.map((document) => stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })).join('---\n')
