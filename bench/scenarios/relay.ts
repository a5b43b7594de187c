/**
 * Measures the agent's relay: a gigabyte of configuration relayed to one proxy, and the memory used when the proxy reads nothing. The bare
 * server sends the same bytes to the proxy directly for comparison.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { methods } from '../../actors/agent/xds-relay/proxy-server.ts'
import type { XdsRelayConfig } from '../../protocols/messages/xds-relay.ts'
import { textField } from '../../src/xds/slab/wire.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import type { BareCommand } from '../bare.ts'
import { once } from '../load.ts'
import { freePort } from '../ports.ts'
import { type Measure, progress } from '../report.ts'
import { processUsage } from '../server.ts'

/** The size of a response in bytes, and the number of responses. */
const messageBytes = 10_000_000
const messages = 100
/** The delay before a process's memory is read, in milliseconds. */
const settleMs = 2000
/** The time after which an idle process has collected its garbage, in milliseconds. */
const restMs = 25_000

/** Measures the relay in plaintext and over TLS. */
export async function relay(tls: { readonly cert: string; readonly key: string }): Promise<Measure[]> {
  return [await measured('plain text', undefined), await measured('TLS to discovery', tls)]
}

async function measured(variant: string, files: { readonly cert: string; readonly key: string } | undefined): Promise<Measure> {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-bench-relay-'))
  const server = await bareServer(files)
  const direct = await passed(server, () => connectTo(server.port, files))
  const agent = fork(script('relay-process.ts'), { stdio: 'inherit' })
  try {
    const socket = join(dir, 'run/XDS')
    agent.send(relayConfig(socket, server.port, files))
    await once(agent, 'listening')
    const rest = memoryOf(agent)
    const through = await passed(server, () => connect('http://agent', { createConnection: () => connectSocket(socket) }), agent)
    await pause(restMs)
    const rested = memoryOf(agent)
    const stuck = await stuckMemory(server, socket, agent)
    const notes = `private memory: ${mib(rest)} MiB at rest, ${mib(through.memory)} when all had passed, ${mib(rested)} after ten seconds at rest, ${mib(stuck)} with a proxy that reads nothing`
    progress(`relay, ${variant}: ${through.cpu.toFixed(2)} CPU s, the bare server ${direct.cpu.toFixed(2)}; ${notes}`)
    return {
      scenario: 'relay',
      variant,
      last: through.ms,
      cpu: through.cpu,
      mib: (messageBytes * messages) / 2 ** 20,
      rss: processUsage(agent.pid as number).rss,
      limit: { last: direct.ms, cpu: direct.cpu, rss: processUsage(server.child.pid as number).rss },
      threads: {},
      notes,
    }
  } finally {
    agent.kill()
    server.child.kill()
    rmSync(dir, { recursive: true, force: true })
  }
}

const script = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url))
const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(0)

interface Sender {
  readonly child: ChildProcess
  readonly port: number
}

async function bareServer(tls: { readonly cert: string; readonly key: string } | undefined): Promise<Sender> {
  const child = fork(script('bare.ts'), { stdio: 'inherit' })
  const port = await freePort()
  const text = tls && { cert: readFileSync(tls.cert, 'utf8'), key: readFileSync(tls.key, 'utf8'), ca: undefined }
  child.send({ type: 'start', port, threads: 1, sizes: { [clusterType]: 1000 }, tls: text } satisfies BareCommand)
  await once(child, 'listening')
  return { child, port }
}

function relayConfig(socket: string, port: number, tls: { readonly cert: string } | undefined): XdsRelayConfig {
  return {
    socket,
    allowVolumes: false,
    discovery: {
      address: { host: '127.0.0.1', port, isPlain: tls === undefined, serverName: 'bench' },
      credentials: { roots: { files: tls && [tls.cert], isPinned: true, learned: undefined }, tokenFile: undefined, pair: undefined },
    },
    headers: {},
    exchangesToken: false,
    keeps: undefined,
    asksNameTable: false,
    asksTrust: false,
  }
}

const connectTo = (port: number, tls: object | undefined): ClientHttp2Session =>
  tls ? connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false }) : connect(`http://127.0.0.1:${port}`)

function subscribe(session: ClientHttp2Session): ClientHttp2Stream {
  session.on('error', () => undefined)
  const path = `/envoy.service.discovery.v3.AggregatedDiscoveryService/${methods.sotw}`
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' })
  stream.on('error', () => undefined)
  stream.write(messageFrame(textField(4, clusterType)))
  return stream
}

interface Passed {
  readonly ms: number
  readonly cpu: number
  readonly memory: number
}

/** Sends all responses to a proxy that reads them. Returns the resource usage of `spender`, which is the sender by default. */
async function passed(server: Sender, open: () => ClientHttp2Session, spender = server.child): Promise<Passed> {
  const session = open()
  const stream = subscribe(session)
  let came = 0
  stream.on('data', (bytes: Buffer) => (came += bytes.length))
  await reached(() => came > 0)
  const before = processUsage(spender.pid as number).cpu
  const began = performance.now()
  came = 0
  for (let sent = 0; sent < messages; sent++) {
    server.child.send({ type: 'push', marker: String(sent), size: messageBytes } satisfies BareCommand)
    await reached(() => came > messageBytes * sent * 0.9)
  }
  await reached(() => came >= messageBytes * messages * 0.999)
  const ms = performance.now() - began
  const cpu = processUsage(spender.pid as number).cpu - before
  session.destroy()
  return { ms, cpu, memory: memoryOf(spender) }
}

/** Returns the memory of the agent's process while a proxy reads nothing of 100 MB. */
async function stuckMemory(server: Sender, socket: string, agent: ChildProcess): Promise<number> {
  const session = connect('http://agent', { createConnection: () => connectSocket(socket) })
  subscribe(session)
  await pause(settleMs)
  for (let sent = 0; sent < 10; sent++) server.child.send({ type: 'push', marker: String(sent), size: messageBytes } satisfies BareCommand)
  await pause(settleMs)
  const held = memoryOf(agent)
  session.destroy()
  return held
}

/** Returns the private memory of a process in bytes. */
function memoryOf({ pid }: ChildProcess): number {
  return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
}

async function reached(condition: () => boolean): Promise<void> {
  while (!condition()) await pause(2)
}
