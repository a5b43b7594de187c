/**
 * The plugin `CloudTokenExchange` (docs/agent.md, T4): the workload's token is exchanged for a federated one, and that for an access token of
 * the mesh data-plane service account of the project. Requests and answers as text; who sends them stands elsewhere.
 */
import type { CloudExchange } from '../../protocols/messages/sts.ts'
import { isMapping } from '../config/shape.ts'
import type { TokenRequest } from './token-request.ts'

/** What access tokens are for. */
const cloudScope = 'https://www.googleapis.com/auth/cloud-platform'
/** Life of an access token in seconds: that is asked for, and that counts when the answer does not say. */
const accessSeconds = 3600
/** Longest token in characters. */
const longestToken = 32_768

/** A POST with a body of JSON. */
export interface ExchangeRequest {
  readonly url: string
  /** Empty when there is none. */
  readonly bearer: string
  readonly body: string
}

/** A token, and when it expires in Unix milliseconds. */
export interface Expiring {
  readonly token: string
  readonly expiresAt: number
}

/** Asks for a federated token. */
export function federatedRequest({ federatedUrl, audience }: CloudExchange, { subjectToken, scope }: TokenRequest): ExchangeRequest {
  const body = {
    audience,
    grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
    requestedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
    subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
    subjectToken,
    scope: scope || cloudScope,
  }
  return { url: federatedUrl, bearer: '', body: JSON.stringify(body) }
}

/** Reads the answer, which came at `now` (Unix milliseconds). Throws an Error that names no token. */
export function readFederated(body: string, now: number): Expiring {
  const { access_token: token, expires_in: seconds } = readAnswer(body)
  return {
    token: checkedToken(token, 'access_token'),
    expiresAt: now + 1000 * (typeof seconds === 'number' && seconds > 0 ? seconds : accessSeconds),
  }
}

/** Asks for an access token. */
export function accessRequest({ accessUrl }: CloudExchange, federatedToken: string): ExchangeRequest {
  return {
    url: accessUrl,
    bearer: federatedToken,
    body: JSON.stringify({ delegates: [], scope: [cloudScope], lifetime: { seconds: accessSeconds } }),
  }
}

/** Reads the answer, which came at `now` (Unix milliseconds). Throws an Error that names no token. */
export function readAccess(body: string, now: number): Expiring {
  const { accessToken, expireTime } = readAnswer(body)
  const expiresAt = typeof expireTime === 'string' ? Date.parse(expireTime) : Number.NaN
  return { token: checkedToken(accessToken, 'accessToken'), expiresAt: Number.isNaN(expiresAt) ? now + 1000 * accessSeconds : expiresAt }
}

function readAnswer(body: string): Readonly<Record<string, unknown>> {
  let answer: unknown
  try {
    answer = JSON.parse(body)
  } catch {
    // The message of the parser quotes the text, which may be a token.
    throw new Error('the answer is not JSON')
  }
  if (!isMapping(answer)) throw new Error('the answer is not a mapping')
  return answer
}

/** A token that a header can have. */
function checkedToken(token: unknown, field: string): string {
  if (typeof token !== 'string' || token === '') throw new Error(`the answer has no ${field}`)
  if (token.length > longestToken || !/^[\u0021-\u007e]+$/.test(token)) throw new Error(`${field} of the answer is not a token`)
  return token
}
