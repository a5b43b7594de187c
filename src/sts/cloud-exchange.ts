/**
 * The plugin `CloudTokenExchange` (docs/agent.md, T4): the workload's token is exchanged for a federated token, and that for an access
 * token of the project's mesh data-plane service account. Encodes the requests and decodes the responses; another module sends them.
 */
import type { CloudExchange } from '../../protocols/messages/sts.ts'
import { isMapping } from '../config/shape.ts'
import type { TokenRequest } from './token-request.ts'

/** The scope of access tokens. */
const cloudScope = 'https://www.googleapis.com/auth/cloud-platform'
/** The requested lifetime of an access token, and the assumed one when the response has none, in seconds. */
const accessSeconds = 3600
/** The maximum length of a token, in characters. */
const longestToken = 32_768

/** A POST request with a JSON body. */
export interface ExchangeRequest {
  readonly url: string
  /** The bearer token. Empty when there is none. */
  readonly bearer: string
  readonly body: string
}

/** A token and its expiry in Unix milliseconds. */
export interface Expiring {
  readonly token: string
  readonly expiresAt: number
}

/** Returns the request for a federated token. */
export function federatedRequest(
  { federatedUrl, audience }: Pick<CloudExchange, 'federatedUrl' | 'audience'>,
  { subjectToken, scope }: TokenRequest,
): ExchangeRequest {
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

/** Parses the response received at `now` (Unix milliseconds). Throws an Error that contains no token. */
export function readFederated(body: string, now: number): Expiring {
  const { access_token: token, expires_in: seconds } = readAnswer(body)
  return {
    token: checkedToken(token, 'access_token'),
    expiresAt: now + 1000 * (typeof seconds === 'number' && seconds > 0 ? seconds : accessSeconds),
  }
}

/** Returns the request for an access token. */
export function accessRequest({ accessUrl }: CloudExchange, federatedToken: string): ExchangeRequest {
  return {
    url: accessUrl,
    bearer: federatedToken,
    body: JSON.stringify({ delegates: [], scope: [cloudScope], lifetime: { seconds: accessSeconds } }),
  }
}

/** Parses the response received at `now` (Unix milliseconds). Throws an Error that contains no token. */
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
    // The parser's error is discarded because it quotes the text, which may be a token.
    throw new Error('the answer is not JSON')
  }
  if (!isMapping(answer)) throw new Error('the answer is not a mapping')
  return answer
}

/** Returns a token that is valid in a header. */
function checkedToken(token: unknown, field: string): string {
  if (typeof token !== 'string' || token === '') throw new Error(`the answer has no ${field}`)
  if (token.length > longestToken || !/^[\u0021-\u007e]+$/.test(token)) throw new Error(`${field} of the answer is not a token`)
  return token
}
