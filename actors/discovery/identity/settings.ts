/** What the authenticator of workloads is told to do: read from variables at start, so that what cannot be read keeps the service from starting. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Features } from '../../../src/config/features.ts'
import { type BundleEndpoint, readBundleEndpoints } from '../../../src/identity/spiffe-bundle.ts'
import { checkJwtPolicy } from '../../../src/identity/token-review.ts'
import { type OwnToken, type TokenRule, tokenRules } from '../../../src/identity/token-rules.ts'
import { readToken } from '../../../src/policy/signed-token.ts'

/** Of the authenticator. */
export interface AuthenticatorConfig {
  readonly features: Features
  readonly rules: readonly TokenRule[]
  readonly endpoints: readonly BundleEndpoint[]
}

/** Where the token is mounted that this process was given itself, by `JWT_POLICY`. */
const ownTokens: Readonly<Record<string, readonly string[]>> = {
  'third-party-jwt': ['./var/run/secrets/tokens/mesh-token', './var/run/secrets/tokens/istio-token'],
  'first-party-jwt': ['/var/run/secrets/kubernetes.io/serviceaccount/token'],
}

/** Reads the settings. Throws an Error that names the variable, and in it the field or tuple, that cannot be read. */
export function authenticatorConfig(features: Features): AuthenticatorConfig {
  checkJwtPolicy(features)
  const stateDir = resolve(features.MESHD_CA_STATE_DIR)
  return {
    features,
    rules: tokenRules(features, stateDir, ownToken(ownTokens[features.JWT_POLICY] ?? [])),
    endpoints: readBundleEndpoints(features.SPIFFE_BUNDLE_ENDPOINTS),
  }
}

/** What the first of these tokens that is there says. It is not checked: whoever mounted it is whoever configures this process. */
function ownToken(paths: readonly string[]): OwnToken | undefined {
  for (const path of paths) {
    try {
      const read = readToken(readFileSync(path, 'utf8').trim())
      if (typeof read === 'string') continue
      const { iss, aud } = read.claims
      const audiences = (Array.isArray(aud) ? aud : [aud]).filter((audience) => typeof audience === 'string')
      if (typeof iss === 'string' && audiences.length > 0) return { issuer: iss, audiences }
    } catch {
      // It is not there, or not for this process.
    }
  }
  return undefined
}
