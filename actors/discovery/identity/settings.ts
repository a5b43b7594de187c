/** Settings of the authenticator, read from environment variables at start; an invalid variable keeps the service from starting. */
import { resolve } from 'node:path'
import type { Features } from '../../../src/config/features.ts'
import { type BundleEndpoint, readBundleEndpoints } from '../../../src/identity/spiffe-bundle.ts'
import { checkJwtPolicy } from '../../../src/identity/token-review.ts'
import { type OwnToken, type TokenRule, tokenRules } from '../../../src/identity/token-rules.ts'
import { readToken } from '../../../src/policy/signed-token.ts'
import { readBoundedFileSync } from '../../runtime/bounded-file.ts'

/** Configuration of the authenticator. */
export interface AuthenticatorConfig {
  readonly features: Features
  readonly rules: readonly TokenRule[]
  readonly endpoints: readonly BundleEndpoint[]
  /** Whether there is a cluster whose API server reviews tokens. */
  readonly reviewsTokens: boolean
}

/** Paths at which this process's own token may be mounted, by `JWT_POLICY`. */
const ownTokens: Readonly<Record<string, readonly string[]>> = {
  'third-party-jwt': ['./var/run/secrets/tokens/mesh-token', './var/run/secrets/tokens/istio-token'],
  'first-party-jwt': ['/var/run/secrets/kubernetes.io/serviceaccount/token'],
}

/** Reads the settings. `reviewsTokens`: whether there is a cluster whose API server reviews tokens. Throws an Error that names the invalid variable, and the field or tuple within it. */
export function authenticatorConfig(features: Features, reviewsTokens = false): AuthenticatorConfig {
  checkJwtPolicy(features)
  const stateDir = resolve(features.MESHD_CA_STATE_DIR)
  return {
    features,
    rules: tokenRules(features, stateDir, ownToken(ownTokens[features.JWT_POLICY] ?? [])),
    endpoints: readBundleEndpoints(features.SPIFFE_BUNDLE_ENDPOINTS),
    reviewsTokens,
  }
}

/**
 * The issuer and audiences of the first existing token. Its signature is not checked: whoever can mount a token here can also configure
 * this process.
 */
function ownToken(paths: readonly string[]): OwnToken | undefined {
  for (const path of paths) {
    try {
      const read = readToken(readBoundedFileSync(path).trim())
      if (typeof read === 'string') continue
      const { iss, aud } = read.claims
      const audiences = (Array.isArray(aud) ? aud : [aud]).filter((audience) => typeof audience === 'string')
      if (typeof iss === 'string' && audiences.length > 0) return { issuer: iss, audiences }
    } catch {
      // The file does not exist or may not be read.
    }
  }
  return undefined
}
