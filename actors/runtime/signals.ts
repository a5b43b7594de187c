/** Maps operating system signals to actions of the service, whether or not launchers (npm, the wrapper) stand between it and the user. */
import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'
import { monotonicMs } from './clock.ts'
import { readKernelFile } from './kernel-file.ts'
import { SignalCopies, type Way } from './signal-copies.ts'
import { every } from './timers.ts'

/** The actions of a service on signals. */
export interface SignalActions {
  /** Stops in order. Called once. */
  stop(reason: string): void
  /**
   * Stops without further waiting, at a second SIGINT or SIGTERM. Where this is missing, a second SIGINT ends the process at once, by
   * that signal.
   */
  hurry?(reason: string): void
  /** Reads the configuration again. */
  reload(): void
  /** Called for signals without effect, for the log. */
  ignored(reason: string): void
}

type Ending = 'SIGINT' | 'SIGTERM' | 'SIGHUP'
const passedOn: readonly Ending[] = ['SIGINT', 'SIGTERM', 'SIGHUP']

/**
 * Maximum delay of a duplicate from npm, which forwards a signal that the terminal has already sent to the whole group, in milliseconds.
 */
const npmCopyMs = 500
/** Interval at which the launchers are checked, in milliseconds. */
const launcherLookMs = 500

/**
 * Starts listening to signals. The first SIGINT or SIGTERM stops in order, the second hurries. SIGHUP reloads; if the terminal is gone,
 * it stops. SIGUSR1 is ignored, because by default Node would open a debugger. The service also stops when its launcher dies: the wrapper
 * in `bin/runtime.js`, npm, or npm's shell.
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
    if (stopping) return actions.ignored(`${signal} is ignored: the shutdown has already begun`)
    stop(signal === 'SIGHUP' ? 'the terminal was closed' : signal)
  }
  const obeyOnce = npmScript() === undefined ? obey : withoutCopies(obey)
  const copies = new SignalCopies(monotonicMs)
  const take = (signal: Ending, way: Way) => {
    if (!copies.isCopy(signal, way)) obeyOnce(signal)
  }
  for (const signal of passedOn) process.on(signal, () => take(signal, 'direct'))
  process.on('SIGUSR1', () => actions.ignored('SIGUSR1 is ignored'))
  listenToWrapper(take, stop)
  watchLaunchers(() => stop('the process that started this one has ended'))
}

/** Ends the process by a signal with its default action, so that the parent sees the true cause. */
function dieOf(signal: Ending): void {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
}

/** Drops repetitions of a signal within `npmCopyMs`. */
function withoutCopies(obey: (signal: Ending) => void): (signal: Ending) => void {
  const last = new Map<Ending, number>()
  return (signal) => {
    const now = monotonicMs()
    if (now - (last.get(signal) ?? Number.NEGATIVE_INFINITY) < npmCopyMs) return
    last.set(signal, now)
    obey(signal)
  }
}

/** Receives signals that the wrapper of `bin/runtime.js` forwards as messages. First sends the wrapper a message that this process listens. */
function listenToWrapper(take: (signal: Ending, way: Way) => void, stop: (reason: string) => void): void {
  if (process.env.MESH_WRAPPER !== String(process.ppid) || !process.send) return
  const gone = () => stop('the wrapper process that started this one has ended')
  process.on('message', (message: { signal?: Ending }) => {
    if (message.signal && passedOn.includes(message.signal)) take(message.signal, 'passed')
  })
  process.on('disconnect', gone)
  if (process.connected) process.send({ listens: true })
  else gone()
}

/** The npm script that runs this command, if any. Scripts of other programs that start this command are excluded. */
function npmScript(): string | undefined {
  const script = process.env.npm_lifecycle_script ?? ''
  return /\bpilot-(discovery|agent)\b/.test(script) ? script : undefined
}

/** Under npm: calls `gone` when npm or a process between npm and this one has ended, because a killed npm forwards no signal. */
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

/** The processes from this one up to npm, each with its parent. Without /proc, this process only. */
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

/** Whether a process belongs to the same npm script. */
function isPartOf(pid: number, script: string): boolean {
  try {
    return readKernelFile(`/proc/${pid}/environ`).includes(`npm_lifecycle_script=${script}\0`)
  } catch {
    return false
  }
}

function parentOf(pid: number): number | undefined {
  if (pid === process.pid) return process.ppid
  try {
    return Number(/^PPid:\s*(\d+)$/m.exec(readKernelFile(`/proc/${pid}/status`))?.[1])
  } catch {
    return undefined
  }
}

/** Whether the process has a controlling terminal. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
