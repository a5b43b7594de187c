/** What a control plane within a test makes of documents. */
import type { configDump } from '../../actors/discovery/admin/config-dump.ts'
import { configKey } from '../../src/config/kinds.ts'
import { type DocumentFault, parseConfigFile } from '../../src/config/parse.ts'
import type { ResourceFault } from '../../src/model/faults.ts'
import { readNode } from '../../src/model/proxy.ts'
import { Planner } from '../../src/push/planner.ts'
import { hostOf } from '../../src/xds/names.ts'
import { names, testSettings } from './settings.ts'

/** Resources by type, as a debug page dumps them. */
export type MadeResources = Parameters<typeof configDump>[0]

/** Every proxy's resources as a writer has them: those of the groups of its class, without what the class hides, and no name twice. */
export function resourcesByProxy(planner: Planner): Map<string, MadeResources> {
  const { groups: patches, manifests, slabs: pieces } = planner.takePush()
  const slabs = new Map(pieces.map((slab) => [slab.id, Buffer.from(slab.bytes)]))
  const bytesOf = (slices: readonly number[]): string => {
    const chunks: Buffer[] = []
    for (let at = 0; at < slices.length; at += 3) {
      const [slab, from, length] = slices.slice(at, at + 3) as [number, number, number]
      chunks.push((slabs.get(slab) as Buffer).subarray(from, from + length))
    }
    return Buffer.concat(chunks).toString('base64')
  }
  return new Map(
    planner.proxies().map(({ connection, proxyClass }) => {
      const uses = manifests.find(({ classId }) => classId === proxyClass?.id)?.groups ?? {}
      const resources = Object.entries(uses).map(([typeUrl, list]) => {
        const found = new Map<string, { name: string; version: string; element: string }>()
        for (const { group, hide } of list)
          for (const { name, slices } of patches.find((patch) => patch.group === group)?.changed ?? [])
            if (!hide.includes(hostOf(typeUrl, name)) && !found.has(name)) found.set(name, { name, version: '', element: bytesOf(slices) })
        return [typeUrl, [...found.values()]] as const
      })
      return [connection, Object.fromEntries(resources)]
    }),
  )
}

/** What is wrong with documents, with these environment variables, and what a proxy gets of them. */
export interface MadeOfDocuments {
  readonly faults: readonly DocumentFault[]
  readonly warnings: readonly DocumentFault[]
  readonly told: readonly ResourceFault[]
  readonly resources: MadeResources
}

/** Makes the resources of a proxy; it is a sidecar of namespace `ns` without labels where nothing else is said. What is not valid is replaced by its stand-in. */
export function madeOf(
  documents: string,
  env: Record<string, string> = {},
  { id = 'sidecar~10.0.0.1~app.ns~ns.svc.cluster.local', metadata = {} }: { id?: string; metadata?: Record<string, unknown> } = {},
): MadeOfDocuments {
  const settings = testSettings(env)
  const { objects, faults, warnings, standIns } = parseConfigFile('in.yaml', documents, names, undefined, settings.optOuts)
  const planner = new Planner(settings)
  for (const object of [...objects, ...standIns.values()]) planner.state.setConfig(configKey(object), object)
  planner.advance()
  planner.connect('proxy', readNode({ id, metadata, locality: undefined, agent: { name: 'envoy', version: [1, 36] as const } }, names, true))
  const resources = resourcesByProxy(planner).get('proxy') ?? {}
  return { faults, warnings, told: planner.faults.all(), resources }
}
