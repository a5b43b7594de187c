/** The agent: starts and supervises its actors, starts the proxy when all of them listen, and ends with it. Everything runs in one thread. */
import { constants } from 'node:os'
import type { ProxyOptions } from '../../protocols/messages/agent-options.ts'
import type { ExchangedToken } from '../../protocols/messages/sts.ts'
import { statusAfter, toldEnd } from '../../src/agent/proxy-end.ts'
import { buildInfo } from '../../src/cli/build-info.ts'
import { ExitError } from '../../src/cli/exit-status.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { type LogWriter, openLog } from '../runtime/log-writer.ts'
import { createLogger, type Logger } from '../runtime/logger.ts'
import { Registry } from '../runtime/metrics.ts'
import { restartPolicy } from '../runtime/restarts.ts'
import { Supervisor } from '../runtime/supervisor.ts'
import { actorTable } from './actor-table.ts'
import { type PreparedProxy, prepareProxy } from './bootstrap/prepare-proxy.ts'
import type { WrittenBootstrap } from './bootstrap/write-bootstrap.ts'
import { type Drain, ProxyProcess } from './proxy-process/proxy-process.ts'
import { agentMetrics } from './status/agent-metrics.ts'

/** A running agent. */
export interface AgentService {
  readonly supervisor: Supervisor
  /** Drains the proxy and ends everything; called again, it does not wait any longer for connections to end. */
  stop(reason: string): void
  /** Resolves when the proxy and everything else has ended, with the status of the process (docs/agent.md, P4). */
  readonly ended: Promise<number>
}

/** The log of the agent, opened before anything else is done. */
export interface AgentLog {
  readonly options: LogOptions
  readonly writer: LogWriter
  readonly log: Logger
}

/** The status of a start that failed because something is not to be had: a socket, the program of the proxy. */
const fatalStatus = 1
/** Longest time for an actor to end in order, in milliseconds. */
const drainMs = 1000

/** As built, all modules that are loaded by name are in one folder. */
const isBuilt = import.meta.url.endsWith('.js')
const moduleOf = (path: string) => new URL(isBuilt ? `./${path.slice(path.lastIndexOf('/') + 1)}.js` : `./${path}.ts`, import.meta.url)

/** Opens the log. */
export function openAgentLog(options: LogOptions): AgentLog {
  const writer = openLog(options)
  return { options, writer, log: createLogger(options, writer.write) }
}

/**
 * Starts the agent. Rejects with an Error that says what is wrong with the settings, and with an {@link ExitError} when a socket or the proxy is not to be
 * had; then nothing is left behind.
 */
export async function startAgent(options: ProxyOptions, { options: logOptions, writer, log: logger }: AgentLog): Promise<AgentService> {
  const log = logger('default')
  for (const flag of options.flags) log.info(`FLAG: ${flag}`)
  const { version, revision, status } = buildInfo()
  log.info(`Version ${version}-${revision}-${status}`)
  for (const ignored of options.ignored) log.warn(`${ignored} is not known and has no effect`)

  const proxy = await prepareProxy(options, process.env, log)
  const wiring = actorTable({ proxy, warn: (message) => log.warn(message), module: moduleOf })
  const ending = Promise.withResolvers<string>()
  const supervisor = new Supervisor({
    mode: 'in-thread',
    log: logger,
    logOptions,
    logged: (records) => {
      for (const record of records) writer.write(record)
    },
    answers: {
      quit: (reason: string) => ending.resolve(reason),
      metrics: () => metrics(),
      exchange: (token: string) => supervisor.ask<ExchangedToken>('sts', 'exchange', token),
    },
    policy: restartPolicy,
  })
  const metrics = agentMetrics(supervisor, new Registry(), version)
  for (const spec of wiring.actors) supervisor.start(spec)
  for (const [one, other] of wiring.links) supervisor.connect(one, other)
  let child: ProxyProcess
  let bootstrap: WrittenBootstrap | undefined
  try {
    await allStarted(supervisor)
    bootstrap = await proxy.write()
    child = new ProxyProcess(bootstrap, log)
  } catch (error) {
    await bootstrap?.remove()
    await supervisor.drain([], drainMs)
    throw new ExitError((error as Error).message, fatalStatus)
  }
  return {
    supervisor,
    stop(reason) {
      ending.resolve(reason)
      child.hurry()
    },
    ended: untilEnded(supervisor, child, { drain: drainOf(proxy), bootstrap, ending: ending.promise, log }),
  }
}

/** Resolves when all actors run for the first time. Rejects with what ended the first one that failed. */
async function allStarted(supervisor: Supervisor): Promise<void> {
  for (;;) {
    const states = supervisor.states()
    const failed = states.find(({ lastError }) => lastError)
    if (failed) throw new Error(`${failed.name}: ${failed.lastError?.message}`)
    if (states.every(({ state }) => state === 'running')) return
    await supervisor.changed()
  }
}

const drainOf = ({ config, node }: PreparedProxy): Drain => ({
  adminPort: config.proxyAdminPort,
  inboundOnly: node.role === 'sidecar',
  durationMs: config.terminationDrainDuration,
})

type Ending = { readonly drain: Drain; readonly bootstrap: WrittenBootstrap; readonly ending: Promise<string>; readonly log: ReturnType<Logger> }

/** Resolves with the status of the process when the proxy was drained, because that was asked for, or has ended by itself. */
async function untilEnded(supervisor: Supervisor, child: ProxyProcess, { drain, bootstrap, ending, log }: Ending): Promise<number> {
  const first = await Promise.race([child.ended, ending])
  let status = 0
  if (typeof first === 'string') {
    log.info(`shutting down: ${first}`)
    await supervisor.ask('status', 'stopListening').catch(() => undefined)
    await child.drain(drain)
    log.info(toldEnd(await child.ended))
  } else {
    status = statusAfter(first, constants.signals)
    log[status === 0 ? 'info' : 'error'](`${toldEnd(first)}; the agent ends with status ${status}`)
  }
  await bootstrap.remove()
  await supervisor.drain([], drainMs)
  return status
}
