/** Telemetry: access logs, metrics and traces of requests. */
import { anything, map, type Read } from '../shape.ts'
import type { Kind } from './kind.ts'

const spec = map(anything)

/** The kind Telemetry. */
export const telemetry = {
  name: 'Telemetry',
  plural: 'telemetries',
  group: 'telemetry',
  versions: ['v1alpha1', 'v1'],
  spec,
  scope: 'namespace or mesh',
  selects: undefined,
  without: 'access logs, metrics and traces are configured by the mesh configuration only',
} satisfies Kind<'Telemetry', Read<typeof spec>>
