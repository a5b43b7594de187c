/** Evaluates `envoy.config.rbac.v3` as Envoy does, on a described request. Property tests compare it with the policies' own evaluation. */
import type { MessageShape } from '@bufbuild/protobuf'
import { fromBinary } from '@bufbuild/protobuf'
import ipaddr from 'ipaddr.js'
import { RE2JS } from 're2js'
import type { CidrRange } from '../../protocols/gen/envoy/config/core/v3/address_pb.js'
import type { TypedExtensionConfig } from '../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import type { PermissionSchema, PolicySchema, PrincipalSchema } from '../../protocols/gen/envoy/config/rbac/v3/rbac_pb.js'
import type { HeaderMatcher } from '../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { UriTemplateMatchConfigSchema } from '../../protocols/gen/envoy/extensions/path/match/uri_template/v3/uri_template_match_pb.js'
import type { MetadataMatcher } from '../../protocols/gen/envoy/type/matcher/v3/metadata_pb.js'
import type { StringMatcher } from '../../protocols/gen/envoy/type/matcher/v3/string_pb.js'
import type { ValueMatcher } from '../../protocols/gen/envoy/type/matcher/v3/value_pb.js'
import type { DescribedRequest } from '../../protocols/messages/described-request.ts'

type Permission = MessageShape<typeof PermissionSchema>
type Principal = MessageShape<typeof PrincipalSchema>

/** A request, and whether several values of a header are joined or matched one by one, which depends on the release of Envoy. */
interface Seen extends DescribedRequest {
  readonly joined: boolean
  /** The normalized path with its query. */
  readonly target: string
}

/**
 * Whether a policy matches. `path` is the normalized path. Throws when the result depends on how a release of Envoy treats several values
 * of a header.
 */
