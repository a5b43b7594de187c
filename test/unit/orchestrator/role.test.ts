/** The declaration of what discovery does in a cluster, and the manifest that is made from it. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { parseAllDocuments } from 'yaml'
import {
  type Access,
  accesses,
  accessName,
  checkDeclared,
  registrationAccesses,
  signerAccesses,
  statusAccesses,
} from '../../../src/orchestrator/access.ts'

interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

interface Document {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly rules?: readonly Rule[]
}

const documentsOf = (name: string): readonly Document[] =>
  parseAllDocuments(readFileSync(new URL(`../../../manifests/${name}`, import.meta.url), 'utf8')).map((document) => document.toJSON() as Document)
const manifests = {
  access: documentsOf('access.yaml'),
  signer: documentsOf('optional/signer.yaml'),
  status: documentsOf('optional/status.yaml'),
  registration: documentsOf('optional/registration.yaml'),
}
const rulesOf = (kind: string, documents = manifests.access): readonly Rule[] => documents.find((document) => document.kind === kind)?.rules ?? []

describe('access to a cluster', () => {
  it('is in the roles, each verb where it is declared, and nothing else is', () => {
    const declared = (where: string, of: readonly Access[] = accesses) =>
      of
        .filter((access) => access.where === where)
        .flatMap((access) => access.verbs.map((verb) => `${verb} ${accessName(access)} ${access.names ?? ''}`))
        .sort()
    // The rule of the kinds of the mesh has all of their groups and resources, of which each group has its own.
    const isKind = (group: string) => /(mesh|istio)\.io$/.test(group)
    const permitted = (kind: string, documents = manifests.access) =>
      rulesOf(kind, documents)
        .flatMap(({ apiGroups, resources, verbs, resourceNames }) =>
          apiGroups.flatMap((group) =>
            resources.flatMap((resource) =>
              verbs.flatMap((verb) => {
                const name = accessName({ resource, group })
                return isKind(group) && !accesses.some((access) => accessName(access) === name) ? [] : [`${verb} ${name} ${resourceNames ?? ''}`]
              }),
            ),
          ),
        )
        .sort()
    expect(permitted('ClusterRole')).to.deep.equal(declared('cluster'))
    expect(permitted('Role')).to.deep.equal(declared('control plane'))
    expect(permitted('ClusterRole', manifests.signer)).to.deep.equal(declared('cluster', signerAccesses))
    expect(permitted('Role', manifests.signer)).to.deep.equal(declared('control plane', signerAccesses))
    expect(permitted('Role', manifests.registration)).to.deep.equal(declared('control plane', registrationAccesses))
  })

  it('to the status of objects is the one verb, of the kinds of the mesh alone', () => {
    const [rule, ...others] = rulesOf('ClusterRole', manifests.status)
    expect([others, manifests.status.map(({ kind }) => kind)]).to.deep.equal([[], ['ClusterRole', 'ClusterRoleBinding']])
    expect(rule?.verbs).to.deep.equal(['patch'])
    expect(rule?.resources).to.deep.equal([...new Set(statusAccesses.map(({ resource }) => resource))])
    expect(rule?.resources.every((resource) => /^\w+\/status$/.test(resource))).to.equal(true)
    expect(rule?.apiGroups.every((group) => /\.(mesh|istio)\.io$/.test(group))).to.equal(true)
  })

  it('has no wildcard, and no resource with which a holder could have more', () => {
    for (const { apiGroups, resources, verbs } of Object.values(manifests).flatMap((documents) =>
      ['ClusterRole', 'Role'].flatMap((kind) => rulesOf(kind, documents)),
    ))
      for (const word of [...apiGroups, ...resources, ...verbs])
        expect(['*', 'impersonate', 'escalate', 'bind', 'roles', 'clusterroles', 'rolebindings', 'clusterrolebindings']).not.to.include(word)
  })

  it('names every resource and verb that is used, in any domain of the mesh', () => {
    for (const [verb, resource] of [
      ['watch', 'pods'],
      ['update', 'leases.coordination.k8s.io'],
      ['list', 'virtualservices.networking.mesh.io'],
      ['watch', 'virtualservices.networking.example.com'],
      ['delete', 'workloadentries.networking.example.com'],
    ] as const)
      expect(() => checkDeclared(verb, resource), `${verb} ${resource}`).not.to.throw()
    for (const [verb, resource] of [
      ['delete', 'ingresses.networking.k8s.io'],
      ['delete', 'workloadgroups.networking.mesh.io'],
      ['list', 'daemonsets.apps'],
      ['create', 'virtualservices.networking.mesh.io'],
      ['list', 'virtualservices.other.mesh.io'],
    ] as const)
      expect(() => checkDeclared(verb, resource), `${verb} ${resource}`).to.throw(`"${verb}" of "${resource}" is not declared`)
  })
})
