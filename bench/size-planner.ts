/**
 * Measures what single changes cost a planner in a process of its own, without threads, writers and connections. Driven by messages from
 * bench/scenarios/size.ts.
 */

import type { Service } from '../protocols/data.ts'
import { readFeatures } from '../src/config/features.ts'
import { configKey } from '../src/config/kinds.ts'
import { parseConfigFile } from '../src/config/parse.ts'
import { readNode } from '../src/model/proxy.ts'
import { meshNames } from '../src/names/mesh-names.ts'
import { Planner } from '../src/push/planner.ts'
import { registryName } from '../src/registry/merged-services.ts'
import type { MockService } from '../src/registry/mock.ts'
import { type MeshSize, meshDocuments, type SizeChange, type SizeScenario, sizeScenarios } from './size.ts'

/** The mesh, the proxies and the scenarios to measure. */
export interface SizeCommand extends MeshSize {
  readonly proxies: number
  /** Whether proxies take virtual hosts as separate resources (VHDS). */
  readonly hosts: boolean
  readonly rounds: number
  /** Names of scenarios. */
  readonly scenarios: readonly string[]
}

/** The median CPU milliseconds of a change, by scenario. */
export interface SizeReport {
  readonly type: 'sized'
  readonly ms: Readonly<Record<string, number>>
}

const names = meshNames('mesh.io')
/** Rounds of each scenario that are not measured: they warm up the code. */
const warmUp = 5

/** Measures the scenarios: one after another in one planner, and those that are apart in planners of their own. */
export function measure(command: SizeCommand): SizeReport {
  const chosen = sizeScenarios.filter(({ name }) => command.scenarios.includes(name))
  const together = chosen.filter(({ isApart }) => !isApart)
  const groups = [...(together.length > 0 ? [together] : []), ...chosen.filter(({ isApart }) => isApart).map((each) => [each])]
  return { type: 'sized', ms: Object.assign({}, ...groups.map((scenarios) => measureTogether(command, scenarios))) }
}

function measureTogether(command: SizeCommand, scenarios: readonly SizeScenario[]): Record<string, number> {
  const { proxies, rounds, hosts } = command
  const planner = new Planner({
    features: readFeatures({}).features,
    names,
    domain: 'cluster.local',
    lockedKeys: '{"keys":[]}',
    versionKey: 'bench',
    plugins: [],
    optOuts: new Set<never>(),
  })
  for (const text of [...meshDocuments(command), ...scenarios.flatMap(({ mesh }) => mesh?.(command) ?? [])])
    for (const object of parsed(text)) planner.state.setConfig(configKey(object), object)
  for (const { service, slices } of scenarios.flatMap(({ registry }) => registry?.() ?? []))
    planner.state.services.set(registryName(service), keyOf(service), { service, slices })
  planner.advance()
  for (let index = 0; index < proxies; index++) {
    const namespace = `ns-${index % command.namespaces}`
    const id = `sidecar~10.100.${index >> 8}.${index & 255}~pod-${index}.${namespace}~${namespace}.svc.cluster.local`
    const metadata = { NAMESPACE: namespace, LABELS: { app: `client-${index % 50}` } }
    planner.connect(String(index), { ...readNode({ id, metadata, locality: undefined }, names, false), takesVirtualHosts: hosts })
  }
  const id = 'router~10.99.0.1~edge.ns-0~ns-0.svc.cluster.local'
  planner.connect('edge', readNode({ id, metadata: { NAMESPACE: 'ns-0', LABELS: { istio: 'edge' } }, locality: undefined }, names, false))
  planner.takePush()
  let now = 0
  const ms: Record<string, number> = {}
  for (const scenario of scenarios) {
    const times: number[] = []
    for (let round = 0; round < warmUp + rounds; round++) {
      const time = roundOf(scenario, round, command, (change) => {
        now += 10_000
        return costOf(planner, scenario, change, now)
      })
      if (round >= warmUp) times.push(time)
    }
    ms[scenario.name] = times.sort((one, other) => one - other)[Math.floor(times.length / 2)] ?? Number.NaN
  }
  return ms
}

const parsed = (text: string) => parseConfigFile('bench.yaml', text, names).objects

function roundOf({ changes }: SizeScenario, round: number, size: MeshSize, cost: (change: SizeChange) => number): number {
  const all = changes(round, size)
  return all.reduce((sum, change) => sum + cost(change), 0) / all.length
}

/** Makes a change and returns its CPU milliseconds. What was kept for a while after the change before it is removed first. */
function costOf(planner: Planner, { registry }: SizeScenario, { set = [], remove = [], slices = [] }: SizeChange, now: number): number {
  planner.sweep(now)
  planner.takePush()
  const [added, removed] = [set.flatMap(parsed), remove.flatMap(parsed)]
  const services = registry?.() ?? []
  // Slices reach the push queue as copies.
  const changed = slices.map(({ index, slice }) => ({ service: (services[index] as MockService).service, slice: structuredClone(slice) }))
  const cpu = process.cpuUsage()
  for (const object of added) planner.state.setConfig(configKey(object), object)
  for (const object of removed) planner.state.setConfig(configKey(object), undefined)
  for (const { service, slice } of changed) planner.state.services.setSlice(registryName(service), keyOf(service), slice.key, slice)
  planner.advance(now)
  planner.takePush()
  const { user, system } = process.cpuUsage(cpu)
  return (user + system) / 1000
}

const keyOf = ({ namespace, hostname }: Service): string => `${namespace}/${hostname}`

process.on('message', (command: SizeCommand) => {
  process.send?.(measure(command))
})
// The driver has exited.
process.on('disconnect', () => process.exit(0))
