/** Reviews of the API server, made by hand. */
import { request as httpsRequest } from 'node:https'
import type { PatchOperation } from '../../protocols/messages/admission.ts'

/** The answer to a review. */
export interface ReviewAnswer {
  /** The HTTP status. */
  readonly status: number
  readonly apiVersion?: string
  readonly uid?: string
  readonly allowed?: boolean
  readonly message?: string
  readonly warnings?: readonly string[]
  /** What is changed about the object; undefined: nothing. */
  readonly patch?: readonly PatchOperation[]
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
  /** The name that the request has. */
  readonly name?: string
  readonly isDryRun?: boolean
  /** The version of the review. */
  readonly as?: 'v1' | 'v1beta1'
}

/** Returns the JSON of a review. */
export function reviewOf({ kind, spec, group = 'networking.mesh.io', version = 'v1', operation = 'CREATE', ...more }: Reviewed): string {
  const { uid = 'uid-1', name = 'x', metadata = { name, namespace: 'shop' }, as = 'v1', isDryRun: dryRun = false } = more
  const object = { apiVersion: `${group}/${version}`, kind, metadata, spec }
  const request = { uid, kind: { group, version, kind }, operation, namespace: 'shop', name, dryRun, object }
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
  if (status !== 200) return { status, body: text.replace(/\n$/, '') }
  const { apiVersion, response } = JSON.parse(text)
  const { uid, allowed, warnings, status: denial, patchType, patch: encoded } = response
  const patch = patchType === 'JSONPatch' ? JSON.parse(Buffer.from(encoded, 'base64').toString('utf8')) : undefined
  return { status, apiVersion, uid, allowed, message: denial?.message, warnings, patch, body: text }
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

/** Returns the JSON of a review of a pod. `kind`: what the review says that it is. */
export function podReviewOf(
  pod: object,
  { as = 'v1', uid = 'uid-1', kind = 'Pod' }: { as?: 'v1' | 'v1beta1'; uid?: string; kind?: string } = {},
): string {
  const request = { uid, kind: { group: '', version: 'v1', kind }, operation: 'CREATE', namespace: 'shop', object: pod }
  return JSON.stringify({ apiVersion: `admission.k8s.io/${as}`, kind: 'AdmissionReview', request })
}
