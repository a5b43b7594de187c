/** Translates RequestAuthentications to `envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication` (docs/resources.md, A3). */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type {
  JwtAuthenticationSchema,
  JwtProviderSchema,
  JwtRequirementSchema,
} from '../../../protocols/gen/envoy/extensions/filters/http/jwt_authn/v3/config_pb.js'
import type { JwtRule } from '../../config/kinds/request-authentication.ts'
import { isStandIn } from '../../config/stand-in.ts'
import { jwtRules, type KeySets, keySource } from '../../snapshot/key-sources.ts'
import type { RequestAuthentication } from '../../snapshot/policies.ts'
import { payloadKey } from './rbac.ts'

type Requirement = MessageInitShape<typeof JwtRequirementSchema>

/**
 * Returns the configuration of the filter; undefined if the policies require nothing of requests. `lockedKeys` is a key set whose private
 * keys nobody has; it is used in place of key sets that could not be fetched.
 */
export function jwtFilter(
  policies: readonly RequestAuthentication[],
  keySets: KeySets,
  lockedKeys: string,
): MessageInitShape<typeof JwtAuthenticationSchema> | undefined {
  const rules = jwtRules(policies)
  const invalid = policies.some(isStandIn)
  if (rules.length === 0 && !invalid) return undefined
  const providers: Record<string, MessageInitShape<typeof JwtProviderSchema>> = {}
  for (const [index, rule] of rules.entries())
    providers[`origins-${index}`] = provider(rule, invalid ? lockedKeys : keysOf(rule, keySets, lockedKeys))
  if (rules.length === 0) providers['origins-0'] = { jwksSourceSpecifier: inlineKeys(lockedKeys) }
  return {
    providers,
    rules: [
      {
        match: { pathSpecifier: { case: 'prefix', value: '/' } },
        requirementType: { case: 'requires', value: requirement(Object.keys(providers)) as never },
      },
    ],
  }
}

const keysOf = (rule: JwtRule, keySets: KeySets, lockedKeys: string): string => {
  const source = keySource(rule)
  return source === undefined ? (rule.jwks as string) : (keySets.get(source) ?? lockedKeys)
}

const inlineKeys = (keys: string) => ({ case: 'localJwks' as const, value: { specifier: { case: 'inlineString' as const, value: keys } } })

function provider(rule: JwtRule, keys: string): MessageInitShape<typeof JwtProviderSchema> {
  return {
    issuer: rule.issuer,
    audiences: rule.audiences ?? [],
    forward: rule.forwardOriginalToken ?? false,
    forwardPayloadHeader: rule.outputPayloadToHeader ?? '',
    payloadInMetadata: payloadKey,
    // Routes may depend on claims, and on headers that are set from claims.
    clearRouteCache: true,
    fromHeaders: (rule.fromHeaders ?? []).map(({ name, prefix }) => ({ name, valuePrefix: prefix ?? '' })),
    fromParams: rule.fromParams ?? [],
    fromCookies: rule.fromCookies ?? [],
    claimToHeaders: (rule.outputClaimToHeaders ?? []).map(({ header, claim }) => ({ headerName: header, claimName: claim })),
    jwksSourceSpecifier: inlineKeys(keys),
  }
}

/**
 * Returns a requirement that accepts a token of any provider, or no token at all. An invalid token is refused even if the tokens of other
 * providers are missing.
 */
function requirement(names: readonly string[]): Requirement {
  const of = (name: string): Requirement => ({ requiresType: { case: 'providerName', value: name } })
  const any = (...requirements: Requirement[]): Requirement => ({
    requiresType: { case: 'requiresAny', value: { requirements: requirements as never[] } },
  })
  const missing: Requirement = { requiresType: { case: 'allowMissing', value: {} } }
  if (names.length === 1) return any(of(names[0] as string), missing)
  const each = names.map((name) => any(of(name), missing))
  return any(...names.map(of), { requiresType: { case: 'requiresAll', value: { requirements: each as never[] } } })
}
