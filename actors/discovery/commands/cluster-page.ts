/** Pages of a replica in a cluster, for `pilot-discovery request --cluster`. */
import { connect } from 'node:http2'
import type { ForwardedServer } from '../../../src/cli/admin-client.ts'
import type { AdminRequest } from '../../http/admin-request.ts'
import type { LocalAnswer } from '../../http/local-call.ts'
import { mostBytes } from '../../http/single-request.ts'

/** The longest standstill of an answer, in milliseconds. */
const standstillMs = 60_000

/** Throws an Error for a page that the secured port does not serve. */
export function checkPage({ path }: Pick<AdminRequest, 'path'>): void {
  if (!/^\/debug(?![^/?])/.test(path)) throw new Error(`${path.slice(0, 200)}: with --cluster only /debug and the pages below it are served`)
}

/** Asks for a page below /debug, which the secured port serves. Parameters of a form are sent in the URL. Rejects with an Error that names the replica. */
export async function clusterPage(server: ForwardedServer, { method, path, form }: AdminRequest): Promise<LocalAnswer> {
  const parameters = form ? `${path.includes('?') ? '&' : '?'}${form}` : ''
  const token = await server.token()
  const session = connect(server.origin, { createConnection: server.open })
  server.hold(true)
  try {
    return await new Promise((resolve, reject) => {
      session.on('error', reject)
      const stream = session.request({ ':method': method, ':path': `${path}${parameters}`, authorization: `Bearer ${token}` }, { endStream: true })
      let [status, body, length] = [0, '', 0]
      stream.setEncoding('utf8')
      stream.setTimeout(standstillMs, () => stream.destroy(new Error(`no answer within ${standstillMs / 1000} s`)))
      stream.on('response', (headers) => (status = Number(headers[':status'])))
      stream.on('data', (text: string) => {
        length += text.length
        if (length > mostBytes) stream.destroy(new Error(`the answer is longer than ${mostBytes} bytes`))
        else body += text
      })
      stream.on('error', reject)
      stream.on('close', () => (status === 0 ? reject(new Error('the connection was lost')) : resolve({ status, body })))
    })
  } catch (error) {
    throw new Error(`replica ${server.replica}: ${(error as Error).message}`)
  } finally {
    server.close()
  }
}
