/**
 * The page `/token` of the admin socket: a workload token and the roots, for agents on this machine (docs/operation.md, "The admin
 * socket").
 */
import type { AuthorityStatus } from '../../../protocols/messages/authority-status.ts'
import type { LocalToken } from '../../../protocols/messages/identity.ts'
import { isAccount, isNamespace } from '../../../src/identity/spiffe-id.ts'
import { type Answers, Page } from '../../http/page-server.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { within } from '../../runtime/timers.ts'
import type { PageSources } from './page-sources.ts'

/** Lifetime of the tokens, in milliseconds. */
const lifeMs = 3_600_000

/**
 * How long a request waits until the service is ready, in milliseconds. An agent that is started together with the service gets its token
 * when it can use it, and has no failure to report before.
 */
const startMs = 20_000

/**
 * Issues a token for the workload that a form names (`namespace`, `account`), signed with the key of this machine. Served on the admin
 * socket only: whoever can connect to it can read the key as well, and no credential over the network gives access to this page. `ready`
 * resolves when the service is ready for the first time.
 */
export function tokenPage(sources: PageSources, log: ScopedLogger, ready: Promise<void>): Answers {
  return {
    post: async (request) => {
      const form = await request.parameters()
      const [namespace, account] = [form.get('namespace') ?? '', form.get('account') ?? '']
      if (!isNamespace(namespace)) return refused(`namespace: ${JSON.stringify(namespace.slice(0, 100))} is not the name of a namespace`)
      if (!isAccount(account)) return refused(`account: ${JSON.stringify(account.slice(0, 100))} is not the name of a service account`)
      await within(startMs, ready)
      const roots = await rootsOf(sources)
      if (roots === undefined) return new Page('the certificate authority is not ready', undefined, 503)
      const { issueToken } = await import('../tokens/token-issuer.ts')
      const token = await issueToken({ namespace, account, audience: '', ttlMs: lifeMs, output: '' })
      log.info(`token made for ${namespace}/${account}, asked for over the admin socket`)
      const answer: LocalToken = { token, roots }
      return new Page(JSON.stringify(answer), 'application/json; charset=utf-8', 200, { 'Cache-Control': 'no-store' })
    },
  }
}

const refused = (reason: string): Page => new Page(reason, undefined, 422)

/** The distributed roots of the authority in this process: empty without an authority, undefined while it has none. */
async function rootsOf(sources: PageSources): Promise<string | undefined> {
  const page = await sources.authority<AuthorityStatus | undefined>('status')
  if (page instanceof Page) return ''
  return page?.roots
    .filter(({ uses }) => uses.includes('sent to workloads'))
    .map(({ certificate }) => certificate)
    .join('')
}
