/** The sources of tokens: the metadata server of a cloud's machine, or the discovery service on this machine. */
import type { CloudFetcher, LocalFetcher } from '../../../protocols/messages/agent.ts'
import type { LocalToken } from '../../../protocols/messages/identity.ts'
import { ask } from '../../http/single-request.ts'

/** A fetched token. */
export interface Fetched {
  readonly token: string
  /** The roots of the mesh in PEM. Undefined when the source does not provide them. */
  readonly roots: string | undefined
}

/** The timeout of a request in milliseconds, and the maximum size of a response in bytes. */
const limits = { ms: 5000, bytes: 1_048_576 }

/** Required in requests, against server-side request forgery, and in responses, as proof that a metadata server sent them. */
const flavor = { name: 'metadata-flavor', value: 'Google' } as const

/** Fetches the identity token of the machine's service account for the audience. Rejects with an Error that names the metadata server. */
export async function cloudToken({ metadataHost, audience }: CloudFetcher): Promise<Fetched> {
  const query = new URLSearchParams({ audience, format: 'full' })
  const path = `/computeMetadata/v1/instance/service-accounts/default/identity?${query}`
  const where = `metadata server ${metadataHost}`
  const url = URL.parse(`http://${metadataHost}`)
  if (!url) throw new Error(`${where}: is not <host> or <host>:<port>`)
  const { hostname, port } = url
  const [host, answered] = [hostname.replace(/^\[|\]$/g, ''), Number(port) || 80]
  const request = { host, port: answered, path, headers: { [flavor.name]: flavor.value } }
  const { status, body, headers } = await ask(request, limits).catch((error: Error) => {
    throw new Error(`${where}: ${error.message}`)
  })
  if (status !== 200) throw new Error(`${where}: answered with HTTP status ${status}`)
  if (headers[flavor.name] !== flavor.value) throw new Error(`${where}: the answer is not that of a metadata server`)
  return { token: checkedToken(where, body.trim()), roots: undefined }
}

/**
 * Fetches a token for the workload, and the roots, from the admin socket of the discovery service. Rejects with an Error that names the
 * socket.
 */
export async function localToken({ socket, namespace, account }: LocalFetcher): Promise<Fetched> {
  const where = `admin socket ${socket}`
  const { askServer } = await import('../../http/admin-request.ts')
  const form = new URLSearchParams({ namespace, account }).toString()
  const { status, body } = await askServer({ method: 'POST', path: '/token', form }, { MESHD_ADMIN_SOCKET: socket })
  if (status !== 200) throw new Error(`${where}: answered with HTTP status ${status}: ${body.slice(0, 300)}`)
  const { token, roots } = readAnswer(where, body)
  return { token: checkedToken(where, token), roots: roots === '' ? undefined : roots }
}

function readAnswer(where: string, body: string): LocalToken {
  let read: unknown
  try {
    read = JSON.parse(body)
  } catch {
    // The parser's error is discarded because it may quote the token.
  }
  const { token, roots } = Object(read) as Partial<Record<keyof LocalToken, unknown>>
  if (typeof token !== 'string' || typeof roots !== 'string') throw new Error(`${where}: the answer is not a token with roots`)
  return { token, roots }
}

function checkedToken(where: string, token: string): string {
  if (!/^[\x21-\x7e]{1,16384}$/.test(token)) throw new Error(`${where}: the answer is not a token`)
  return token
}
