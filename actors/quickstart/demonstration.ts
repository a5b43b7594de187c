/** What the quickstart shows: a request that goes through, one that is denied, and why. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { get, shownAnswer, untilAnswered } from './answers.ts'
import { type MeshPorts, packageFolder } from './example-files.ts'

/** Resolves when the gateway answers both requests as it should, or the signal is aborted. Rejects with the last answer when that takes too long. */
export async function untilItAnswers({ gateway: port }: MeshPorts, signal: AbortSignal): Promise<void> {
  await untilAnswered({ port, path: '/', status: 200 }, signal)
  await untilAnswered({ port, path: '/stock', status: 403 }, signal)
}

/** How long a command may take, in milliseconds. */
const commandMs = 60_000

/**
 * Sends the requests and asks the control plane, as a reader would in a second terminal in the directory of the mesh. Resolves with the text to print: each
 * command that a reader can repeat, and what it answered.
 */
export async function demonstrate({ gateway }: MeshPorts, directory: string): Promise<string> {
  const why = ['authz', 'stock.demo', '--path', '/stock', '--principal', 'cluster.local/ns/demo/sa/gateway']
  const [passed, denied, explained] = [await get(gateway, '/'), await get(gateway, '/stock'), await answerOf(why, directory)]
  return `A request through the gateway to the shop, which asks the stock, with mutual TLS on both ways:

  $ curl http://127.0.0.1:${gateway}/
${indented(passed.body)}

A request through the gateway straight to the stock, which mesh/stock.yaml permits to the shop alone:

  $ curl http://127.0.0.1:${gateway}/stock
  ${shownAnswer(denied)}

Why, in the words of the control plane. In a second terminal:

  $ ${secondTerminal(directory)}
  $ pilot-discovery ${why.join(' ')}
${indented(explained)}

What to ask it, too:

  $ pilot-discovery proxy-status        # which proxies have what they are sent, and which refused what
  $ pilot-discovery explain gateway.demo http://127.0.0.1:${gateway}/stock/1
                                        # where a request goes, and why a route does not take it
  $ pilot-discovery diff FILE           # what a change would do, before it is made`
}

/** Returns the line with which another shell is in the directory of the mesh and finds the commands by name. */
function secondTerminal(directory: string): string {
  const folder = commandFolder()
  return `cd ${quoted(directory)}${folder === undefined ? '' : ` && export PATH=${quoted(folder)}:"$PATH"`}`
}

/** Returns the folder in which npm, or a clone, has the commands by name; undefined where none is known. */
function commandFolder(): string | undefined {
  const folders = [join(packageFolder(), 'node_modules/.bin'), join(packageFolder(), '../.bin')]
  return folders.find((folder) => existsSync(join(folder, 'pilot-discovery')))
}

/** Returns a word as a shell reads it. */
const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

/** Runs a command in the directory of the mesh. Resolves with what it printed: a denied request is an exit status other than 0. */
function answerOf(args: readonly string[], directory: string): Promise<string> {
  const script = join(packageFolder(), 'bin/pilot-discovery.js')
  const { PATH, HOME, TMPDIR } = process.env
  const options = { cwd: directory, env: { PATH, HOME, TMPDIR }, timeout: commandMs }
  return new Promise((resolve) =>
    execFile(process.execPath, [script, ...args], options, (error, stdout, stderr) => resolve(stdout || stderr || (error?.message ?? ''))),
  )
}

const indented = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`.trimEnd())
    .join('\n')
