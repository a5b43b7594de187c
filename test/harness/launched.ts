/** Runs the real command as users start it: with an older Node, by npm, in a process group of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { discoveryScript } from './commands.ts'
import { Output } from './output.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** A module that makes Node report an old version. */
const claimsToBeOld = 'data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"20.0.0"}})'

/** The ways to start `pilot-discovery`, as program and arguments. */
export const launchers = {
  'the pinned Node': [process.execPath, discoveryScript],
  'an older Node': [process.execPath, '--import', claimsToBeOld, discoveryScript],
} as const

/** Flags that let the kernel choose every port. */
export const anyPorts = [
  '--grpcAddr',
  '127.0.0.1:0',
  '--secureGRPCAddr',
  '',
  '--httpAddr',
  '127.0.0.1:0',
  '--monitoringAddr',
  '127.0.0.1:0',
  '--ctrlz_port',
  '0',
]

/** The exit of a process. */
export interface End {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/**
 * A started command. It leads a process group, as a shell's job does, and has its own directory for the state of a certificate authority.
 */
export class Launched {
  readonly output = new Output()
  readonly ended: Promise<End>
  readonly #child: ChildProcess
  readonly #authorityDir = mkdtempSync(join(tmpdir(), 'mesh-test-ca-'))

  constructor(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const [program = '', ...args] = command
    // Variables that npm sets for the test run are not passed to the command.
    const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_lifecycle')))
    const child = spawn(program, args, {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...inherited, MESHD_CA_STATE_DIR: this.#authorityDir, MESHD_ADMIN_SOCKET: join(this.#authorityDir, 'run/admin.sock'), ...env },
    })
    this.#child = child
    this.output.follow(child)
    this.ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve({ code, signal })))
  }

  get pid(): number {
    // Without this check, pid 0 would address this process's own group.
    if (this.#child.pid === undefined) throw new Error(`${this.#child.spawnfile} could not be started`)
    return this.#child.pid
  }

  /** Sends a signal to the started process only. */
  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal)
  }

  /** Sends a signal to the whole process group, as a terminal does. */
  signalAll(signal: NodeJS.Signals): void {
    process.kill(-this.pid, signal)
  }

  /** Closes the pipe of its standard output, as a reader that has enough. */
  closeOutput(): void {
    this.#child.stdout?.destroy()
  }

  /** The running processes of the group. */
  members(): number[] {
    return groupMembers(this.pid)
  }

  /** The address of one of its servers, once it is in the output. */
  async address(server: 'gRPC' | 'HTTP' | 'monitoring'): Promise<string> {
    return (await this.output.says(new RegExp(`listening addresses: .*\\b${server} ([^,\\s]+)`)))[1] ?? ''
  }

  /** Kills all remaining processes of the group. */
  dispose(): void {
    try {
      this.signalAll('SIGKILL')
    } catch {
      // No process is left.
    }
    rmSync(this.#authorityDir, { recursive: true, force: true })
  }
}

function groupMembers(group: number): number[] {
  const stat = (pid: string) => {
    try {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
      return { state: fields[0], group: Number(fields[2]) }
    } catch {
      return undefined
    }
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      const found = stat(name)
      return found?.group === group && found.state !== 'Z'
    })
    .map(Number)
}
