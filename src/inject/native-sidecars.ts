/** Which orchestrators have native sidecar containers (docs/injection.md, N11). */

/**
 * The first minor version of release 1 in which they are stable. Nodes may be three minor versions older than the API server, and have them,
 * unless they are switched off, from 29 on.
 */
const since = 33

/** Whether an API server of this version (`v1.33.2`) has nodes that all have them. A text that is no version has none. */
export function hasNativeSidecars(version: string): boolean {
  const [, major, minor] = /^v?(\d{1,4})\.(\d{1,4})/.exec(version) ?? []
  return major !== undefined && (Number(major) > 1 || (major === '1' && Number(minor) >= since))
}
