/**
 * Keeps what is in the memory of the process (keys, tokens) out of files: core dumps, diagnostic reports, heap snapshots. Without the
 * system calls for it (`setrlimit`, `prctl`), which the runtime does not offer, by what the system offers beside them.
 */
import { readFileSync, writeFileSync } from 'node:fs'

/** Options of the runtime that let others read the memory of the process, and that cannot be undone once it runs. */
const revealing = /^--(inspect(?!-port)|heapsnapshot-near-heap-limit|heap-prof|prof\b)/

/**
 * Does it, for good. Resolves with what could not be done, a sentence each: the process runs all the same. On Linux a core dump holds
 * none of the process's memory (`core(5)`, `coredump_filter`) and the limit of its size is zero, where the program `prlimit` is there.
 */
export async function keepMemoryOutOfFiles(): Promise<string[]> {
  muteReports()
  const options = [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)]
  muteHeapSnapshots(options)
  const told = options
    .filter((option) => revealing.test(option))
    .map((option) => `${option}: whoever uses it can read keys and tokens of this process`)
  if (process.platform !== 'linux') return told
  const emptied = emptyCoreDumps()
  const failed = await noCoreDumps()
  if (failed === undefined) return told
  return [...told, `the limit of core dumps stays: ${failed}; ${emptied ? 'they hold none of the memory' : 'they hold keys and tokens'}`]
}

/** Diagnostic reports are written when the program asks for one, and none does. */
function muteReports(): void {
  const { report } = process
  if (!report) return
  report.reportOnSignal = false
  report.reportOnFatalError = false
  report.reportOnUncaughtException = false
}

/** A signal that was to write a heap snapshot (`--heapsnapshot-signal`) has no effect. */
function muteHeapSnapshots(options: readonly string[]): void {
  for (const [index, option] of options.entries()) {
    const [, name = options[index + 1]] = /^--heapsnapshot-signal(?:=(\S+))?$/.exec(option) ?? [undefined, '']
    if (!name) continue
    process.removeAllListeners(name)
    process.on(name, () => undefined)
  }
}

/** Whether core dumps of this process hold none of its memory from now on. */
function emptyCoreDumps(): boolean {
  const path = '/proc/self/coredump_filter'
  try {
    writeFileSync(path, '0')
    return Number.parseInt(readFileSync(path, 'utf8'), 16) === 0
  } catch {
    return false
  }
}

/** Sets the limit of the size of core dumps to zero, unless it is. Resolves with the reason when that fails. */
async function noCoreDumps(): Promise<string | undefined> {
  if (coreLimit() === '0') return undefined
  const { execFile } = await import('node:child_process')
  const failure = await new Promise<Error | null>((resolve) =>
    execFile('prlimit', ['--pid', String(process.pid), '--core=0:0'], { timeout: 5000 }, (error) => resolve(error)),
  )
  if (coreLimit() === '0') return undefined
  return (failure as NodeJS.ErrnoException | null)?.code === 'ENOENT'
    ? 'there is no program prlimit'
    : (failure?.message.trim() ?? 'prlimit had no effect')
}

/** The limit in force, in bytes or `unlimited`. */
function coreLimit(): string | undefined {
  return /^Max core file size\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
}
