/** Reads the sources of the workload's identity and of the proxy's configuration at start-up (docs/agent.md, B3 and B5). */
import { networkInterfaces } from 'node:os'
import { readDownwardFile } from '../../../src/bootstrap/downward-file.ts'
import { hasUnspecified } from '../../../src/bootstrap/node.ts'
import type { PodFacts } from '../../../src/bootstrap/prepared.ts'
import type { ConfigLayer } from '../../../src/bootstrap/proxy-config.ts'
import { isMapping } from '../../../src/config/shape.ts'
import { readIfThere } from '../../runtime/bounded-file.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { pause } from '../../runtime/timers.ts'

/** The files that the orchestrator mounts into the pod. */
const podFiles = {
  labels: './etc/mesh/pod/labels',
  annotations: './etc/mesh/pod/annotations',
  cpuLimit: './etc/mesh/pod/cpu-limit',
  cpuRequest: './etc/mesh/pod/cpu-request',
}

/** Reads the pod's files. A file that cannot be read is logged as a warning and treated as empty. */
export async function readPodFacts(log: ScopedLogger): Promise<PodFacts> {
  const read = async (path: string): Promise<string> => {
    try {
      return (await readIfThere(path)) ?? ''
    } catch (error) {
      log.warn(`${(error as Error).message}; it is left out`)
      return ''
    }
  }
  const entries = async (path: string) => {
    const file = readDownwardFile(path, await read(path))
    for (const warning of file.warnings) log.warn(warning)
    return file.entries
  }
  return {
    labels: await entries(podFiles.labels),
    annotations: await entries(podFiles.annotations),
    cpuLimit: await read(podFiles.cpuLimit),
    cpuRequest: await read(podFiles.cpuRequest),
  }
}

/**
 * Reads `defaultConfig` of the mesh file. A missing file is an empty layer. Rejects with an Error that names the file when it cannot be
 * read or is no mapping.
 */
export async function meshFileLayer(path: string): Promise<ConfigLayer> {
  const { document } = await textLayer(path, (await readIfThere(path)) ?? '')
  if (document !== undefined && document !== null && !isMapping(document)) throw new Error(`${path}: not a mapping`)
  return { source: `${path}: defaultConfig`, document: document?.defaultConfig ?? document?.default_config }
}

/**
 * Parses a configuration in YAML or JSON. An empty text is an empty layer. Rejects with an Error that names the source when the text is
 * neither.
 */
export async function textLayer(source: string, content: string): Promise<ConfigLayer> {
  if (content.trim() === '') return { source, document: undefined }
  if (content.length > 1024 * 1024) throw new Error(`${source}: larger than 1 MiB`)
  if (content.trimStart().startsWith('{'))
    try {
      return { source, document: JSON.parse(content) }
    } catch {
      // The text may be YAML in flow style, and the errors of the YAML parser are better.
    }
  // The YAML library is imported only when needed: loading it costs as much CPU as the rest of the preparation.
  const { readDocuments } = await import('../../../src/config/yaml-documents.ts')
  const [document = { value: undefined }, another] = readDocuments(content)
  if (another) throw new Error(`${source}: holds more than one document`)
  if ('error' in document) throw new Error(`${source}: ${document.error}`)
  return { source, document: document.value }
}

/** The interval between two checks for missing addresses in milliseconds, and the maximum number of checks. */
const addressPoll = { everyMs: 100, maxTimes: 1200 }

/**
 * Returns the addresses of all interfaces that are up, except loopback addresses, in the order of the system. Waits up to two minutes for
 * an interface that has no address yet.
 */
export async function interfaceAddresses(log: ScopedLogger, read: () => readonly string[] = ownAddresses): Promise<readonly string[]> {
  for (let times = 1; ; times++) {
    const addresses = read()
    if (!hasUnspecified(addresses) || times > addressPoll.maxTimes) return addresses
    if (times === 1) log.info('no network interface has an address yet: the agent waits for one')
    await pause(addressPoll.everyMs)
  }
}

function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((addresses = []) => addresses.flatMap(({ internal, address }) => (internal ? [] : [address])))
}
