/** AdmissionReviews of the API server (`admission.k8s.io`), read from JSON and answered in JSON (docs/operation.md, W3). */
import type { AdmissionAnswer, AdmissionRequest } from '../../protocols/messages/admission.ts'
import { isMapping, textOf } from '../config/shape.ts'
import { reviewHead } from './review-head.ts'

/** The bounds of a review: bytes of its JSON, and how deep mappings and lists may be nested in it. */
export const reviewLimits = {
  // The API server takes requests of 3 MiB; an update has the object twice, and JSON escapes.
  bytes: 8 * 1024 * 1024,
  depth: 256,
} as const

/** The most characters of a message, the most warnings, and the most characters of one: the server cuts what is longer than 4,096 in all. */
const shown = { message: 8192, warnings: 20, warning: 256 } as const

/** A review that was read. */
export interface Review {
  /** The API version of the review, and so of its answer. */
  readonly apiVersion: string
  readonly request: AdmissionRequest
}

/** A review that cannot be read. `uid` and `apiVersion` are those of the answer. */
export interface UnreadReview {
  readonly apiVersion: string
  readonly uid: string
  readonly fault: string
}

const versions: readonly string[] = ['admission.k8s.io/v1', 'admission.k8s.io/v1beta1']
const [newest = ''] = versions

/** Reads a review. Never throws. */
export function readReview(body: Uint8Array): Review | UnreadReview {
  const unread = (fault: string, apiVersion = newest, uid = ''): UnreadReview => ({ apiVersion, uid, fault: `error decoding the review: ${fault}` })
  if (isDeeperThan(body, reviewLimits.depth)) {
    // Without the uid, the server would tell its user that the answer is wrong, and not why the object is denied.
    const { apiVersion, uid } = reviewHead(body)
    return unread(`it is nested deeper than ${reviewLimits.depth} levels`, versions.includes(apiVersion) ? apiVersion : newest, uid)
  }
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (error) {
    // Neither the text nor a part of it is repeated: it may have secrets.
    return unread(error instanceof SyntaxError ? 'it is no JSON' : 'it is no UTF-8')
  }
  if (!isMapping(value)) return unread('it is no mapping')
  const { apiVersion, kind, request } = value
  if (typeof apiVersion !== 'string' || !versions.includes(apiVersion)) return unread(`its apiVersion is none of ${versions.join(', ')}`)
  if (kind !== 'AdmissionReview') return unread('its kind is not AdmissionReview', apiVersion)
  if (!isMapping(request)) return unread('it has no request', apiVersion)
  const uid = textOf(request.uid)
  if (uid === '') return unread('its request has no uid', apiVersion)
  if (!isMapping(request.kind)) return unread('its request has no kind', apiVersion, uid)
  const [of, resource] = [request.kind, isMapping(request.resource) ? request.resource : {}]
  const userInfo = isMapping(request.userInfo) ? request.userInfo : {}
  return {
    apiVersion,
    request: {
      uid,
      kind: { group: textOf(of.group), version: textOf(of.version), kind: textOf(of.kind) },
      resource: { group: textOf(resource.group), version: textOf(resource.version), resource: textOf(resource.resource) },
      subResource: textOf(request.subResource),
      name: textOf(request.name),
      namespace: textOf(request.namespace),
      operation: textOf(request.operation),
      user: textOf(userInfo.username),
      isDryRun: request.dryRun === true,
      object: request.object ?? undefined,
      oldObject: request.oldObject ?? undefined,
    },
  }
}

/** Returns the JSON of an answer, in the version of the review and with its uid. */
export function reviewText(apiVersion: string, uid: string, { allowed, message, code, warnings = [], patch = [] }: AdmissionAnswer): string {
  const status = allowed ? {} : { status: { code: code ?? 403, message: cut(message ?? 'denied', shown.message) } }
  const response = {
    uid,
    allowed,
    ...status,
    ...(warnings.length > 0 ? { warnings: shownWarnings(warnings) } : {}),
    ...(patch.length > 0 ? { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') } : {}),
  }
  return JSON.stringify({ apiVersion, kind: 'AdmissionReview', response })
}

/** Returns the JSON of the answer to a review that cannot be read. */
export const unreadText = ({ apiVersion, uid, fault }: UnreadReview): string =>
  reviewText(apiVersion, uid, { allowed: false, code: 400, message: fault })

function shownWarnings(warnings: readonly string[]): string[] {
  const first = warnings.slice(0, shown.warnings).map((warning) => cut(warning, shown.warning))
  const others = warnings.length - first.length
  return others > 0 ? [...first, `warnings beyond these: ${others}`] : first
}

/** The first characters of a text. Half a surrogate pair is replaced, and what is no text for a header too: warnings are sent as headers. */
function cut(value: string, most: number): string {
  const plain = (value.length > most ? `${value.slice(0, most - 1)}…` : value).toWellFormed()
  return plain.replace(/\p{Cc}+/gu, ' ')
}

const [quote, backslash, open, close] = [0x22, 0x5c, [0x5b, 0x7b], [0x5d, 0x7d]] as const

/** Whether JSON is nested deeper than `most` levels. It is looked for before it is parsed: what reads the value recurs into it. */
export function isDeeperThan(json: Uint8Array, most: number): boolean {
  let depth = 0
  let isText = false
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (isText) {
      if (byte === backslash) at++
      else if (byte === quote) isText = false
    } else if (byte === quote) isText = true
    else if (byte === open[0] || byte === open[1]) {
      if (++depth > most) return true
    } else if (byte === close[0] || byte === close[1]) depth--
  }
  return false
}
