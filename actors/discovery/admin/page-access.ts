/** Who may see which debug pages (docs/operation.md, "Debug pages"): by the admin socket, by a token of the mesh, or from this machine. */

import type { Caller, TokenAnswer, TokenQuestion } from '../../../protocols/messages/identity.ts'
import { changeHeader } from '../../../protocols/messages/pages.ts'
import { type MeshIdentityNames, mayRead } from '../../../src/identity/access.ts'
import { LineBounds } from '../../../src/logging/line-bounds.ts'
import { isLoopbackAddress, isLoopbackHost, isPassedOn } from '../../http/loopback.ts'
import { Page, type PageRequest } from '../../http/page-server.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** Who looks at a page. */
export interface Viewer {
  /** For the log. */
  readonly name: string
  /** Whether it may see what is about the mesh as a whole, and may act. */
  readonly isOperator: boolean
  /** Whether it may see what belongs to a namespace. */
  readonly sees: (namespace: string) => boolean
  /** Whether no page of another site can have made a browser send the request: it has a token, or {@link changeHeader}. */
  readonly isDeliberate: boolean
}

/** Finds out who sends a request, or answers it. */
export type Admit = (request: PageRequest) => Promise<Viewer | Page>

/** Whoever may connect to the admin socket may see and do everything. */
export const admitOperator: Admit = async () => operator('the admin socket', true)

/** What a request over the network is judged by. */
export interface AdmissionParts {
  /** Whether callers of this machine need no credential (`ENABLE_DEBUG_ON_LOOPBACK`). */
  readonly onLoopback: boolean
  /** Rejects when nobody can answer. */
  readonly authenticate: (question: TokenQuestion) => Promise<TokenAnswer>
  /** The names of the mesh at present. Rejects when they are not known. */
  readonly names: () => Promise<MeshIdentityNames>
  readonly warn: (line: string) => void
}

/**
 * Admits requests over TCP. A token (`authorization: Bearer`) decides alone. Without one, a request is an operator's where that is
 * allowed on this machine: both ends of the connection have loopback addresses, no sidecar has passed it on, `Host` is a loopback name (a name that an attacker lets
 * point to 127.0.0.1 is none), and no other site's page sends it (Fetch Metadata, RFC 6454). Everybody else is answered with 401 or 403.
 */
export function admitOverNetwork({ onLoopback, authenticate, names, warn }: AdmissionParts): Admit {
  const lines = new LineBounds()
  const refuse = (request: PageRequest, page: Page, reason: string) => {
    const from = request.remoteAddress ?? ''
    const told = lines.take(`${from}|${page.body}`, monotonicMs())
    if (told !== 'no') warn(`debug page refused to ${from}: ${reason}${told === 'last' ? '; more of this is not logged for ten seconds' : ''}`)
    return page
  }
  return async (request) => {
    const { authorization } = request.headers
    if (authorization !== undefined) {
      const token = /^Bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1]
      if (token === undefined) return refuse(request, unauthenticated('authorization holds no bearer token'), 'no bearer token')
      try {
        const answer = await authenticate({ token, service: 'pages' })
        if ('caller' in answer) return viewerOf(answer.caller, await names(), true)
        if (!answer.unavailable) return refuse(request, unauthenticated('the token is not accepted'), answer.refused)
        return refuse(request, unavailable, answer.refused)
      } catch (error) {
        return refuse(request, unavailable, (error as Error).message)
      }
    }
    if (!onLoopback || !isLoopbackAddress(request.localAddress) || !isLoopbackAddress(request.remoteAddress) || isPassedOn(request.remoteAddress))
      return refuse(request, unauthenticated('a token of the mesh is needed'), 'no token')
    const foreign = foreignOrigin(request)
    return foreign === undefined
      ? operator('a caller of this machine', request.headers[changeHeader] !== undefined)
      : refuse(request, new Page(foreign, undefined, 403), foreign)
  }
}

const operator = (name: string, isDeliberate: boolean): Viewer => ({ name, isOperator: true, sees: () => true, isDeliberate })

/** A caller, by what it may see of a mesh of these names. */
export function viewerOf(caller: Caller, names: MeshIdentityNames, isDeliberate: boolean): Viewer {
  return {
    isDeliberate,
    name: caller.identities.join(', '),
    isOperator: mayRead(caller, undefined, names),
    sees: (namespace) => mayRead(caller, namespace, names),
  }
}

/** Why a request of this machine is not its user's own; undefined when it is. */
function foreignOrigin({ headers }: PageRequest): string | undefined {
  const { host = '', origin } = headers
  if (!isLoopbackHost(host)) return 'without a token, Host must be localhost or a loopback address'
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return 'without a token, pages of other sites may not ask this one'
  if (origin !== undefined && origin !== `http://${host}`) return 'without a token, pages of other origins may not ask this one'
  return undefined
}

const unauthenticated = (reason: string): Page => new Page(reason, undefined, 401, { 'WWW-Authenticate': 'Bearer' })
const unavailable = new Page('tokens cannot be checked at present', undefined, 503)

/** The answer to a viewer who may not see what is about the mesh as a whole, or may not act. */
export const forNoOperator: Page = new Page('this is about the mesh as a whole: it is for callers of the root namespace', undefined, 403)

/** The answer to a request that would change something and that another site's page may have made a browser send. */
export const notDeliberate: Page = new Page(`this changes something: a request for it has the header ${changeHeader}`, undefined, 403)

/** The answer to a viewer who asks for a namespace that is not its own, whether it is there or not. */
export function forbiddenNamespace(namespace: string): Page {
  return new Page(`namespace ${JSON.stringify(namespace.slice(0, 100))}: callers see their own namespace only`, undefined, 403)
}
