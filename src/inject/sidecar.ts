/** Finds the container of the agent in a pod, and reads and sets its variables. */
import { areAliasVariables, canonicalVariable, injectedContainers, variableAlias } from '../names/mesh-names.ts'
import { allContainers, type Container, mapContainers, type Pod } from './pod.ts'

const proxyNames: readonly string[] = injectedContainers.proxy

/** Whether a container is that of the agent, by its name. */
export const isSidecar = ({ name }: Pick<Container, 'name'>): boolean => proxyNames.includes(name)

/** Whether a container is one that injection adds, by its name. */
export const isInjectedName = (name: string): boolean =>
  Object.values(injectedContainers).some((names) => (names as readonly string[]).includes(name))

/** The container of the agent, wherever it is; undefined in a pod without one. */
export const sidecarOf = (pod: Pod): Container | undefined => allContainers(pod).find(isSidecar)

/** The value of a variable of a container in either spelling. */
export const variableOf = ({ env = [] }: Container, name: string): string | undefined =>
  env.find((variable) => canonicalVariable(variable.name) === name)?.value

/**
 * Returns a pod whose agent has other variables. They replace those of the same name, and are spelled as the others of the container. Nothing
 * changes in a pod without an agent.
 */
export function withVariables(pod: Pod, variables: Readonly<Record<string, string>>): Pod {
  if (Object.keys(variables).length === 0) return pod
  return mapContainers(pod, (container) => {
    if (!isSidecar(container)) return container
    const { env = [] } = container
    const isAlias = areAliasVariables(env.map(({ name }) => name))
    const others = env.filter(({ name }) => !Object.hasOwn(variables, canonicalVariable(name)))
    const added = Object.entries(variables)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, value]) => ({ name: isAlias ? variableAlias(name) : name, value }))
    return { ...container, env: [...others, ...added] }
  })
}
