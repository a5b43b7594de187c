/** The files of the example, with ports that are free. */
import { cpSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { readBoundedFile } from '../runtime/bounded-file.ts'

/** The ports of examples/two-workloads by the address that they are at. */
const exampleAddresses = {
  '127.0.0.1': {
    ...{ gateway: 8000, stockApplication: 9080, shopApplication: 9081 },
    ...{ pages: 8080, plain: 15010, secured: 15012, monitoring: 15014 },
    ...{ shopAdmin: 15000, shopStatus: 15020, shopReady: 15021, shopMetrics: 15090 },
    ...{ stockAdmin: 15100, stockStatus: 15120, stockReady: 15121, stockMetrics: 15190 },
    ...{ gatewayAdmin: 15200, gatewayStatus: 15220, gatewayReady: 15221, gatewayMetrics: 15290 },
  },
  '127.0.0.11': { services: 9090, shopInbound: 8444 },
  '127.0.0.12': { stockInbound: 8443 },
} as const

type Names<Table> = Table extends Record<string, infer Ports> ? (Ports extends unknown ? keyof Ports : never) : never

/** The ports of the mesh by what they are for. */
export type MeshPorts = Readonly<Record<Names<typeof exampleAddresses>, number>>

/** The first port that is tried in place of one that is taken. */
const firstOther = 20_000

/** The ports of a mesh, and what to tell about them. */
export interface ChosenPorts {
  readonly ports: MeshPorts
  /** Those of the example by what takes their place. */
  readonly replaced: ReadonlyMap<number, number>
  /** Those of the example that are taken. */
  readonly taken: readonly number[]
}

/**
 * Chooses free ports: those of the example and others where they are taken, or all from `first` on, if that is not 0. Rejects when an address
 * of the example is none of this machine.
 */
export async function choosePorts(first: number): Promise<ChosenPorts> {
  const replaced = new Map<number, number>()
  const ports: Record<string, number> = {}
  const taken: number[] = []
  let next = first || firstOther
  for (const [address, wanted] of Object.entries(exampleAddresses))
    for (const [name, port] of Object.entries(wanted)) {
      let chosen: number = first === 0 ? port : next++
      if (!(await isFree(address, chosen))) {
        if (first === 0) taken.push(port)
        do chosen = next++
        while (!(await isFree(address, chosen)))
      }
      ports[name] = chosen
      replaced.set(port, chosen)
    }
  return { ports: ports as MeshPorts, replaced, taken }
}

/** Returns the line about ports of the example that are taken. Those that people ask are first in the example. */
export function takenLine({ taken, replaced }: Omit<ChosenPorts, 'ports'>): string {
  const told = taken.slice(0, mostTold).map((port) => `${port} (${replaced.get(port)})`)
  const more = taken.length > mostTold ? ` and ${taken.length - mostTold} more` : ''
  return `Ports that are taken, and those used in their place: ${told.join(', ')}${more}; the addresses below, and in its files, are those that it has.`
}

/** Maximum number of ports that the line names. */
const mostTold = 3

function isFree(address: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', ({ code, message }: NodeJS.ErrnoException) => {
      if (code === 'EADDRINUSE') return resolve(false)
      if (code === 'EADDRNOTAVAIL')
        return reject(
          new Error(`${address} is no address of this machine; on macOS, "sudo ifconfig lo0 alias ${address}" adds it until the next start`),
        )
      reject(new Error(`no port of ${address} can be listened on: ${message}`))
    })
    probe.listen({ host: address, port, exclusive: true }, () => probe.close(() => resolve(true)))
  })
}

const example = 'examples/two-workloads'

/** Returns the folder of this package, of a clone or an installed one: the one above this module that has the example. */
export function packageFolder(): string {
  for (let folder = import.meta.dirname; ; folder = dirname(folder)) {
    if (existsSync(join(folder, example))) return folder
    if (folder === dirname(folder)) throw new Error(`this package is incomplete: it has no ${example}`)
  }
}

/** Makes the directory that the files of the mesh stay in, and returns its whole path. Throws an Error when there is something in it. */
export function newDirectory(given: string): string {
  const path = resolve(given)
  // One by one: Node tries for ever where a folder that is there refuses, as /proc does.
  const missing: string[] = []
  for (let folder = path; !existsSync(folder); folder = dirname(folder)) missing.unshift(folder)
  for (const folder of missing) mkdirSync(folder, { mode: 0o700 })
  if (readdirSync(path).length > 0) throw new Error(`${path} is not empty: --keep needs a new directory`)
  return path
}

/** The flags of discovery whose defaults are ports of the example. */
const { plain, secured, pages, monitoring } = exampleAddresses['127.0.0.1']
const flagsByPort = { grpcAddr: plain, secureGRPCAddr: secured, httpAddr: pages, monitoringAddr: monitoring }
const discoveryCommand = "pilot-discovery discovery --registries '' --configDir mesh"

/** Copies the example into a directory, with its ports replaced, in the command that starts discovery by hand too. */
export async function copyExample(directory: string, replaced: ReadonlyMap<number, number>): Promise<void> {
  const from = join(packageFolder(), example)
  // Without the state of commands that were run there.
  cpSync(from, directory, { recursive: true, filter: (path) => !/[\\/]var$/.test(path) })
  const flags = Object.entries(flagsByPort).flatMap(([flag, port]) =>
    (replaced.get(port) ?? port) === port ? [] : ` --${flag} :${replaced.get(port)}`,
  )
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const path = join(directory, name)
    if (!statSync(path).isFile()) continue
    const text = await readBoundedFile(path)
    writeFileSync(
      path,
      text
        .replace(/(?<![\d.])\d{4,5}(?![\d.])/g, (port) => String(replaced.get(Number(port)) ?? port))
        .replace(discoveryCommand, (command) => command + flags.join('')),
    )
  }
}
