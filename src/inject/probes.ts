/** Probes of the application that the agent runs on behalf of the orchestrator, which has no certificate (docs/injection.md, N9). */
import { isMapping } from '../config/shape.ts'
import { type Container, mapContainers, type Pod } from './pod.ts'
import { isInjectedName, isSidecar, sidecarOf, variableOf, withVariables } from './sidecar.ts'

const paths = { readinessProbe: 'readyz', livenessProbe: 'livez', startupProbe: 'startupz' } as const
const variable = 'MESH_ORCH_APP_PROBERS'
const prefix = '/app-health/'

type Prober = Readonly<Record<string, unknown>>

/** Returns a pod whose probes over HTTP, TCP and gRPC go to the agent, which has the originals. Nothing changes in a pod without an agent. */
export function rewriteProbes(pod: Pod, statusPort: number): Pod {
  if (!sidecarOf(pod) || statusPort === 0) return pod
  const probers: Record<string, Prober> = {}
  const rewritten = mapContainers(pod, (container) => {
    if (isSidecar(container) || isInjectedName(container.name)) return container
    const changed: Record<string, unknown> = {}
    for (const [field, path] of Object.entries(paths)) {
      const probe = container[field]
      if (!isMapping(probe)) continue
      const prober = proberOf(probe, container)
      if (!prober) continue
      const url = `${prefix}${container.name}/${path}`
      probers[url] = prober
      const { httpGet, tcpSocket, grpc, ...times } = probe
      changed[field] = { httpGet: { path: url, port: statusPort }, ...times }
    }
    return { ...container, ...changed }
  })
  return Object.keys(probers).length === 0 ? pod : withVariables(rewritten, { [variable]: JSON.stringify(probers) })
}

/** What the agent is told of a probe; undefined for one that it cannot run: of a command, of another host, or of a port without a number. */
function proberOf(probe: Prober, container: Container): Prober | undefined {
  const timeout = typeof probe.timeoutSeconds === 'number' ? { timeoutSeconds: probe.timeoutSeconds } : {}
  const { httpGet, tcpSocket, grpc } = probe
  for (const [kind, action] of Object.entries({ httpGet, tcpSocket, grpc })) {
    if (!isMapping(action)) continue
    const port = portOf(action.port, container)
    if (port === undefined || (typeof action.host === 'string' && action.host !== '' && action.host !== 'localhost')) return undefined
    if (kind === 'httpGet' && typeof action.path === 'string' && action.path.startsWith(prefix)) return undefined
    return { [kind]: { ...action, port }, ...timeout }
  }
  return undefined
}

function portOf(port: unknown, { ports = [] }: Container): number | undefined {
  const number = (value: unknown) => (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535 ? value : undefined)
  if (typeof port !== 'string') return number(port)
  if (/^\d{1,5}$/.test(port)) return number(Number(port))
  return number(ports.find(({ name }) => name === port)?.containerPort)
}

/** Returns a pod with the original probes: those that the variable of its agent has. */
export function restoreProbes(pod: Pod): Pod {
  const sidecar = sidecarOf(pod)
  const known = sidecar && parsed(variableOf(sidecar, variable))
  if (!known) return pod
  return mapContainers(pod, (container) => {
    const changed: Record<string, unknown> = {}
    for (const [field, path] of Object.entries(paths)) {
      const [probe, original] = [container[field], known[`${prefix}${container.name}/${path}`]]
      if (!isMapping(probe) || !isMapping(original) || !isMapping(probe.httpGet) || probe.httpGet.path !== `${prefix}${container.name}/${path}`)
        continue
      const { httpGet: _, ...times } = probe
      const { timeoutSeconds: _timeout, ...action } = original
      changed[field] = { ...action, ...times }
    }
    return { ...container, ...changed }
  })
}

function parsed(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '')
    return isMapping(value) ? value : undefined
  } catch {
    return undefined
  }
}
