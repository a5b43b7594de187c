/** Finds keys of tokens that are not fetched from where a RequestAuthentication says they are (docs/resources.md, A4). */

import { leadsToCaller } from '../config/addresses.ts'
import type { RequestAuthenticationSpec } from '../config/kinds/request-authentication.ts'
import { type AllowedRanges, readRanges, refusal } from '../policy/key-addresses.ts'
import type { Tell } from './finding.ts'
import type { World } from './world.ts'

const consequence = 'so tokens of this issuer are refused'

/** Tells the rules whose keys come from an address that is refused, or from an issuer that is no URL. */
export function checkKeys({ jwtRules = [] }: RequestAuthenticationSpec, world: World, tell: Tell): void {
  for (const [index, { issuer, jwksUri, jwks }] of jwtRules.entries()) {
    if (jwks !== undefined) continue
    const at = `spec.jwtRules[${index}].${jwksUri ? 'jwksUri' : 'issuer'}`
    const url = URL.parse(jwksUri || issuer)
    if (!url || !/^https?:$/.test(url.protocol)) {
      if (!jwksUri)
        tell('MESH0010', at, `${JSON.stringify(issuer.slice(0, 200))} is no URL at which its keys can be found, ${consequence}: set jwksUri or jwks`)
      continue
    }
    const reason = refused(url.hostname.replace(/^\[|\]$/g, ''), world.mesh.allowedKeyAddresses)
    if (reason)
      tell(
        'MESH0010',
        at,
        `no keys are fetched from there, since ${reason}, ${consequence}: name a public address or set jwks, or allow this one with PILOT_JWKS_ALLOWED_ADDRESSES`,
      )
  }
}

/** Names of metadata services. What other names resolve to is not known before they are fetched from. */
const metadataNames: ReadonlySet<string> = new Set(['metadata.google.internal', 'metadata.goog'])

/** Why keys are not fetched from a host. */
function refused(host: string, allowed: string): string | undefined {
  const ranges = rangesOf(allowed)
  if (/^[\d.]+$|:/.test(host)) return refusal(host, ranges)
  if (metadataNames.has(host)) return refusal('169.254.169.254', ranges) && `${host} is a metadata service`
  const isOwn = leadsToCaller(host) && refusal('127.0.0.1', ranges) !== undefined && refusal('::1', ranges) !== undefined
  return isOwn ? `${host} is the control plane's own machine` : undefined
}

/** The ranges that are allowed; none where the setting cannot be read, which the service says at its start. */
function rangesOf(allowed: string): AllowedRanges {
  try {
    return readRanges(allowed)
  } catch {
    return []
  }
}
