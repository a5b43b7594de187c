/** What the quickstart shows: a request that goes through, one that is denied, and why. */
import { get, shownAnswer, untilAnswered } from './answers.ts'
import type { MeshPorts } from './example-files.ts'

/** What is shown of an answer of /debug/authz. */
interface Explained {
  readonly status: number
  readonly decidedBy: string
  readonly reason: string
  readonly considered: readonly { readonly policy: string; readonly rule: number; readonly because: string }[]
}

/** Resolves when the gateway answers both requests as it should, or the signal is aborted. Rejects with the last answer when that takes too long. */
export async function untilItAnswers({ gateway: port }: MeshPorts, signal: AbortSignal): Promise<void> {
  await untilAnswered({ port, path: '/', status: 200 }, signal)
  await untilAnswered({ port, path: '/stock', status: 403 }, signal)
}

/** Sends the requests. Resolves with the text to print: each command that a reader can repeat, and what it answered. */
export async function demonstrate({ gateway, pages }: MeshPorts): Promise<string> {
  const why = '/debug/authz?proxyID=stock.demo&path=/stock&principal=cluster.local/ns/demo/sa/gateway'
  const [passed, denied, explained] = [await get(gateway, '/'), await get(gateway, '/stock'), await get(pages, why)]
  const { status, decidedBy, reason, considered } = JSON.parse(explained.body) as Explained
  return `A request through the gateway to the shop, which asks the stock, with mutual TLS on both ways:

  $ curl http://127.0.0.1:${gateway}/
${indented(passed.body)}

A request through the gateway straight to the stock, which mesh/stock.yaml permits to the shop alone:

  $ curl http://127.0.0.1:${gateway}/stock
  ${shownAnswer(denied)}

Why, in the words of the control plane:

  $ curl '${`http://127.0.0.1:${pages}${why}`}'
  ${status}, decided by ${decidedBy}: ${reason}
${indented(considered.map(({ policy, rule, because }) => `${policy}, rule ${rule}: ${because}`).join('\n'))}`
}

const indented = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n')
