/**
 * Measures the cost of views in a planner in a process of its own, without threads, writers and connections, with a mesh and one proxy per
 * namespace. Driven by messages from bench/view-cost.ts; started with --expose-gc.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { readFeatures } from '../src/config/features.ts'
import { configKey } from '../src/config/kinds.ts'
import { readMeshConfig } from '../src/config/mesh-texts.ts'
import { parseConfigFile } from '../src/config/parse.ts'
import { readNode } from '../src/model/proxy.ts'
import { meshNames } from '../src/names/mesh-names.ts'
import { Planner } from '../src/push/planner.ts'
import * as mesh from './mesh.ts'
import { type Shape, type ShapeName, type Size, shapeFiles, shapes } from './shapes.ts'

/** The mesh to plan. */
export interface PlanCommand {
  readonly shape: ShapeName
  readonly size: Size
  /** Whether proxies take virtual hosts as separate resources (VHDS). */
  readonly hosts: boolean
}

/** CPU milliseconds and KiB of memory per proxy, each in a namespace of its own. */
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
  const connect = (index: number, namespace = `ns-${index}`) => {
    const id = `sidecar~10.100.${index >> 8}.${index & 255}~pod-${index}.${namespace}~${namespace}.svc.cluster.local`
    const node = readNode({ id, metadata: { NAMESPACE: namespace, LABELS: { app: `client-${index % 50}` } }, locality: undefined }, names, false)
    planner.connect(String(index), { ...node, takesVirtualHosts: hosts })
  }
  // What all share is made for a proxy of another namespace, which is not measured.
  connect(size.namespaces, 'default')
  planner.takePush()
  const memory = await inUse()
  const cpu = process.cpuUsage()
  for (let index = 0; index < size.namespaces; index++) connect(index)
  planner.takePush()
  const { user, system } = process.cpuUsage(cpu)
  return { type: 'planned', ms: (user + system) / 1000 / size.namespaces, kib: ((await inUse()) - memory) / 1024 / size.namespaces }
}

/** Returns the bytes of objects and buffers in use. Buffers are freed some time after the objects that referenced them. */
async function inUse(): Promise<number> {
  for (let turn = 0; turn < 5; turn++) {
    globalThis.gc?.()
    await pause(20)
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

process.on('message', async (command: PlanCommand) => {
  // The first run warms up the code and is not measured.
  await plan({ ...command, size: { namespaces: 100, services: 1000 } })
  process.send?.((await plan(command)) satisfies PlanReport)
})
// The driver has exited.
process.on('disconnect', () => process.exit(0))
