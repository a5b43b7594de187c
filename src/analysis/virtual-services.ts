/** Finds what VirtualServices name and is not there, routes that no request reaches, and weights that do not say what is meant. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import type { HttpMatch, HttpRoute, VirtualServiceSpec } from '../config/kinds/virtual-service.ts'
import { gatewayPath } from '../model/gateway-ports.ts'
import { completeHost } from '../model/match.ts'
import { routesOf } from './claims.ts'
import { checkAsDelegate, checkDelegate } from './delegates.ts'
import { checkDestination } from './destinations.ts'
import type { Tell } from './finding.ts'
import { checkSharedHosts } from './gateway-routes.ts'
import { covers, type Restrictions, restrictionsOf, takesAll } from './match-coverage.ts'
import { labelText, listed, mostNames, servicesOf, someWorkload, tellMissing, tellNoNamespace } from './references.ts'
import { checkRequestValues } from './request-values.ts'
import { checkRouteKinds, serverServes } from './route-kinds.ts'
import { checkRoutedHosts } from './routed-hosts.ts'
import type { World } from './world.ts'

/** Tells what is wrong with a VirtualService. */
export function analyzeVirtualService(object: ConfigObject<VirtualServiceSpec>, world: World, tell: Tell): void {
  const { spec } = object
  for (const [index, route] of (spec.http ?? []).entries()) {
    const at = `spec.http[${index}]`
    for (const [number, { destination }] of (route.route ?? []).entries())
      checkDestination(destination, `${at}.route[${number}].destination`, object, world, tell)
    const nothing = 'nothing is mirrored'
    if (route.mirror) checkDestination(route.mirror, `${at}.mirror`, object, world, tell, nothing)
    for (const [number, { destination }] of (route.mirrors ?? []).entries())
      checkDestination(destination, `${at}.mirrors[${number}].destination`, object, world, tell, nothing)
    checkWeights(route.route, `${at}.route`, tell)
    checkDelegate(route, at, object, world, tell)
    checkRetries(route, at, tell)
    for (const [number, match] of (route.match ?? []).entries()) checkMatch(match, `${at}.match[${number}]`, object, world, tell)
  }
  for (const kind of ['tls', 'tcp'] as const)
    for (const [index, { route, match }] of (spec[kind] ?? []).entries()) {
      for (const [number, { destination }] of route.entries())
        checkDestination(destination, `spec.${kind}[${index}].route[${number}].destination`, object, world, tell)
      checkWeights(route, `spec.${kind}[${index}].route`, tell)
      for (const [number, each] of (match ?? []).entries()) checkMatch(each, `spec.${kind}[${index}].match[${number}]`, object, world, tell)
    }
  checkAsDelegate(object, tell)
  checkGateways(object, world, tell)
  checkOrder(spec.http ?? [], world, tell)
  checkPatterns(spec.http ?? [], tell)
  checkRequestValues(spec.http ?? [], tell)
  checkHosts(object, world, tell)
  checkSharedHosts(object, world, tell)
  checkRoutedHosts(object, world, tell)
  checkRouteKinds(object, world, tell)
}

/** Tells a try that may take longer than the request. A request without a timeout may take any time. */
function checkRetries({ timeout, retries }: HttpRoute, at: string, tell: Tell): void {
  if (timeout && retries?.perTryTimeout && retries.perTryTimeout > timeout)
    tell('IST0133', `${at}.retries.perTryTimeout`, 'it is longer than the timeout of the whole request, so it has no effect: make it shorter')
}

/** Tells what a match asks for that no request has: a namespace or workload that does not exist, a port that no service of the hosts has. */
function checkMatch(
  { port, sourceNamespace, sourceLabels }: Pick<HttpMatch, 'port' | 'sourceNamespace' | 'sourceLabels'>,
  at: string,
  object: ConfigObject<VirtualServiceSpec>,
  world: World,
  tell: Tell,
): void {
  const isNowhere = sourceNamespace && tellNoNamespace(sourceNamespace, ', so no request matches', { at: `${at}.sourceNamespace`, world, tell })
  if (!isNowhere && sourceLabels && Object.keys(sourceLabels).length > 0 && someWorkload(sourceLabels, sourceNamespace || undefined, world) === false)
    tell('IST0127', `${at}.sourceLabels`, `no workload has the labels ${labelText(sourceLabels, world)}, so no request matches at present`)
  const { gateways = ['mesh'], hosts = [] } = object.spec
  if (port === undefined || gateways.some((name) => name !== 'mesh')) return
  const services = hosts.map((host) => servicesOf(completeHost(host, object.namespace, world.domain), world))
  const ports = services.flat().flatMap((service) => service.ports.map(({ number }) => number))
  if (services.length > 0 && services.every(({ length }) => length > 0) && !ports.includes(port))
    tell('IST0101', `${at}.port`, `no service of the hosts has a port ${port}, only ${[...new Set(ports)].join(', ')}, so no request matches`)
}

