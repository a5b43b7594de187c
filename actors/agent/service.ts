/**
 * The agent: starts and supervises its actors, starts the proxy when all of them listen, and exits with the proxy. Everything runs in one
 * thread.
 */
import { constants } from 'node:os'
import type { ProxyOptions } from '../../protocols/messages/agent-options.ts'
import { statusAsks } from '../../protocols/messages/status.ts'
import type { ExchangedToken } from '../../protocols/messages/sts.ts'
import { describeEnd, statusAfter } from '../../src/agent/proxy-end.ts'
import { buildInfo } from '../../src/cli/build-info.ts'
import { ExitError } from '../../src/cli/exit-status.ts'
import type { Log } from '../runtime/log.ts'
import type { Logger } from '../runtime/logger.ts'
import { keepMemoryOutOfFiles } from '../runtime/memory-files.ts'
import { MetricRegistry } from '../runtime/metrics.ts'
import { Supervisor } from '../runtime/supervisor.ts'
import { actorTable, type TableParts } from './actor-table.ts'
import { type PreparedProxy, prepareProxy } from './bootstrap/prepare-proxy.ts'
import type { WrittenBootstrap } from './bootstrap/write-bootstrap.ts'
import { proxyGuard } from './proxy-process/proxy-guard.ts'
import { ProxyProcess } from './proxy-process/proxy-process.ts'
import type { Shutdown } from './shutdown.ts'
import { agentMetrics } from './status/agent-metrics.ts'

/** The exit status of an agent that ends by an error: a start without a needed resource (a socket, the program of the proxy), or a bug. */
export const fatalStatus = 1
/** The timeout for draining the actors, in milliseconds. */
const drainMs = 1000

/** In a built package all modules that are loaded by name are in one folder. */
const isBuilt = import.meta.url.endsWith('.js')
const moduleOf = (path: string) => new URL(isBuilt ? `./${path.slice(path.lastIndexOf('/') + 1)}.js` : `./${path}.ts`, import.meta.url)

/**
 * Runs the agent until its proxy exits or a shutdown is requested. Resolves with the exit status of the process (docs/agent.md, P4).
 * Rejects with an Error that names an invalid setting, and with an {@link ExitError} when a socket or the proxy is unavailable. All actors
 * and the proxy have ended by then.
 */
export async function runUntilEnded(options: ProxyOptions, opened: Log, shutdown: Shutdown): Promise<number> {
  const log = opened.log('default')
  sayAtStart(options, log)
  const proxy = await Promise.race([prepareProxy(options, process.env, log), shutdown.requested.then(() => undefined)])
  if (!proxy) return endedAtStart(log)
  // Determined concurrently with the start of the actors.
  const guard = proxyGuard(log)
  let child: ProxyProcess | undefined
  const answers = { [statusAsks.quit]: (reason: string) => shutdown.request(reason), [statusAsks.proxy]: () => child?.pid }
  const supervisor = startActors({ proxy, warn: (message) => log.warn(message), module: moduleOf }, opened, answers)
  let bootstrap: WrittenBootstrap | undefined
  try {
    await Promise.race([allStarted(supervisor), shutdown.requested])
    bootstrap = await proxy.write()
    const before = await guard
    if (shutdown.isRequested) return endedAtStart(log)
    child = new ProxyProcess(bootstrap, before, log)
    // After the proxy's start, because the proxy would inherit the setting and may be configured to write core dumps.
    void keepMemoryOutOfFiles().then((failures) => {
      for (const failure of failures) log.warn(failure)
    })
    return await untilEnded(child, { proxy, supervisor, shutdown, log })
  } catch (error) {
    throw new ExitError((error as Error).message, fatalStatus)
  } finally {
    await bootstrap?.remove()
    await supervisor.drain([], drainMs)
  }
}

type DefaultLog = ReturnType<Logger>

function endedAtStart(log: DefaultLog): number {
  log.info('shutting down before the proxy was started')
  return 0
}

function sayAtStart({ flags, ignored }: ProxyOptions, log: DefaultLog): void {
  for (const flag of flags) log.info(`FLAG: ${flag}`)
  const { version, revision, status } = buildInfo()
  log.info(`Version ${version}-${revision}-${status}`)
  for (const one of ignored) log.warn(`${one} is not known and has no effect`)
}

/** Starts the actors of the table. `given`: functions for questions that actors ask. Throws an Error that names an invalid setting. */
function startActors(parts: TableParts, { levels, write, log }: Log, given: Readonly<Record<string, unknown>>): Supervisor {
  const wiring = actorTable(parts)
  const answers: Record<string, unknown> = { ...given }
  const supervisor = new Supervisor({
    mode: 'in-thread',
    log,
    logOptions: levels,
    logged: (records) => {
      for (const record of records) write(record)
    },
    answers,
  })
  Object.assign(answers, {
    [statusAsks.metrics]: agentMetrics(supervisor, new MetricRegistry(), buildInfo().version),
    exchange: (token: string) => supervisor.ask<ExchangedToken>('sts', 'exchange', token),
  })
  for (const spec of wiring.actors) supervisor.start(spec)
  for (const [one, other] of wiring.links) supervisor.connect(one, other)
  return supervisor
}

/** Resolves when all actors have started. Rejects with the error of the first actor that failed. */
async function allStarted(supervisor: Supervisor): Promise<void> {
  for (;;) {
    const states = supervisor.states()
    const failed = states.find(({ lastError }) => lastError)
    if (failed) throw new Error(`${failed.name}: ${failed.lastError?.message}`)
    if (states.every(({ state }) => state === 'running')) return
    await supervisor.changed()
  }
}

interface Running {
  readonly proxy: PreparedProxy
  readonly supervisor: Supervisor
  readonly shutdown: Shutdown
  readonly log: DefaultLog
}

/** Resolves with the exit status of the process when the proxy has exited: by itself, or after a drain because a shutdown was requested. */
async function untilEnded(child: ProxyProcess, { proxy, supervisor, shutdown, log }: Running): Promise<number> {
  const first = await Promise.race([child.ended, shutdown.requested])
  if (typeof first !== 'string') {
    const status = statusAfter(first, constants.signals)
    log[status === 0 ? 'info' : 'error'](`${describeEnd(first)}; the agent ends with status ${status}`)
    return status
  }
  log.info(`shutting down: ${first}`)
  // The status port closes first, so that readiness probes fail at once. Everything else is served until the proxy has exited.
  for (const { name } of supervisor.states())
    if (name === 'status') await supervisor.ask(name, 'stopListening').catch((error: Error) => log.warn(`the status server: ${error.message}`))
  const { config, node } = proxy
  const drain = { adminPort: config.proxyAdminPort, inboundOnly: node.role === 'sidecar', durationMs: config.terminationDrainDuration }
  await child.drain(drain, shutdown.immediate)
  log.info(describeEnd(await child.ended))
  return 0
}
