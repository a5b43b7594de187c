/** A shell in a terminal, as a person types in it. */
import { execFileSync, spawn } from 'node:child_process'
import { discoveryScript } from './commands.ts'
import { Output } from './output.ts'

const shells = {
  bash: { command: 'bash --noprofile --norc -i', evaluated: (command: string) => `eval "$(${command})"` },
  zsh: { command: 'zsh -f -i', evaluated: (command: string) => `eval "$(${command})"` },
  fish: { command: 'fish --no-config -i', evaluated: (command: string) => `${command} | source` },
}
export type Shell = keyof typeof shells
export const shellNames = Object.keys(shells) as Shell[]

/** Whether a shell is installed. Throws when it is not under `CI=true`. */
export function hasShell(shell: Shell): boolean {
  try {
    execFileSync(shell, ['-c', 'true'], { stdio: 'ignore' })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || process.env.CI === 'true') throw error
    return false
  }
}

/** After how long without an answer a line is typed again, in milliseconds: when a command has ended that asked in vain, on a busy machine too. */
const againMs = 20_000

/** What erases the line that is typed. */
const eraseLine = '\x15'

/** An interactive shell without the configuration of its user. */
export class Terminal {
  readonly output = new Output()
  readonly #child
  readonly #shell: Shell

  constructor(shell: Shell, env: Readonly<Record<string, string>>, cwd: string) {
    this.#shell = shell
    // The terminal is made by util-linux. It is wide, so that no line is broken.
    const command = `stty cols 300 rows 60; exec ${shells[shell].command}`
    this.#child = spawn('script', ['-qfec', command, '/dev/null'], { cwd, env: { ...process.env, TERM: 'dumb', ...env } })
    this.output.follow(this.#child)
  }

  type(text: string): void {
    this.#child.stdin.write(text)
  }

  /** Evaluates what a command prints, and waits for its end. */
  async evaluate(command: string): Promise<void> {
    // What is typed is shown, too: only what it prints has the sum.
    this.type(`${shells[this.#shell].evaluated(command)}\n`)
    this.type(`echo done:$(expr 1000 + 234)\n`)
    await this.output.says('done:1234')
  }

  /**
   * Types the beginning of a line and presses the tabulator; waits until a text is shown after it, and erases the line. Begins again when it is not
   * shown for long, as a person does: where a server has not answered within two seconds, as on a busy machine, files complete the line, or nothing does.
   */
  async completes(line: string, shown: string): Promise<void> {
    const output = this.output.fromNow()
    this.type(`${line}\t`)
    const again = setInterval(() => this.type(`${eraseLine}${line}\t`), againMs)
    await output.says(shown).finally(() => clearInterval(again))
    this.type(eraseLine)
  }

  /** Types the beginning of a line and has the shell list how it may go on; waits until all of some texts are shown after it, and erases the line. */
  async lists(line: string, shown: readonly string[]): Promise<void> {
    const output = this.output.fromNow()
    // fish draws its list on terminals that can move their cursor only, and prints it when it is asked.
    this.type(this.#shell === 'fish' ? `complete -C '${line}'\n` : `${line}\t\t`)
    for (const text of shown) await output.says(text)
    this.type(eraseLine)
  }

  close(): void {
    this.#child.kill('SIGKILL')
  }
}

/** Starts a command of `pilot-discovery` in a terminal of some columns, which util-linux makes. */
export function startInTerminal(args: readonly string[], env: Readonly<Record<string, string>>, columns: number) {
  const words = [process.execPath, discoveryScript, ...args].map((word) => `'${word}'`)
  const child = spawn('script', ['-qfec', `stty cols ${columns} rows 60; exec ${words.join(' ')}`, '/dev/null'], {
    env: { ...process.env, NO_COLOR: '1', ...env },
  })
  const output = new Output()
  output.follow(child)
  return { child, output, ended: new Promise<number | null>((resolve) => child.once('close', resolve)) }
}
