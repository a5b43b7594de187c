/** Runs one actor behind a control port: on a worker thread (thread.ts), or in the supervisor's own thread. */
import { threadCpuUsage } from 'node:process'
import { getHeapStatistics } from 'node:v8'
import { isMainThread, type MessagePort } from 'node:worker_threads'
import type { ActorStats, Control, Keyed, Report } from '../../protocols/messages/envelope.ts'
import type { WireError } from '../../protocols/messages/errors.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import type { ActorMetrics } from '../../protocols/messages/metrics.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import type { ActorDefinition, Behaviour } from './actor.ts'
import { type Asks, askWithin, serveAsks, useAsks } from './ask.ts'
import { monotonicMs } from './clock.ts'
import { Link } from './link.ts'
import { createLogger } from './logger.ts'
import { Mailbox } from './mailbox.ts'
import { Registry } from './metrics.ts'

/** What a host needs to start its actor. */
export interface HostOptions {
  readonly name: string
  readonly config: unknown
  readonly log: LogOptions
}

/** Longest time the mailbox is worked off before other events get their turn, in milliseconds. */
const turnMs = 8

/** Starts the actor and works off its mailbox until the control port closes. Errors are reported, then the host stops. */
export function hostActor(definition: ActorDefinition<unknown, unknown>, port: MessagePort, options: HostOptions): void {
  const report = (message: Report) => port.postMessage(message)
  const links = new Set<Link>()
  const mailbox = new Mailbox()
  const metrics = new Registry()
  const incarnation = `${process.pid}-${monotonicMs()}`
  let behaviour: Behaviour<unknown> | undefined
  let supervisor: Asks | undefined
  let processed = 0
  let running = false
  let stopped = false
  let lastUtilisation = performance.eventLoopUtilization()

  const logBatch: LogRecord[] = []
  const log = createLogger(options.log, (record) => {
    logBatch.push(record)
    if (logBatch.length === 1) setImmediate(() => report({ type: 'Logged', records: logBatch.splice(0) }))
  })

  const fail = (error: unknown) => {
    if (stopped) return
    stopped = true
    if (logBatch.length > 0) report({ type: 'Logged', records: logBatch.splice(0) })
    report({ type: 'Failed', error: wireError(error) })
    for (const link of links) link.close()
    port.close()
  }

  const work = () => {
    running = false
    const until = performance.now() + turnMs
    try {
      for (;;) {
        const entry = mailbox.take()
        if (!entry) return
        const { message, from } = entry[1] as { message: unknown; from: Link }
        behaviour?.receive(message, from)
        processed++
        from.processed(1)
        if (performance.now() > until) return wake()
      }
    } catch (error) {
      fail(error)
    }
  }
  const wake = () => {
    if (running || stopped) return
    running = true
    setImmediate(work)
  }
  const deliver = (entries: readonly Keyed[], from: Link) => {
    const before = mailbox.coalesced
    for (const [key, message] of entries) {
      mailbox.put([key === '' ? '' : `${from.name}\u0001${key}`, { message, from }])
    }
    const replaced = mailbox.coalesced - before
    if (replaced > 0) from.processed(replaced)
    wake()
  }
  const stats = (): ActorStats => {
    const utilisation = performance.eventLoopUtilization(lastUtilisation)
    lastUtilisation = performance.eventLoopUtilization()
    const cpu = threadCpuUsage()
    return {
      name: options.name,
      kind: definition.kind,
      depth: mailbox.size,
      processed,
      coalesced: mailbox.coalesced,
      utilisation: utilisation.utilization,
      heapBytes: getHeapStatistics().used_heap_size,
      cpuSeconds: isMainThread ? 0 : (cpu.user + cpu.system) / 1e6,
    }
  }

  const pending: Control[] = []
  const obey = (control: Control) => {
    const actor = behaviour
    if (!actor) {
      pending.push(control)
      return
    }
    switch (control.type) {
      case 'Link': {
        const link = new Link(control.peer, control.port, deliver, (closed) => {
          links.delete(closed)
          if (!stopped) actor.unlinked?.(closed)
        })
        links.add(link)
        actor.linked?.(link)
        break
      }
      case 'ServeAsks':
        serveAsks(control.port, { ...actor.asks, stats, metrics: (): ActorMetrics => ({ stats: stats(), incarnation, families: metrics.collect() }) })
        break
      case 'UseAsks':
        supervisor = useAsks(control.port)
        break
      case 'Drain':
        Promise.resolve(actor.drain?.()).then(() => {
          stopped = true
          if (logBatch.length > 0) report({ type: 'Logged', records: logBatch.splice(0) })
          report({ type: 'Drained' })
          for (const link of links) link.close()
          port.close()
        }, fail)
        break
    }
  }
  port.on('message', (control: Control) => {
    try {
      obey(control)
    } catch (error) {
      fail(error)
    }
  })

  // A supervisor that lets go of the actor ends it. A thread dies with everything in it; here it has to let go itself.
  port.on('close', () => {
    if (stopped) return
    stopped = true
    for (const link of links) link.close()
    void behaviour?.drain?.()
  })

  Promise.resolve()
    .then(() =>
      definition.start({
        name: options.name,
        config: options.config,
        log,
        metrics,
        ask: (question, ...details) => askWithin(supervisor, question, details),
      }),
    )
    .then((started) => {
      behaviour = started
      report({ type: 'Started' })
      for (const control of pending.splice(0)) obey(control)
    })
    .catch(fail)
}

/** An error as plain data. */
export function wireError(error: unknown): WireError {
  if (!(error instanceof Error)) return { name: 'Error', message: String(error), stack: '' }
  return {
    name: error.name,
    message: error.message,
    stack: error.stack ?? '',
    ...(error.cause === undefined ? {} : { cause: wireError(error.cause) }),
  }
}
