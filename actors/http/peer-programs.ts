/**
 * Which programs are at the other end of connections of this machine, as Linux shows it (docs/operation.md, "Debug pages"): the socket of
 * the peer in the tables of the kernel, then the process that has it open. The user of a process does not count. Look-ups take at most a
 * quarter of a thread, all that wait share one, and what exceeds a bound counts as not answered (docs/limits.md).
 */
import { closeSync, type Dir, opendirSync, openSync, readlinkSync, readSync } from 'node:fs'
import { endianness } from 'node:os'
import { ownPorts } from '../../src/config/own-ports.ts'
import { type ConnectionEnds, SocketSearch } from '../../src/identity/socket-table.ts'
import { monotonicMs, threadCpuMs } from '../runtime/clock.ts'
import { readKernelFile } from '../runtime/kernel-file.ts'
import { pause } from '../runtime/timers.ts'

/**
 * What is at the other end of a connection. `elsewhere`: no open socket of this machine, as with forwarded packets, or a socket that is
 * closed already. `unknown`: this system does not show it. `busy`: it was not found out, because a bound was reached.
 */
export type PeerProgram = 'ordinary' | 'suspect' | 'elsewhere' | 'unknown' | 'busy'

/** Which programs are suspect. */
export type Suspects =
  /** Those that listen on one of the ports, at whatever address. */
  | { readonly listeningOn: () => Promise<ReadonlySet<number>> }
  /** A process and all that it started; undefined: there is none. */
  | { readonly startedBy: () => Promise<number | undefined> }

/**
 * Bounds: connections that wait for a look-up; milliseconds at a time, and how many times as long the pauses are; bytes of the socket
 * tables, processes and open files that are looked at, and milliseconds of CPU time, for one look-up.
 */
const limits = { waiting: 256, sliceMs: 2, pausesForEach: 3, tableBytes: 67_108_864, processes: 100_000, files: 500_000, workMs: 5000 }

/** A connection that waits for a look-up. */
interface Question {
  /** Its ends when it was asked about, because a socket that is closed forgets them. */
  readonly ends: ConnectionEnds
  readonly answer: PromiseWithResolvers<PeerProgram>
}

/** How long a look-up waits for the ports of proxies, in milliseconds. */
const portsMs = 1000

/**
 * Returns a function that asks for the ports of proxies (docs/resources.md, E8): it returns the last known ones while nobody answers, and
 * those of no configuration before the first answer.
 */
export function portsOfProxies(ask: () => Promise<readonly number[]>): () => Promise<ReadonlySet<number>> {
  let known = ownPorts
  return async () => {
    const asked = ask().catch(() => undefined)
    const ports = await Promise.race([asked, pause(portsMs)])
    if (ports) known = new Set(ports)
    return known
  }
}

/** Thrown when a look-up exceeds a bound. */
class TooMuch extends Error {}

/** How long a program counts as ordinary: it may begin to listen on a port of proxies after it has connected. */
const ordinaryMs = 5000

/**
 * Looks up the programs of peers. What was found out about a connection is kept as long as its socket object, but that its program is an
 * ordinary one for {@link ordinaryMs}.
 */
export class PeerPrograms {
  readonly #suspects: Suspects
  readonly #proc: string
  readonly #ordinaryMs: number
  readonly #known = new WeakMap<ConnectionEnds, { readonly program: PeerProgram; readonly until: number }>()
  readonly #waiting = new Map<ConnectionEnds, Question>()
  #isRunning = false

  /** `proc`: where the proc file system is mounted. `ordinary`: for how many milliseconds a program counts as ordinary. */
  constructor(suspects: Suspects, proc = '/proc', ordinary = ordinaryMs) {
    this.#suspects = suspects
    this.#proc = proc
    this.#ordinaryMs = ordinary
  }

