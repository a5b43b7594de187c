/** Reviews of the API server, made by hand. */
import { request as httpsRequest } from 'node:https'

/** The answer to a review. */
export interface ReviewAnswer {
  /** The HTTP status. */
  readonly status: number
  readonly apiVersion?: string
  readonly uid?: string
  readonly allowed?: boolean
  readonly message?: string
  readonly warnings?: readonly string[]
  /** The body of a response with another status than 200. */
  readonly body: string
}

/** What is reviewed: an object with kind and group. */
export interface Reviewed {
  readonly kind: string
  readonly spec: unknown
  readonly group?: string
  readonly version?: string
  readonly operation?: string
  readonly uid?: string
  readonly metadata?: object
  /** The version of the review. */
  readonly as?: 'v1' | 'v1beta1'
}

/** Returns the JSON of a review. */
export function reviewOf({ kind, spec, group = 'networking.mesh.io', version = 'v1', operation = 'CREATE', ...more }: Reviewed): string {
  const { uid = 'uid-1', metadata = { name: 'x', namespace: 'shop' }, as = 'v1' } = more
  const object = { apiVersion: `${group}/${version}`, kind, metadata, spec }
  const request = { uid, kind: { group, version, kind }, operation, namespace: 'shop', name: 'x', object }
  return JSON.stringify({ apiVersion: `admission.k8s.io/${as}`, kind: 'AdmissionReview', request })
}

/** Posts a body as a review. `ca`: over TLS to `meshd.mesh-system.svc`. */
export async function postReview(
  port: number,
  path: string,
  body: string | Uint8Array,
  type = 'application/json',
  ca?: string,
): Promise<ReviewAnswer> {
  const { status, text } = ca === undefined ? await plainPost(port, path, body, type) : await securePost(port, path, body, type, ca)
  if (status !== 200) return { status, body: text }
  const { apiVersion, response } = JSON.parse(text)
  const { uid, allowed, warnings, status: denial } = response
  return { status, apiVersion, uid, allowed, message: denial?.message, warnings, body: text }
}

async function plainPost(port: number, path: string, body: string | Uint8Array, type: string): Promise<{ status: number; text: string }> {
  const sent = typeof body === 'string' ? body : Buffer.from(body)
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers: { 'content-type': type }, body: sent })
  return { status: answer.status, text: await answer.text() }
}

function securePost(port: number, path: string, body: string | Uint8Array, type: string, ca: string): Promise<{ status: number; text: string }> {
  const headers = { 'content-type': type, 'content-length': Buffer.byteLength(body) }
  const options = { host: '127.0.0.1', port, path, method: 'POST', servername: 'meshd.mesh-system.svc', ca, agent: false, headers }
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest(options, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}
