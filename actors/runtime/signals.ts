/** What the signals of the operating system ask of a service, whichever launchers stand between it and the user. */
import { closeSync, openSync, readFileSync } from 'node:fs'
import { isatty } from 'node:tty'
import { monotonicMs } from './clock.ts'
import { SignalCopies, type Way } from './signal-copies.ts'
import { every } from './timers.ts'

/** What a service does when it is asked. */
export interface SignalActions {
  /** End in order. Called once. */
  stop(reason: string): void
  /** End without further waiting: a second SIGINT or SIGTERM came. Where this is not there, a second SIGINT ends the process at once, by that signal. */
  hurry?(reason: string): void
  /** Read configuration again. */
  reload(): void
  /** A signal that has no effect, for the log. */
  ignored(reason: string): void
}

type Ending = 'SIGINT' | 'SIGTERM' | 'SIGHUP'
const passedOn: readonly Ending[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/** How long after a signal its copy may come from npm, which passes on what the terminal has sent to all, in milliseconds. */
const npmCopyMs = 500
/** How often is looked whether the launchers still live, in milliseconds. */
const launcherLookMs = 500

/**
 * Listens to signals from now on. SIGINT and SIGTERM stop in order; after that they hurry. SIGHUP reloads, and stops when it means that the terminal is gone. SIGUSR1 does nothing: the runtime would open a
 * debugger. When the launcher dies (the wrapper in `bin/runtime.js`, npm, or npm's shell) the service stops.
 */
export function listenToSignals(actions: SignalActions): void {
  let stopping = false
  const stop = (reason: string) => {
    if (stopping) return
    stopping = true
    actions.stop(reason)
  }
  const terminal = [0, 1, 2].some((descriptor) => isatty(descriptor)) && hasTerminal()
  const obey = (signal: Ending) => {
    if (signal === 'SIGHUP' && !(terminal && !hasTerminal())) return stopping ? undefined : actions.reload()
    if (signal !== 'SIGHUP' && stopping && actions.hurry) return actions.hurry(signal)
    if (signal === 'SIGINT' && stopping) return dieOf('SIGINT')
    if (stopping) return actions.ignored(`${signal} has no effect: the service is ending already`)
    stop(signal === 'SIGHUP' ? 'the terminal is gone' : signal)
  }
  const obeyOnce = npmScript() === undefined ? obey : withoutCopies(obey)
  const copies = new SignalCopies(monotonicMs)
  const take = (signal: Ending, way: Way) => {
    if (!copies.isCopy(signal, way)) obeyOnce(signal)
  }
  for (const signal of passedOn) process.on(signal, () => take(signal, 'direct'))
  process.on('SIGUSR1', () => actions.ignored('SIGUSR1 has no effect'))
  listenToWrapper(take, stop)
  watchLaunchers(() => stop('what started the service has ended'))
}

/** Ends the process by a signal, as if nobody listened to it, so that the parent sees the true cause. */
function dieOf(signal: Ending): void {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

/** Takes equal signals within a moment for one. */
function withoutCopies(obey: (signal: Ending) => void): (signal: Ending) => void {
  const last = new Map<Ending, number>()
  return (signal) => {
    const now = monotonicMs()
    if (now - (last.get(signal) ?? Number.NEGATIVE_INFINITY) < npmCopyMs) return
    last.set(signal, now)
    obey(signal)
  }
}

/** The wrapper of `bin/runtime.js` passes signals on as messages once it is told that they are listened to. */
function listenToWrapper(take: (signal: Ending, way: Way) => void, stop: (reason: string) => void): void {
  if (process.env.MESH_WRAPPER !== String(process.ppid) || !process.send) return
  const gone = () => stop('the wrapper that started the service has ended')
  process.on('message', (message: { signal?: Ending }) => {
    if (message.signal && passedOn.includes(message.signal)) take(message.signal, 'passed')
  })
  process.on('disconnect', gone)
  if (process.connected) process.send({ listens: true })
  else gone()
}

/** The npm script that runs this command, if one does. A script of another program that happens to start it is not meant. */
function npmScript(): string | undefined {
  const script = process.env.npm_lifecycle_script ?? ''
  return /\bpilot-(discovery|agent)\b/.test(script) ? script : undefined
}

/** Under npm: hears when npm, or a process between it and this one, has ended. npm passes no signal on when it is killed. */
function watchLaunchers(gone: () => void): void {
  const script = npmScript()
  if (script === undefined) return
  const chain = launchers(script)
  const look = every(launcherLookMs, () => {
    if (chain.every(([pid, parent]) => parentOf(pid) === parent)) return
    look.cancel()
    gone()
  })
  look.unref()
}

/** Processes from this one up to npm, each with its parent. Where there is no /proc, this one alone. */
function launchers(script: string): [pid: number, parent: number | undefined][] {
  const chain: [number, number | undefined][] = []
  for (let pid: number | undefined = process.pid; pid !== undefined && pid > 1; ) {
    const parent = parentOf(pid)
    chain.push([pid, parent])
    if (parent === undefined || !isPartOf(parent, script)) break
    pid = parent
  }
  return chain
}

/** Whether a process was started by the same npm script. */
function isPartOf(pid: number, script: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`npm_lifecycle_script=${script}\0`)
  } catch {
    return false
  }
}

function parentOf(pid: number): number | undefined {
  if (pid === process.pid) return process.ppid
  try {
    return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return undefined
  }
}

/** Whether the process has a terminal that signals come from. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
