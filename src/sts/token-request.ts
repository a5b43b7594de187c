/** Parses requests and encodes responses of the token service (RFC 8693, 2; docs/agent.md, T1 and T2). */

/** The only supported grant type. */
const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange'
const subjectTokenType = 'urn:ietf:params:oauth:token-type:jwt'
const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

/** The content type of a request. */
export const formType = 'application/x-www-form-urlencoded'

/** The maximum size of a request body, in bytes. */
export const formBytes = 65_536

/** A parsed token request. */
export interface TokenRequest {
  readonly subjectToken: string
  /** Empty when none was requested. */
  readonly scope: string
}

/**
 * A failed request: `invalid_request` for a fault of the client, `invalid_target` when no token could be obtained. The message contains no
 * token.
 */
export class TokenFault extends Error {
  readonly code: 'invalid_request' | 'invalid_target'
  constructor(code: TokenFault['code'], message: string) {
    super(message)
    this.code = code
  }

  /** The HTTP status of the response. */
  get status(): number {
    return this.code === 'invalid_request' ? 400 : 500
  }
}

/** Parses a request. Throws {@link TokenFault} that names the field. */
export function readTokenRequest(body: string): TokenRequest {
  const form = new URLSearchParams(body)
  const field = (name: string): string => {
    const [value = '', ...more] = form.getAll(name)
    if (more.length > 0) throw new TokenFault('invalid_request', `${name} is given more than once`)
    return value
  }
  const expect = (name: string, expected: string) => {
    const given = field(name)
    if (given !== expected) throw new TokenFault('invalid_request', `${name} must be ${expected}, not ${JSON.stringify(given.slice(0, 100))}`)
  }
  expect('grant_type', grantType)
  const subjectToken = field('subject_token')
  if (subjectToken === '') throw new TokenFault('invalid_request', 'subject_token is empty')
  expect('subject_token_type', subjectTokenType)
  return { subjectToken, scope: field('scope') }
}

/** Returns the body of a successful response. */
export function tokenAnswer(token: string, expiresInSeconds: number): string {
  const answer = {
    access_token: token,
    issued_token_type: accessTokenType,
    token_type: 'Bearer',
    expires_in: expiresInSeconds,
    scope: '',
    refresh_token: '',
  }
  return JSON.stringify(answer)
}

/** Returns the body of an error response. */
export function faultAnswer({ code, message }: TokenFault): string {
  return JSON.stringify({ error: code, error_description: message, error_uri: '' })
}
