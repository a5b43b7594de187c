/** The order of the containers of a pod with an agent (docs/injection.md, N11). */
import { injectedContainers } from '../names/mesh-names.ts'
import { type Container, type Pod, withSpec } from './pod.ts'
import { isSidecar } from './sidecar.ts'

const rank = (names: readonly string[], value: number) => names.map((name) => [name, value] as const)

/** The places of injected containers among those that run before the others: below 0 before those of the user, above 0 after them. */
const places: ReadonlyMap<string, number> = new Map([
  ...rank(injectedContainers.validation, -1),
  ...rank(injectedContainers.init, 1),
  ...rank(injectedContainers.coreDump, 2),
])
/** The same where the agent runs while the others run: rules and agent come first, so that all of the user's have the mesh. */
const earlyPlaces: ReadonlyMap<string, number> = new Map([
  ...rank(injectedContainers.validation, -4),
  ...rank(injectedContainers.init, -3),
  ...rank(injectedContainers.coreDump, -2),
  ...rank(injectedContainers.proxy, -1),
])

const placed = (containers: readonly Container[], places: ReadonlyMap<string, number>): Container[] =>
  [...containers].sort((one, other) => (places.get(one.name) ?? 0) - (places.get(other.name) ?? 0))

/** Returns the pod with its containers in order. `isFirst`: the agent starts before the containers of the user. */
export function orderedContainers(pod: Pod, isFirst: boolean): Pod {
  const { initContainers, containers = [] } = pod.spec
  const isEarly = initContainers?.some(isSidecar) ?? false
  const [agents, others] = [containers.filter(isSidecar), containers.filter((container) => !isSidecar(container))]
  return withSpec(pod, {
    ...(initContainers && { initContainers: placed(initContainers, isEarly ? earlyPlaces : places) }),
    containers: isFirst ? [...agents, ...others] : [...others, ...agents],
  })
}