  /** Returns what is at the other end of a connection. Never rejects. */
  async of(connection: ConnectionEnds): Promise<PeerProgram> {
    if (process.platform !== 'linux') return 'unknown'
    const known = this.#known.get(connection)
    if (known !== undefined && monotonicMs() < known.until) return known.program
    let asked = this.#waiting.get(connection)
    if (!asked) {
      if (this.#waiting.size >= limits.waiting) return 'busy'
      const { localAddress, localPort, remoteAddress, remotePort } = connection
      asked = { ends: { localAddress, localPort, remoteAddress, remotePort }, answer: Promise.withResolvers() }
      this.#waiting.set(connection, asked)
      if (!this.#isRunning) void this.#run()
    }
    const found = await asked.answer.promise
    const until = found === 'ordinary' ? monotonicMs() + this.#ordinaryMs : Number.POSITIVE_INFINITY
    if (found !== 'busy') this.#known.set(connection, { program: found, until })
    return found
  }

  /** Answers all that wait with one look-up, until nobody waits. */
  async #run(): Promise<void> {
    this.#isRunning = true
    while (this.#waiting.size > 0) {
      const asked = new Map(this.#waiting)
      const found = new Map<ConnectionEnds, PeerProgram>()
      let otherwise: PeerProgram = 'unknown'
      try {
        await this.#lookUp([...asked.values()], found)
      } catch (error) {
        if (error instanceof TooMuch) otherwise = 'busy'
      }
      for (const [connection, { ends, answer }] of asked) {
        this.#waiting.delete(connection)
        answer.resolve(found.get(ends) ?? otherwise)
      }
    }
    this.#isRunning = false
  }

  /** Adds what is found to `found`, by the ends of the question. Those of which nothing is found are not added. */
  async #lookUp(questions: readonly Question[], found: Map<ConnectionEnds, PeerProgram>): Promise<void> {
    const suspects = this.#suspects
    const ports = 'listeningOn' in suspects ? await suspects.listeningOn() : new Set<number>()
    const work = new Work()
    const search = (ends: Iterable<ConnectionEnds>) => this.#search(ends, ports, work)
    const tables = await search(questions.map(({ ends }) => ends))
    const open = new Map<string, ConnectionEnds>()
    for (const { ends } of questions) {
      const socket = tables.peerOf(ends)
      if (typeof socket === 'object') open.set(socket.inode, ends)
      else found.set(ends, socket === 'hidden' ? 'unknown' : 'elsewhere')
    }
    const answer = (inode: string, program: PeerProgram) => {
      found.set(open.get(inode) as ConnectionEnds, program)
      open.delete(inode)
    }
    const isListening = 'listeningOn' in suspects
    if (isListening && tables.listening.size === 0) for (const inode of [...open.keys()]) answer(inode, 'ordinary')
    if (open.size === 0) return
    const first = isListening ? undefined : await suspects.startedBy()
    const pids = isListening ? await work.do(processIds(this.#proc)) : first === undefined ? [] : await work.do(descendants(this.#proc, first))
    // The newest processes first: most callers are programs that were just started.
    pids.sort((one, other) => other - one)
    const visit = (sockets: ReadonlySet<string>) => {
      const own = [...open.keys()].filter((inode) => sockets.has(inode))
      const isSuspect = !isListening || (own.length > 0 && [...tables.listening].some((inode) => sockets.has(inode)))
      for (const inode of own) answer(inode, isSuspect ? 'suspect' : 'ordinary')
      return open.size === 0
    }
    await work.do(openSockets(this.#proc, pids, visit))
    if (open.size === 0) return
    // A socket that was closed meanwhile is in no process: those that are left count only if they are still open.
    const later = await search(open.values())
    for (const [inode, ends] of [...open]) {
      const socket = later.peerOf(ends)
      const isOpen = typeof socket === 'object' && socket.inode === inode
      answer(inode, !isOpen ? 'elsewhere' : isListening ? 'unknown' : 'ordinary')
    }
  }

  /** Searches the tables of sockets of this network namespace. Rejects when they cannot be read. */
  async #search(connections: Iterable<ConnectionEnds>, ports: ReadonlySet<number>, work: Work): Promise<SocketSearch> {
    const search = new SocketSearch(connections, ports, endianness() === 'LE')
    await work.do(readTables(search, this.#proc))
    return search
  }
}

/** Work of one look-up, in slices with pauses in between. */
class Work {
  #spentMs = 0

  /** Runs a generator to its end and returns its result. Rejects with {@link TooMuch} when the look-up takes too long. */
  async do<Result>(steps: Generator<void, Result>): Promise<Result> {
    for (;;) {
      // The pauses and the bound are of CPU time, which other load on the machine does not prolong.
      const [begin, cpu] = [monotonicMs(), threadCpuMs()]
      let step = steps.next()
      while (!step.done && monotonicMs() - begin < limits.sliceMs) step = steps.next()
      const tookMs = threadCpuMs() - cpu
      this.#spentMs += tookMs
      if (this.#spentMs > limits.workMs) throw new TooMuch()
      await pause(tookMs * limits.pausesForEach)
      if (step.done) return step.value
    }
  }
}

/** Reads the tables of sockets of this network namespace. Throws when they cannot be read. */
function* readTables(search: SocketSearch, proc: string): Generator<void, void> {
  const buffer = Buffer.allocUnsafe(65_536)
  let bytes = 0
  for (const name of ['tcp', 'tcp6']) {
    let file: number
    try {
      file = openSync(`${proc}/self/net/${name}`, 'r')
    } catch (error) {
      // There is no table of IPv6 where the kernel has no IPv6.
      if (name === 'tcp6') continue
      throw error
    }
    try {
      for (let length = readSync(file, buffer, 0, buffer.length, null); length > 0; length = readSync(file, buffer, 0, buffer.length, null)) {
        search.read(buffer.toString('latin1', 0, length))
        bytes += length
        if (bytes > limits.tableBytes) throw new TooMuch()
        yield
      }
    } finally {
      closeSync(file)
    }
    search.end()
  }
}

/** Calls `visit` with the sockets that each process has open, until it returns true. Processes that cannot be looked into are left out. */
function* openSockets(proc: string, pids: readonly number[], visit: (sockets: ReadonlySet<string>) => boolean): Generator<void, void> {
  let files = 0
  for (const pid of pids) {
    const sockets = new Set<string>()
    let directory: Dir
    try {
      directory = opendirSync(`${proc}/${pid}/fd`, { bufferSize: 128 })
    } catch {
      continue
    }
    try {
      for (let entry = directory.readSync(); entry; entry = directory.readSync()) {
        const inode = socketOf(`${proc}/${pid}/fd/${entry.name}`)
        if (inode !== undefined) sockets.add(inode)
        if (++files > limits.files) throw new TooMuch()
        if (files % 64 === 0) yield
      }
    } catch (error) {
      // A process that has ended meanwhile.
      if (error instanceof TooMuch) throw error
    } finally {
      directory.closeSync()
    }
    if (visit(sockets)) return
    yield
  }
}

/** The inode of an open file that is a socket. */
function socketOf(path: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(path))?.[1]
  } catch {
    return undefined
  }
}

function* processIds(proc: string): Generator<void, number[]> {
  const directory = opendirSync(proc, { bufferSize: 128 })
  const pids: number[] = []
  try {
    for (let entry = directory.readSync(); entry; entry = directory.readSync()) {
      if (/^[1-9]\d*$/.test(entry.name)) pids.push(Number(entry.name))
      if (pids.length > limits.processes) throw new TooMuch()
      if (pids.length % 128 === 0) yield
    }
  } finally {
    directory.closeSync()
  }
  return pids
}

/** A process, those that it started, and those of its session, whoever started them. */
function* descendants(proc: string, first: number): Generator<void, number[]> {
  const children = new Map<number, number[]>()
  const found = new Set([first])
  for (const pid of yield* processIds(proc)) {
    const { parent, session } = lineageOf(`${proc}/${pid}/stat`)
    if (session === first) found.add(pid)
    if (parent !== undefined) {
      const siblings = children.get(parent)
      if (siblings) siblings.push(pid)
      else children.set(parent, [pid])
    }
    yield
  }
  for (const pid of found) for (const child of children.get(pid) ?? []) found.add(child)
  return [...found]
}

/** The parent and the session of a process (proc(5), `stat`); none when it has ended. */
function lineageOf(path: string): { readonly parent?: number; readonly session?: number } {
  try {
    const text = readKernelFile(path)
    // The second field is the name of the program in parentheses, which may contain anything.
    const [, parent, , session] = text.slice(text.lastIndexOf(')') + 2).split(' ', 4)
    return { parent: Number(parent), session: Number(session) }
  } catch {
    return {}
  }
}
