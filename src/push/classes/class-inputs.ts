/**
 * What classes are found by, and how the proxies are found whose class a change may change. Reads of classes are not recorded, so each input
 * has a row here: an input without a row is a type error, and so is a row with a kind that selects no proxies.
 */
import { authorizationPolicy } from '../../config/kinds/authorization-policy.ts'
import { envoyFilter } from '../../config/kinds/envoy-filter.ts'
import { gateway } from '../../config/kinds/gateway.ts'
import type { Kind, Selection } from '../../config/kinds/kind.ts'
import { peerAuthentication } from '../../config/kinds/peer-authentication.ts'
import { requestAuthentication } from '../../config/kinds/request-authentication.ts'
import { sidecar } from '../../config/kinds/sidecar.ts'
import type { PolicyIndex } from '../../snapshot/policies.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { ViewInputs } from '../../snapshot/view.ts'

/** The parts of the snapshot by which classes are found. */
export type ClassInputs = ViewInputs &
  Pick<MeshSnapshot, 'settings' | 'gateways' | 'envoyFilters' | 'policies'> & {
    readonly virtualServices: Pick<MeshSnapshot['virtualServices'], 'byCallerLabel'>
  }

/** A kind whose objects select proxies. */
export type SelectingKind = Pick<Kind, 'name' | 'scope'> & { readonly selects: Selection<never> }

/** The proxies whose class may be another after an input changed. */
export type Concerned =
  /** Those that changed objects of these kinds select. */
  | { readonly selectedBy: readonly SelectingKind[] }
  /** Those of these namespaces. */
  | { readonly inNamespaces: (before: ClassInputs, now: ClassInputs) => Iterable<string> }
  /** All if this holds, otherwise none. */
  | { readonly allIf: (before: ClassInputs, now: ClassInputs) => boolean }

/** A row for each input. */
export type ConcernedBy<Inputs> = { readonly [Input in keyof Inputs]: Concerned }

/** The kind of each part of the policies. */
const policyKinds: { readonly [Part in keyof PolicyIndex]: SelectingKind } = {
  authorization: authorizationPolicy,
  requests: requestAuthentication,
  peers: peerAuthentication,
}

/** Finds the proxies that a change of an input concerns. */
export const concernedBy: ConcernedBy<ClassInputs> = {
  settings: { allIf: (before, now) => before.settings !== now.settings },
  mesh: { allIf: (before, now) => before.mesh !== now.mesh },
  virtualServices: { allIf: (before, now) => callerLabels(before) !== callerLabels(now) },
  visibility: { inNamespaces: namespacesWithOtherVisibility },
  sidecars: { selectedBy: [sidecar] },
  gateways: { selectedBy: [gateway] },
  envoyFilters: { selectedBy: [envoyFilter] },
  policies: { selectedBy: Object.values(policyKinds) },
}

const callerLabels = ({ virtualServices }: ClassInputs): string => [...virtualServices.byCallerLabel.keys()].sort().join()

/** Namespaces that have a visibility difference in only one of the two snapshots. */
function* namespacesWithOtherVisibility({ visibility: before }: ClassInputs, { visibility: now }: ClassInputs): Generator<string> {
  if (before === now) return
  for (const namespace of before.differences.keys()) if (!now.differences.has(namespace)) yield namespace
  for (const namespace of now.differences.keys()) if (!before.differences.has(namespace)) yield namespace
}
