/** Finds AuthorizationPolicies that name namespaces that do not exist. */
import type { ConfigObject } from '../../protocols/data.ts'
import { suggestion } from '../model/edit-distance.ts'
import type { Tell } from './finding.ts'
import type { World } from './world.ts'

interface Rules {
  readonly rules?: readonly { readonly from?: readonly { readonly source?: Readonly<Record<string, readonly string[] | undefined>> }[] }[]
}

/** Tells the namespaces that a policy names and that do not exist. */
export function analyzeAuthorizationPolicy({ spec }: ConfigObject, { namespaces }: World, tell: Tell): void {
  if (!namespaces) return
  for (const [rule, { from }] of ((spec as Rules).rules ?? []).entries())
    for (const [number, { source }] of (from ?? []).entries())
      for (const field of ['namespaces', 'notNamespaces'])
        for (const [index, name] of (source?.[field] ?? []).entries())
          if (!name.includes('*') && !namespaces.has(name))
            tell(
              'IST0101',
              `spec.rules[${rule}].from[${number}].source.${field}[${index}]`,
              `there is no namespace ${name}${suggestion(name, namespaces)}`,
            )
}
