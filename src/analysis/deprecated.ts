/** Finds deprecated fields and values. */
import type { ConfigObject } from '../../protocols/data.ts'
import { isMapping } from '../config/shape.ts'
import type { Tell } from './finding.ts'

interface Deprecated {
  /** The fields from `spec` on; `*` stands for the items of a list. */
  readonly path: string
  /** The values that are deprecated; undefined: the field is. */
  readonly values?: readonly unknown[]
  readonly instead: string
}

const policies = ['trafficPolicy', 'trafficPolicy.portLevelSettings.*', 'subsets.*.trafficPolicy', 'subsets.*.trafficPolicy.portLevelSettings.*']

/** The deprecated fields by kind. */
const deprecated: Readonly<Record<string, readonly Deprecated[]>> = {
  VirtualService: [
    { path: 'http.*.mirrorPercent', instead: 'mirrorPercentage' },
    { path: 'http.*.fault.delay.percent', instead: 'percentage' },
    { path: 'http.*.fault.abort.percent', instead: 'percentage' },
    { path: 'http.*.corsPolicy.allowOrigin', instead: 'allowOrigins' },
  ],
  DestinationRule: policies.flatMap((policy) => [
    { path: `${policy}.outlierDetection.consecutiveErrors`, instead: 'consecutive5xxErrors or consecutiveGatewayErrors' },
    { path: `${policy}.loadBalancer.simple`, values: ['LEAST_CONN'], instead: 'LEAST_REQUEST' },
    { path: `${policy}.loadBalancer.consistentHash.minimumRingSize`, instead: 'ringHash.minimumRingSize' },
    { path: `${policy}.loadBalancer.warmupDurationSecs`, instead: 'warmup' },
  ]),
  ...Object.fromEntries(
    ['AuthorizationPolicy', 'RequestAuthentication', 'Telemetry', 'WasmPlugin'].map((kind) => [kind, [{ path: 'targetRef', instead: 'targetRefs' }]]),
  ),
}

/** Tells the deprecated fields and values of an object. */
export function analyzeDeprecated({ kind, spec }: ConfigObject, tell: Tell): void {
  for (const { path, values, instead } of deprecated[kind] ?? [])
    for (const [at, value] of found(spec, path.split('.'), 'spec'))
      if (!values || values.includes(value))
        tell('IST0002', at, `${values ? JSON.stringify(value) : 'this field'} is deprecated and may go with a later release: use ${instead}`)
}

/** Yields the values at a path, with their places. */
function* found(value: unknown, [field, ...rest]: readonly string[], at: string): Generator<[string, unknown]> {
  if (value === undefined || value === null) return
  if (field === undefined) yield [at, value]
  else if (field === '*') {
    if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* found(item, rest, `${at}[${index}]`)
  } else if (isMapping(value) && Object.hasOwn(value, field)) yield* found(value[field], rest, `${at}.${field}`)
}