/** Weights are relative; those of one destination alone, and of 0, and sums that are near 100 and not 100, are mostly mistakes. */
function checkWeights(route: readonly { readonly weight?: number }[] | undefined, at: string, tell: Tell): void {
  if (!route || route.length < 2) return
  const without = route.findIndex(({ weight }) => weight === undefined)
  if (without >= 0 && route.some(({ weight }) => weight !== undefined))
    tell('IST0133', `${at}[${without}]`, 'a destination without a weight beside others that have one gets no requests: set its weight')
  const sum = route.reduce((total, { weight = 0 }) => total + weight, 0)
  if (sum !== 100 && route.every(({ weight }) => weight !== undefined))
    tell('IST0133', at, `the weights add up to ${sum}: they are taken as shares of that, not as percentages`)
}

function checkGateways({ namespace, spec }: ConfigObject<VirtualServiceSpec>, world: World, tell: Tell): void {
  const named = [...(spec.gateways ?? []).entries(), ...gatewaysOfMatches(spec)]
  for (const [where, name] of named) {
    if (name === 'mesh') continue
    const at = typeof where === 'number' ? `spec.gateways[${where}]` : where
    const path = gatewayPath(name, namespace)
    const gateway = world.object('Gateway', path) as ConfigObject<GatewaySpec> | undefined
    if (!gateway) {
      if (!world.isRead('Gateway', path.slice(0, path.indexOf('/')))) continue
      tellMissing('Gateway', path, ', so these routes are nowhere', { at, world, tell })
      continue
    }
    if (typeof where !== 'number') continue
    const patterns = gateway.spec.servers.reduce((sum, { hosts }) => sum + hosts.length, 0)
    for (const [index, host] of (spec.hosts ?? []).entries()) {
      world.spend(patterns)
      if (!gateway.spec.servers.some((server) => serverServes(server, gateway, completeHost(host, namespace, world.domain), namespace)))
        tell(
          'IST0132',
          `spec.hosts[${index}]`,
          `no server of the Gateway ${path} has the host ${host} for the namespace ${namespace}, so it is not served there`,
        )
    }
  }
}

/** The gateways that matches name, with their places. */
function* gatewaysOfMatches({ http, tls, tcp }: VirtualServiceSpec): Generator<[string, string]> {
  for (const [kind, routes] of Object.entries({ http, tls, tcp }))
    for (const [index, { match }] of (routes ?? []).entries())
      for (const [number, { gateways }] of (match ?? []).entries())
        for (const [place, name] of (gateways ?? []).entries()) yield [`spec.${kind}[${index}].match[${number}].gateways[${place}]`, name]
}

/** Tells routes that no request reaches, since one before them takes all that they match. */
function checkOrder(routes: readonly HttpRoute[], world: World, tell: Tell): void {
  const before: { readonly at: string; readonly match: Restrictions }[] = []
  let all: string | undefined
  for (const [index, { match = [] }] of routes.entries()) {
    const at = `spec.http[${index}]`
    if (all !== undefined) {
      tell('IST0130', at, `no request reaches this route: ${all} takes all of them; move that to the end`)
      continue
    }
    const own = match.map(restrictionsOf)
    world.spend(own.length * before.length)
    const covered = own.map((each) => before.find((earlier) => covers(earlier.match, each))?.at)
    if (match.length > 0 && covered.every((earlier) => earlier !== undefined))
      tell('IST0130', at, `no request reaches this route: ${covered[0]} takes all that it matches`)
    else
      for (const [number, earlier] of covered.entries())
        if (earlier !== undefined) tell('IST0131', `${at}.match[${number}]`, `${earlier} takes all that this matches`)
    if (match.length === 0 || own.some(takesAll)) all = at
    for (const [number, each] of own.entries()) before.push({ at: `${at}.match[${number}]`, match: each })
  }
}

/** Tells regular expressions for paths that no path matches: the whole of it has to match, and it begins with a slash. */
function checkPatterns(routes: readonly HttpRoute[], tell: Tell): void {
  for (const [index, { match = [] }] of routes.entries())
    for (const [number, { uri }] of match.entries())
      if (uri?.regex !== undefined && /^\^?[A-Za-z0-9_-]+($|[^|*?{A-Za-z0-9_-])/.test(uri.regex) && !uri.regex.includes('|'))
        tell(
          'IST0122',
          `spec.http[${index}].match[${number}].uri.regex`,
          'no path matches: the whole path has to match, and paths begin with /, so begin the expression with / or .*',
        )
}

/** Tells the hosts that another VirtualService of the mesh has too: of these only the oldest is certain to count. */
function checkHosts(object: ConfigObject<VirtualServiceSpec>, world: World, tell: Tell): void {
  const { namespace, spec } = object
  if (spec.gateways?.length && !spec.gateways.includes('mesh')) return
  for (const [index, host] of (spec.hosts ?? []).entries()) {
    const full = completeHost(host, namespace, world.domain)
    const { count, first } = world.meeting(routesOf(full), object, world.mesh.exportTo.virtualServices, mostNames)
    if (count === 0) continue
    const names = first.map(({ namespace: owner, name }) => `${owner}/${name}`)
    tell(
      'IST0109',
      `spec.hosts[${index}]`,
      `${full} is also a host of the VirtualService ${listed(names, count)}: only one of them counts; put the routes into one`,
    )
  }
}
