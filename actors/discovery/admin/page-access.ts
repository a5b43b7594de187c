/**
 * Access control of the debug pages (docs/operation.md, "Debug pages"): by the admin socket, by a token of the mesh, or by being a local
 * caller.
 */

import type { Caller, TokenAnswer, TokenQuestion } from '../../../protocols/messages/identity.ts'
import { changeHeader } from '../../../protocols/messages/pages.ts'
import { type MeshIdentityNames, mayRead } from '../../../src/identity/access.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { clientKey } from '../../../src/model/client-address.ts'
import { isLoopbackAddress, isLoopbackHost, isPassedOn } from '../../http/loopback.ts'
import { Page, type PageRequest } from '../../http/page-server.ts'
import type { PeerPrograms } from '../../http/peer-programs.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** A caller of the debug pages. */
export interface Viewer {
  /** For the log. */
  readonly name: string
  /** Whether the caller may read mesh-wide pages. */
  readonly isOperator: boolean
  /** Whether an operator may also perform actions: with a credential or over the admin socket, and not for being a local caller. */
  readonly mayAct: boolean
  /** Whether the caller may read what belongs to a namespace. */
  readonly sees: (namespace: string) => boolean
  /** Whether no web page of another site can have made a browser send it: it has a token or {@link changeHeader}, or came over the socket. */
  readonly isDeliberate: boolean
}

/** What access depends on: the headers, and the ends of the connection. */
export type AccessRequest = Pick<PageRequest, 'headers' | 'connection'>

/** Authenticates a request: returns its viewer, or the page that refuses it. */
export type Admit = (request: AccessRequest) => Promise<Viewer | Page>

/** Admits every caller of the admin socket as an operator; access to the socket is controlled by its file mode. */
export const admitOperator: Admit = async () => operator('the admin socket', { mayAct: true })

/** Dependencies and settings of {@link admitOverNetwork}. */
export interface AdmissionParts {
  /** Whether local callers need no credential (`ENABLE_DEBUG_ON_LOOPBACK`). */
  readonly onLoopback: boolean
  /** Verifies a token. Rejects when the authenticator does not answer. */
  readonly authenticate: (question: TokenQuestion) => Promise<TokenAnswer>
  /** Returns the present mesh names. Rejects when they are unknown. */
  readonly names: () => Promise<MeshIdentityNames>
  /** Looks up the program of a local caller. */
  readonly peers: Pick<PeerPrograms, 'of'>
  readonly warn: (line: string) => void
}

/**
 * Admits requests over TCP. A token (`authorization: Bearer`), if present, decides alone. Without a token, a request is admitted as that of
 * an operator who may read and not act, if `onLoopback` is set, both ends of the connection have loopback addresses, no sidecar has
 * forwarded it, `Host` is a loopback name (against DNS rebinding), no page of another site sent it (Fetch Metadata, RFC 6454), and no
 * proxy is at the other end of the connection, as far as the system shows that. All other requests are answered with 401, 403 or 503.
 */
export function admitOverNetwork({ onLoopback, authenticate, names, peers, warn }: AdmissionParts): Admit {
  const lines = new LineBounds()
  const refuse = (request: AccessRequest, page: Page, reason: string) => {
    const from = request.connection.remoteAddress ?? ''
    const line = lines.bounded(`${from}|${page.body}`, `debug page refused to ${from}: ${reason}`, monotonicMs())
    if (line !== undefined) warn(line)
    return page
  }
  return async (request) => {
    const { authorization } = request.headers
    if (authorization !== undefined) {
      const token = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1]
      if (token === undefined) return refuse(request, unauthenticated('the authorization header has no bearer token'), 'no bearer token')
      try {
        const answer = await authenticate({ token, service: 'pages', client: clientKey(request.connection.remoteAddress) })
        if ('caller' in answer) return viewerOf(answer.caller, await names(), true)
        if (!answer.unavailable) return refuse(request, unauthenticated('the token is not accepted'), answer.refused)
        return refuse(request, unavailable, answer.refused)
      } catch (error) {
        return refuse(request, unavailable, (error as Error).message)
      }
    }
    const { localAddress, remoteAddress } = request.connection
    if (!onLoopback || !isLoopbackAddress(localAddress) || !isLoopbackAddress(remoteAddress) || isPassedOn(remoteAddress))
      return refuse(request, tokenRequired, 'no token')
    const foreign = foreignOrigin(request)
    if (foreign !== undefined) return refuse(request, new Page(foreign, undefined, 403), foreign)
    switch (await peers.of(request.connection)) {
      case 'suspect':
        return refuse(request, forwarded, 'no token, and the program at the other end listens on a port of proxies')
      case 'elsewhere':
        return refuse(request, tokenRequired, 'no token, and no socket of this machine is at the other end')
      case 'busy':
        return refuse(request, notFoundOut, 'no token, and the program at the other end was not found within the bounds')
      default:
        return operator('a caller of this machine', { mayAct: false })
    }
  }
}

/** An operator. `mayAct`: whether also with a credential, so that actions are permitted. */
export const operator = (name: string, { mayAct }: { readonly mayAct: boolean }): Viewer => ({
  ...{ name, mayAct, isOperator: true, isDeliberate: mayAct },
  sees: () => true,
})

/** Returns the viewer for a caller, according to the mesh names. */
export function viewerOf(caller: Caller, names: MeshIdentityNames, isDeliberate: boolean): Viewer {
  return {
    isDeliberate,
    name: caller.identities.join(', '),
    isOperator: mayRead(caller, undefined, names),
    mayAct: true,
    sees: (namespace) => mayRead(caller, namespace, names),
  }
}

/** Why a local request may have been sent by another site's page; undefined when it was not. */
function foreignOrigin({ headers }: AccessRequest): string | undefined {
  const { host = '', origin } = headers
  if (!isLoopbackHost(host)) return 'without a token, Host must be localhost or a loopback address'
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'without a token, requests from pages of other sites are refused'
  if (origin !== undefined && origin !== `http://${host}`) return 'without a token, requests from pages of other origins are refused'
  return undefined
}

const unauthenticated = (reason: string): Page => new Page(reason, undefined, 401, { 'WWW-Authenticate': 'Bearer' })
const tokenRequired = unauthenticated('a token of the mesh is required (header authorization: Bearer)')
const forwarded = new Page(
  'the program at the other end of this connection listens on a port of proxies, which pass requests of others on: use a token of the mesh, or the admin socket (pilot-discovery request)',
  undefined,
  403,
)
const notFoundOut = new Page(
  'which program asks was not found out in time: ask again, use a token of the mesh, or the admin socket (pilot-discovery request)',
  undefined,
  503,
)
const unavailable = new Page('tokens cannot be checked at present', undefined, 503)

/** The answer to a caller who is no operator, for mesh-wide pages and actions. */
export const forNoOperator: Page = new Page('this concerns the whole mesh: only callers of the root namespace may use it', undefined, 403)

/** The answer to an action that is asked for without a credential. `request`: how it is asked for over the admin socket. */
export const notEntitled = (request: string): Page =>
  new Page(
    `this action changes state: it needs the admin socket (pilot-discovery request ${request}) or a token of the root namespace`,
    undefined,
    403,
  )

/** The answer to a changing request that may be a cross-site request forgery. */
export const notDeliberate: Page = new Page(`this action changes state: the request must have the header ${changeHeader}`, undefined, 403)

/** The answer to a caller who names a namespace that is not its own, whether or not it exists. */
export function forbiddenNamespace(namespace: string): Page {
  return new Page(`namespace ${JSON.stringify(namespace.slice(0, 100))}: callers see their own namespace only`, undefined, 403)
}
