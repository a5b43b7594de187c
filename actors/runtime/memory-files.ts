/**
 * Keeps the memory of the process (keys, tokens) out of files: core dumps, diagnostic reports, heap snapshots. Node offers no access to
 * the system calls for this (`setrlimit`, `prctl`), so other system interfaces are used.
 */
import { writeFileSync } from 'node:fs'
import { readKernelFile } from './kernel-file.ts'

/** Options of Node that expose the memory of the process and cannot be undone at run time. */
const revealing = /^--(inspect(?!-port)|heapsnapshot-near-heap-limit|heap-prof|prof\b)/

/**
 * Disables these files for the life of the process. Resolves to one sentence for each protection that failed; the process runs in any
 * case. On Linux, core dumps contain no memory of the process (`core(5)`, `coredump_filter`), and their size limit is set to zero where
 * the program `prlimit` is installed.
 */
export async function keepMemoryOutOfFiles(): Promise<string[]> {
  muteReports()
  const options = [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(/\s+/)]
  muteHeapSnapshots(options)
  const failures = options
    .filter((option) => revealing.test(option))
    .map((option) => `Node option ${option} is set: keys and tokens of this process can be read through it`)
  if (process.platform !== 'linux') return failures
  const emptied = emptyCoreDumps()
  const failed = await noCoreDumps()
  if (failed === undefined) return failures
  return [
    ...failures,
    `core dumps could not be disabled: ${failed}; ${emptied ? 'they contain no memory of the process' : 'they contain keys and tokens'}`,
  ]
}

/** Disables automatic diagnostic reports. The program itself requests none. */
function muteReports(): void {
  const { report } = process
  if (!report) return
  report.reportOnSignal = false
  report.reportOnFatalError = false
  report.reportOnUncaughtException = false
}

/** Disables the signal that writes a heap snapshot (`--heapsnapshot-signal`). */
function muteHeapSnapshots(options: readonly string[]): void {
  for (const [index, option] of options.entries()) {
    const [, name = options[index + 1]] = /^--heapsnapshot-signal(?:=(\S+))?$/.exec(option) ?? [undefined, '']
    if (!name) continue
    process.removeAllListeners(name)
    process.on(name, () => undefined)
  }
}

/** Excludes all memory from core dumps. Returns whether that succeeded. */
function emptyCoreDumps(): boolean {
  const path = '/proc/self/coredump_filter'
  try {
    writeFileSync(path, '0')
    return Number.parseInt(readKernelFile(path), 16) === 0
  } catch {
    return false
  }
}

/** Sets the size limit of core dumps to zero, unless it is zero. Resolves to the reason when that fails. */
async function noCoreDumps(): Promise<string | undefined> {
  if (coreLimit() === '0') return undefined
  const { execFile } = await import('node:child_process')
  const failure = await new Promise<Error | null>((resolve) =>
    execFile('prlimit', ['--pid', String(process.pid), '--core=0:0'], { timeout: 5000 }, (error) => resolve(error)),
  )
  if (coreLimit() === '0') return undefined
  return (failure as NodeJS.ErrnoException | null)?.code === 'ENOENT'
    ? 'the program prlimit is not installed'
    : (failure?.message.trim() ?? 'prlimit had no effect')
}

/** The size limit in force, in bytes or `unlimited`. */
function coreLimit(): string | undefined {
  return /^Max core file size\s+(\S+)/m.exec(readKernelFile('/proc/self/limits'))?.[1]
}