export function policyMatches(policy: MessageShape<typeof PolicySchema>, request: DescribedRequest, path: string): boolean {
  const matches = (seen: Seen) =>
    policy.permissions.some((permission) => permissionMatches(permission, seen, path)) &&
    policy.principals.some((principal) => principalMatches(principal, seen))
  const seen = { ...request, target: path + request.path.slice(/[?#]|$/.exec(request.path)?.index) }
  const joined = matches({ ...seen, joined: true })
  if (joined !== matches({ ...seen, joined: false }))
    throw new Error(`${JSON.stringify(request.headers)} is judged differently joined and one by one`)
  return joined
}

function permissionMatches({ rule }: Permission, request: Seen, path: string): boolean {
  switch (rule.case) {
    case 'any':
      return true
    case 'andRules':
      return rule.value.rules.every((one) => permissionMatches(one, request, path))
    case 'orRules':
      return rule.value.rules.some((one) => permissionMatches(one, request, path))
    case 'notRule':
      return !permissionMatches(rule.value, request, path)
    case 'header':
      return request.protocol === 'http' && headerMatches(rule.value, request)
    case 'urlPath':
      return rule.value.rule.case === 'path' && stringMatches(rule.value.rule.value, path)
    case 'uriTemplate':
      return templateMatches(rule.value, path)
    case 'destinationPort':
      return rule.value === request.destinationPort
    case 'destinationIp':
      return inRange(rule.value, plainAddress(request.destinationIp))
    case 'requestedServerName':
      return stringMatches(rule.value, request.sni)
    default:
      throw new Error(`permission ${rule.case}`)
  }
}

function principalMatches({ identifier }: Principal, request: Seen): boolean {
  switch (identifier.case) {
    case 'any':
      return true
    case 'andIds':
      return identifier.value.ids.every((one) => principalMatches(one, request))
    case 'orIds':
      return identifier.value.ids.some((one) => principalMatches(one, request))
    case 'notId':
      return !principalMatches(identifier.value, request)
    case 'authenticated':
      return request.peer !== undefined && stringMatches(identifier.value.principalName, `spiffe://${request.peer}`)
    case 'directRemoteIp':
      return inRange(identifier.value, plainAddress(request.sourceIp))
    case 'remoteIp':
      return inRange(identifier.value, request.remoteIp)
    case 'header':
      return headerMatches(identifier.value, request)
    case 'metadata':
      return metadataMatches(identifier.value, request)
    default:
      throw new Error(`principal ${identifier.case}`)
  }
}

function stringMatches(matcher: StringMatcher | undefined, text: string): boolean {
  if (!matcher) return false
  const given = matcher.ignoreCase ? text.toLowerCase() : text
  const { case: kind, value } = matcher.matchPattern
  const wanted = typeof value === 'string' && matcher.ignoreCase ? value.toLowerCase() : value
  switch (kind) {
    case 'exact':
      return given === wanted
    case 'prefix':
      return given.startsWith(wanted as string)
    case 'suffix':
      return given.endsWith(wanted as string)
    case 'contains':
      return given.includes(wanted as string)
    case 'safeRegex':
      if (matcher.ignoreCase) throw new Error('Envoy refuses ignore_case of a regular expression')
      return RE2JS.compile((value as { regex: string }).regex).matches(text)
    default:
      throw new Error(`string ${kind}`)
  }
}

function headerMatches({ name, headerMatchSpecifier: matcher }: HeaderMatcher, request: Seen): boolean {
  const pseudo: Record<string, string> = { ':method': request.method, ':authority': request.host, ':path': request.target }
  const values = pseudo[name] === undefined ? request.headers[name]?.map((value) => value.replace(/^[ \t]+|[ \t]+$/g, '')) : [pseudo[name]]
  if (!values) return false
  if (matcher.case === 'presentMatch') return matcher.value
  if (matcher.case !== 'stringMatch') throw new Error(`header ${matcher.case}`)
  return request.joined ? stringMatches(matcher.value, values.join(',')) : values.some((value) => stringMatches(matcher.value, value))
}

function metadataMatches({ filter, path, value }: MetadataMatcher, request: DescribedRequest): boolean {
  let found: unknown = filter === 'envoy.filters.http.jwt_authn' ? request.claims && { payload: request.claims } : request.metadata[filter]
  for (const { segment } of path) {
    if (typeof found !== 'object' || found === null || Array.isArray(found) || !Object.hasOwn(found, segment.value as string)) return false
    found = (found as Record<string, unknown>)[segment.value as string]
  }
  return value !== undefined && found !== undefined && valueMatches(value, found)
}

function valueMatches({ matchPattern }: ValueMatcher, found: unknown): boolean {
  switch (matchPattern.case) {
    case 'stringMatch':
      return typeof found === 'string' && stringMatches(matchPattern.value, found)
    case 'listMatch': {
      const { matchPattern: inner } = matchPattern.value
      return Array.isArray(found) && inner.case === 'oneOf' && found.some((one) => valueMatches(inner.value, one))
    }
    case 'boolMatch':
      return found === matchPattern.value
    case 'doubleMatch': {
      const { matchPattern: of } = matchPattern.value
      if (typeof found !== 'number') return false
      return of.case === 'exact' ? found === of.value : of.case === 'range' && found >= of.value.start && found < of.value.end
    }
    case 'presentMatch':
      return matchPattern.value
    case 'orMatch':
      return matchPattern.value.valueMatchers.some((one) => valueMatches(one, found))
    default:
      throw new Error(`value ${matchPattern.case}`)
  }
}

/** `envoy.extensions.path.match.uri_template.v3`: operators match characters of a set without brackets. */
function templateMatches({ typedConfig }: TypedExtensionConfig, path: string): boolean {
  const { pathTemplate } = fromBinary(UriTemplateMatchConfigSchema, typedConfig?.value as Uint8Array)
  const text = "-A-Za-z0-9._~%!$&'()*+,;:@="
  const regex = pathTemplate.split(/(\*\*?)/).map((part) => (part === '*' ? `[${text}]+` : part === '**' ? `[${text}/]*` : RE2JS.quote(part)))
  return RE2JS.compile(regex.join('')).matches(path)
}

/** The address of a connection. Envoy reports IPv4-mapped IPv6 addresses of sockets as IPv4. */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=[0-9.]+$)/, '')

function inRange({ addressPrefix, prefixLen }: CidrRange, address: string): boolean {
  if (!ipaddr.isValid(address)) return false
  const [base, given] = [ipaddr.parse(addressPrefix), ipaddr.parse(address)]
  return base.kind() === given.kind() && given.match(base as never, prefixLen ?? 0)
}
