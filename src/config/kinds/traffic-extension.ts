/** TrafficExtension: a filter in Lua or WebAssembly. */
import { extension } from '../shapes/extensions.ts'

/** The kind TrafficExtension. */
export const trafficExtension = { name: 'TrafficExtension', plural: 'trafficextensions', ...extension } as const
