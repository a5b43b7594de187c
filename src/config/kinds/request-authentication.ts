/** RequestAuthentication: which JWTs of end users are accepted. */
import { isWholeText } from '../policy-attributes.ts'
import { duration, flag, list, type Read, type Report, reject, required, text } from '../shape.ts'
import { keySet } from '../shapes/key-set.ts'
import { checkTargets, idleTargets, selectedLabels, strict, targets } from '../shapes/policies.ts'
import { type Kind, securityVersions } from './kind.ts'

const headerName = text({ max: 256, pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, what: 'a header name' })

function checkUri(uri: string, path: string, report: Report): void {
  const url = URL.parse(uri)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') reject(report, path, 'not an http or https URL')
  else if (url.username !== '' || url.password !== '') reject(report, path, 'must not carry a user name or password')
}

const jwtRule = strict(
  {
    issuer: required(text({ max: 2048 })),
    audiences: list(text({ max: 2048 })),
    jwksUri: text({ max: 2048 }),
    jwks: keySet,
    fromHeaders: list(strict({ name: required(headerName), prefix: text({ max: 256 }) })),
    fromParams: list(text({ max: 256 })),
    fromCookies: list(text({ max: 256, pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]*$/, what: 'the name of a cookie' })),
    forwardOriginalToken: flag,
    outputPayloadToHeader: headerName,
    timeout: duration(1),
    // The separator of a claim's text is the same for all claims (docs/resources.md, A3).
    spaceDelimitedClaims: list(text({ max: 1024 }), { max: 64 }),
    outputClaimToHeaders: list(strict({ header: required(headerName), claim: required(text({ max: 1024 })) })),
  },
  (value, path, report) => {
    if (value.issuer === '') reject(report, `${path}.issuer`, 'required, but empty')
    if (value.jwksUri) checkUri(value.jwksUri, `${path}.jwksUri`, report)
    if (value.jwksUri && value.jwks) reject(report, `${path}.jwks`, 'excluded by jwksUri')
    for (const field of ['audiences', 'fromParams', 'fromCookies', 'spaceDelimitedClaims'] as const)
      for (const [index, one] of (value[field] ?? []).entries()) if (one === '') reject(report, `${path}.${field}[${index}]`, 'must not be empty')
    for (const [index, one] of (value.outputClaimToHeaders ?? []).entries())
      if (one.claim === '') reject(report, `${path}.outputClaimToHeaders[${index}].claim`, 'must not be empty')
  },
)

const spec = strict({ ...targets, jwtRules: list(jwtRule, { max: 500 }) }, checkTargets)

/** The kind RequestAuthentication. */
export const requestAuthentication = {
  name: 'RequestAuthentication',
  plural: 'requestauthentications',
  group: 'security',
  versions: securityVersions,
  spec,
  scope: 'namespace or mesh',
  remarks({ spec }) {
    const claims = (spec.jwtRules ?? []).flatMap(({ spaceDelimitedClaims = [] }, rule) =>
      spaceDelimitedClaims.flatMap((claim, index) =>
        isWholeText([claim])
          ? [
              {
                path: `spec.jwtRules[${rule}].spaceDelimitedClaims[${index}]`,
                reason: `has no effect: ${claim} is a registered claim, which is compared whole`,
              },
            ]
          : [],
      ),
    )
    return [...idleTargets(spec), ...claims]
  },
  selects: { proxies: 'all', labels: selectedLabels },
} satisfies Kind<'RequestAuthentication', RequestAuthenticationSpec>

export type RequestAuthenticationSpec = Read<typeof spec>
export type JwtRule = Read<typeof jwtRule>
