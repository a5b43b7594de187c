/** Which fields of VirtualServices routes were made from, and which rules have no route. */
import { create, toJsonString } from '@bufbuild/protobuf'
import { RouteMatchSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import type { TriedRoute } from '../../../protocols/messages/explain.ts'
import type { HttpMatch, HttpRoute } from '../../config/kinds/virtual-service.ts'
import type { ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import { appliesToRequests, isCatchAll, type Place, routeMatch, withoutPlace } from '../../xds/routes/matches.ts'

/** A rule of a VirtualService, or one match of it, that no route was made from. */
export interface UnusedRule {
  readonly virtualService: string
  readonly field: string
  readonly reason: string
}

/** The fields that routes were made from, in the order of the routes; empty: none is found, since a patch changed the route or there are too many. */
export interface RouteFields {
  readonly fields: readonly string[]
  readonly unused: readonly UnusedRule[]
}

/** The maximum number of matches that are looked at. */
const mostMatches = 2000

interface Rule {
  readonly field: string
  readonly name: string
  readonly match: HttpMatch | undefined
  /** As JSON. */
  readonly made: string
}

/**
 * Finds the fields of routes. Those of one VirtualService are in the order of its rules, so that equal matches are told apart; and a rule that
 * is for other gateways or callers than `place` made none of them. The port of the request tells only which of several equal matches counts:
 * that of a listener may be another than the one that rules name.
 */
export function routeFields(
  all: readonly ResolvedVirtualService[],
  routes: readonly Pick<TriedRoute, 'virtualService' | 'name' | 'match'>[],
  place: Place,
): RouteFields {
  const fields = routes.map(() => '')
  const unused: UnusedRule[] = []
  for (const path of new Set(routes.map(({ virtualService }) => virtualService))) {
    const service = all.find(({ namespace, name }) => `${namespace}/${name}` === path)
    if (!service) continue
    const rules = rulesOf(service)
    const here = rules.filter(({ match = {} }) => appliesToRequests({ ...match, port: undefined }, place))
    const taken = new Set<Rule>()
    for (const [index, route] of routes.entries()) {
      if (route.virtualService !== path) continue
      const alike = here.filter((rule) => !taken.has(rule) && rule.name === route.name && rule.made === route.match)
      const found = alike.find(({ match = {} }) => appliesToRequests(match, place)) ?? alike[0]
      if (!found) continue
      taken.add(found)
      fields[index] = found.field
    }
    unused.push(
      ...rules
        .filter((rule) => !taken.has(rule))
        .map((rule) => ({ virtualService: path, field: rule.field, reason: whyUnused(rules, rule, here.includes(rule), taken) })),
    )
  }
  return { fields, unused }
}

function rulesOf({ http, delegates }: ResolvedVirtualService): Rule[] {
  const rules = http.flatMap((rule, index) => {
    const field = `http[${index}]${delegates ? ' with its delegates' : ''}`
    if (!rule.match?.length) return [ruleOf(rule, field, undefined)]
    return rule.match
      .slice(0, mostMatches)
      .map((match, at) => ruleOf(rule, `http[${index}].match[${at}]${delegates ? ' with its delegates' : ''}`, match))
  })
  return rules.slice(0, mostMatches)
}

const ruleOf = (rule: HttpRoute, field: string, match: HttpMatch | undefined): Rule => ({
  ...{ field, match },
  name: [rule.name, match?.name].filter(Boolean).join('.'),
  made: toJsonString(RouteMatchSchema, create(RouteMatchSchema, routeMatch(match))),
})

function whyUnused(rules: readonly Rule[], unused: Rule, isHere: boolean, taken: ReadonlySet<Rule>): string {
  const conditions = placeOf(unused.match)
  const first = rules.findIndex((rule) => taken.has(rule) && isCatchAll(rule.match && withoutPlace(rule.match)))
  if (isHere && first >= 0 && rules.indexOf(unused) > first) return `${rules[first]?.field} matches every request before it`
  return conditions.length > 0
    ? `it is for other callers or ports: ${conditions.join(', ')}`
    : 'it has no route here: the proxy cannot have it, which the faults of the object tell'
}

/** The conditions on where a request is sent from, as they are written. */
function placeOf({ port, gateways, sourceLabels, sourceNamespace }: HttpMatch = {}): string[] {
  return Object.entries({
    port,
    gateways: gateways?.length ? gateways : undefined,
    sourceLabels,
    sourceNamespace: sourceNamespace || undefined,
  }).flatMap(([name, value]) => (value === undefined ? [] : [`${name} ${JSON.stringify(value)}`]))
}
