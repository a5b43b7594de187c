/** `pilot-discovery authz`: whether a proxy lets a request pass, and which rule decides. */
import { fromJson, type JsonObject, type JsonValue, toJson } from '@bufbuild/protobuf'
import { StructSchema } from '@bufbuild/protobuf/wkt'
import { type ExplainRequestResponse, ExplainRequestResponseSchema } from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { AdminClient } from '../../../src/cli/admin-client.ts'
import { printAnswer } from '../../../src/cli/folding.ts'
import { isColoured, printJson } from '../../../src/cli/print.ts'
import { coloured } from '../../../src/cli/table.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { type ServerFlags, serverOf } from './asked-server.ts'
import { consideredLines, objectText } from './object-rows.ts'
import { headersOf } from './request-flags.ts'

/** The flags of the command: the parts of the request. */
interface Flags extends ServerFlags {
  readonly protocol: string
  readonly method: string
  readonly host: string
  readonly path: string
  readonly header: readonly string[]
  readonly principal: string
  readonly claims: string
  readonly 'source-ip': string
  readonly 'remote-ip': string
  readonly port: number
  readonly sni: string
}

/** Prints the decision on a request. The exit status is 1 when it is denied. */
export async function authz(flags: Flags, proxy: string): Promise<void> {
  const client = new AdminClient(await serverOf(flags))
  const { protocol, method, host, path, header, principal, port, sni, 'source-ip': sourceIp, 'remote-ip': remoteIp } = flags
  const claims = flags.claims === '' ? undefined : claimsOf(flags.claims)
  const request = {
    proxy,
    protocol,
    method,
    host,
    path,
    headers: headersOf(header),
    principal,
    port,
    sni,
    sourceIp,
    remoteIp,
    ...(claims && { claims }),
  }
  const answer = await client.asked(client.rpcs.explainRequest(request))
  const decision = decisionOf(answer)
  if (flags.json) printJson({ decision, ...(toJson(ExplainRequestResponseSchema, answer, { alwaysEmitImplicit: true }) as object) })
  else printAnswer(decisionText(decision, answer))
  if (decision === 'DENIED') process.exitCode = 1
}

/** What becomes of a request: 200 stands for any answer of the workload. The external authorizer has the last word on what it is asked about. */
function decisionOf({ status, decidedBy }: ExplainRequestResponse): 'ALLOWED' | 'DENIED' | 'ASKED' {
  if (decidedBy === 'external authorizer') return 'ASKED'
  return status === 200 ? 'ALLOWED' : 'DENIED'
}

const meanings = { ALLOWED: 'good', DENIED: 'bad', ASKED: 'warning' } as const
const consequences = { ALLOWED: 'the workload answers', DENIED: 'the connection is closed', ASKED: 'the external authorizer decides' }

function claimsOf(text: string): JsonObject {
  try {
    // Only an object can be read as one.
    return toJson(StructSchema, fromJson(StructSchema, JSON.parse(text) as JsonValue)) as JsonObject
  } catch {
    throw new Error('--claims: not a JSON object')
  }
}

function decisionText(decision: keyof typeof meanings, answer: ExplainRequestResponse): string {
  const { status, decidedBy, policy, rule, reason, requestPrincipal } = answer
  const by = policy ? `${objectText(policy)}${rule === undefined ? '' : `, rule ${rule}`}` : decidedBy
  return [
    `${coloured(decision, meanings[decision], isColoured())}: ${decision === 'DENIED' && status > 0 ? `the client receives ${status}` : consequences[decision]}`,
    oneLine(`decided by: ${by}`),
    ...(reason === '' ? [] : [oneLine(`because: ${reason}`)]),
    ...(requestPrincipal === '' ? [] : [oneLine(`request principal: ${requestPrincipal}`)]),
    ...consideredLines(answer),
  ].join('\n')
}
