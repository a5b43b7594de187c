/** What only one replica may do at a time, and the Lease on which it is elected (docs/operation.md, L1). */

import type { Duty } from '../../protocols/messages/leadership.ts'

/**
 * The Leases by duty. `isShared`: all revisions write the same objects and elect one leader together; otherwise each revision has its own.
 */
const leases: { readonly [Each in Duty]: { readonly name: string; readonly isShared?: true } } = {
  namespaces: { name: 'mesh-namespace-controller-election', isShared: true },
  ingress: { name: 'mesh-leader' },
  status: { name: 'mesh-status-leader' },
  analysis: { name: 'mesh-analyze-leader' },
  validation: { name: 'mesh-validation-controller-election' },
  certificates: { name: 'mesh-certificate-controller-election' },
}

/** Returns the name of the Lease of a duty. `revision`: that of this control plane. */
export function leaseName(duty: Duty, revision: string): string {
  const { name, isShared } = leases[duty]
  return isShared || revision === '' || revision === 'default' ? name : `${name}-${revision}`
}
