/** The quickstart: a mesh on this machine, from nothing to the last process that ends. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { print } from '../../src/cli/print.ts'
import type { QuickstartOrder } from '../../src/cli/quickstart-order.ts'
import { oneLine, printable } from '../../src/logging/layout.ts'
import { Shutdown } from '../agent/shutdown.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { listenToSignals } from '../runtime/signals.ts'
import { demonstrate, untilItAnswers } from './demonstration.ts'
import { envoyProgram } from './envoy-program.ts'
import { choosePorts, copyExample, type MeshPorts, newDirectory, takenLine } from './example-files.ts'
import { LocalMesh } from './local-mesh.ts'
import { claimStart } from './start-claim.ts'

/** Tells the user something, with whatever names paths have. */
const say = (text: string): void => print(printable(text))

/**
 * Runs the mesh until a signal, or a part that ends by itself, ends all of it. Rejects with an Error that says what to do when it cannot
 * start, and with the last lines of the part that has failed. Nothing is left then but what --keep asks for, and an Envoy that was fetched.
 */
export async function runQuickstart(order: QuickstartOrder): Promise<void> {
  const shutdown = new Shutdown()
  const stopped = new AbortController()
  void shutdown.requested.then(() => stopped.abort())
  listenToSignals({ stop: (reason) => shutdown.request(reason), reload: () => undefined, ignored: () => undefined })
  // Nobody is left to read what it says.
  process.stdout.on('error', () => shutdown.request('nobody reads what is printed'))
  const directory = order.keep === '' ? mkdtempSync(join(tmpdir(), 'mesh-quickstart-')) : newDirectory(order.keep)
  try {
    await runIn(directory, order, shutdown, stopped.signal)
  } catch (error) {
    if (!shutdown.isRequested) throw error
  } finally {
    if (order.keep === '') rmSync(directory, { recursive: true, force: true })
    else say(`The files are in ${oneLine(directory)}; its README.md says how to start it by hand.`)
  }
  process.exit(0)
}

async function runIn(directory: string, { firstPort, mayFetch }: QuickstartOrder, shutdown: Shutdown, signal: AbortSignal): Promise<void> {
  const startedAt = monotonicMs()
  const envoy = await envoyProgram({ env: process.env, mayFetch, signal, say })
  // Who names the first port says that those from there on are free.
  const started = firstPort === 0 ? await claimStart(signal, () => say(waiting)) : () => undefined
  const { ports, replaced, taken } = await choosePorts(firstPort)
  if (taken.length > 0) say(takenLine({ taken, replaced }))
  await copyExample(directory, replaced)
  say(`Starting a control plane, the workloads shop and stock, and a gateway, with ${oneLine(envoy)}, in ${oneLine(directory)}`)
  const mesh = new LocalMesh({ directory, ports, envoy })
  const show = async () => {
    await mesh.start(signal)
    await untilItAnswers(ports, signal)
    started()
    if (!signal.aborted)
      say(`${welcome(oneLine(directory), ports, monotonicMs() - startedAt)}\n\n${await demonstrate(ports, directory)}\n\n${farewell}`)
    await shutdown.requested
  }
  try {
    await Promise.race([mesh.failed, show(), shutdown.requested])
    say('Ending all of it.')
  } finally {
    started()
    await mesh.end()
  }
}

const waiting = 'Another mesh is starting on this machine; this one waits until it has its ports.'

const welcome = (directory: string, ports: MeshPorts, ms: number) => `The mesh is up after ${Math.ceil(ms / 1000)} s:

  gateway              http://127.0.0.1:${ports.gateway}/
  control plane        http://127.0.0.1:${ports.pages}/debug, XDS at 127.0.0.1:${ports.secured} (TLS) and 127.0.0.1:${ports.plain}
  sidecar of shop      127.0.0.11:${ports.shopInbound}, its Envoy's pages at http://127.0.0.1:${ports.shopAdmin}/
  sidecar of stock     127.0.0.12:${ports.stockInbound}, its Envoy's pages at http://127.0.0.1:${ports.stockAdmin}/
  configuration        ${join(directory, 'mesh')}; changes of its files are in use at once
  logs                 ${join(directory, 'log')}; discovery.log says what each change did, and which mistakes it has`

const farewell = `Permit it: add cluster.local/ns/demo/sa/gateway to the principals in mesh/stock.yaml, and ask again.
Ctrl-C ends all of it.`
