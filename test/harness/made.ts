/** Generates the resources of documents with a control plane inside the test. */
import type { configDump } from '../../actors/discovery/admin/config-dump.ts'
import { configKey } from '../../src/config/kinds.ts'
import { type DocumentFault, parseConfigFile } from '../../src/config/parse.ts'
import type { ResourceFault } from '../../src/model/faults.ts'
import { readNode } from '../../src/model/proxy.ts'
import { Planner } from '../../src/push/planner.ts'
import { hostOf } from '../../src/xds/names.ts'
import { names, testSettings } from './settings.ts'
import { slabsOf } from './slabs.ts'

/** Resources by type, in the form of a debug page's dump. */
export type MadeResources = Parameters<typeof configDump>[0]

/**
 * Returns the resources of every proxy as a writer computes them: those of the groups of its class, without hidden ones, each name once.
 */
export function resourcesByProxy(planner: Planner): Map<string, MadeResources> {
  const { groups: patches, manifests } = planner.takePush()
  const slabs = new Map(slabsOf(patches, planner.present.slab).map((slab) => [slab.id, Buffer.from(slab.bytes)]))
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

/** The faults and warnings of documents, the faults of resources generated from them, and the resources of a proxy. */
export interface MadeOfDocuments {
  readonly faults: readonly DocumentFault[]
  readonly warnings: readonly DocumentFault[]
  readonly reported: readonly ResourceFault[]
  readonly resources: MadeResources
}

/**
 * Generates the resources of a proxy; by default of a sidecar in the namespace `ns` without labels. Invalid documents are replaced by their
 * stand-ins.
 */
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
  return { faults, warnings, reported: planner.faults.all(), resources }
}
