/**
 * What views cost where they are made: a planner in a process of its own, without threads, writers and connections, that is told of a mesh
 * and of one proxy a namespace. Driven by messages from bench/view-cost.ts; started with --expose-gc.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { readFeatures } from '../src/config/features.ts'
import { configKey } from '../src/config/kinds.ts'
import { readMeshConfig } from '../src/config/mesh-config.ts'
import { parseConfigFile } from '../src/config/parse.ts'
import { readNode } from '../src/model/proxy.ts'
import { meshNames } from '../src/names/mesh-names.ts'
import { Planner } from '../src/push/planner.ts'
import * as mesh from './mesh.ts'
import { type Shape, type ShapeName, type Size, shapeFiles, shapes } from './shapes.ts'

/** What to make. */
export interface PlanCommand {
  readonly shape: ShapeName
  readonly size: Size
  /** Proxies take virtual hosts by themselves. */
  readonly hosts: boolean
}

/** Milliseconds of CPU and KiB of memory that a proxy took, each in a namespace of its own. */
export interface PlanReport {
  readonly type: 'planned'
  readonly ms: number
  readonly kib: number
}

const names = meshNames('mesh.io')

async function plan({ shape: name, size, hosts }: PlanCommand): Promise<PlanReport> {
  const shape: Shape = shapes[name]
  const settings = {
    features: readFeatures({}).features,
    names,
    domain: 'cluster.local',
    lockedKeys: '{"keys":[]}',
    versionKey: 'bench',
    plugins: [],
    optOuts: new Set<never>(),
  }
  const planner = new Planner(settings)
  if (shape.mesh !== undefined) {
    const read = readMeshConfig(shape.mesh)
    if ('error' in read) throw new Error(read.error)
    planner.state.setMesh(read.value)
  }
  for (const [file, text] of [...mesh.files(size.services, size.namespaces), ...shapeFiles(shape, size)])
    for (const object of parseConfigFile(file, text, names).objects) planner.state.setConfig(configKey(object), object)
  planner.advance()
  const steps = planner.prepare()
  while (!steps.next().done);
  planner.takePush()
  const memory = await inUse()
  const cpu = process.cpuUsage()
  for (let index = 0; index < size.namespaces; index++) {
    const namespace = `ns-${index}`
    const id = `sidecar~10.100.${index >> 8}.${index & 255}~pod-${index}.${namespace}~${namespace}.svc.cluster.local`
    const node = readNode({ id, metadata: { NAMESPACE: namespace, LABELS: { app: `client-${index % 50}` } }, locality: undefined }, names, false)
    planner.connect(String(index), { ...node, takesVirtualHosts: hosts })
  }
  planner.takePush()
  const { user, system } = process.cpuUsage(cpu)
  return { type: 'planned', ms: (user + system) / 1000 / size.namespaces, kib: ((await inUse()) - memory) / 1024 / size.namespaces }
}

/** Bytes of objects and of buffers that are in use. Buffers are freed some time after the objects that held them. */
async function inUse(): Promise<number> {
  for (let turn = 0; turn < 5; turn++) {
    globalThis.gc?.()
    await pause(20)
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

process.on('message', async (command: PlanCommand) => {
  // The first time finds code that was never run; it does not count.
  await plan({ ...command, size: { namespaces: 100, services: 1000 } })
  process.send?.((await plan(command)) satisfies PlanReport)
})
// Whoever drives it has ended.
process.on('disconnect', () => process.exit(0))
