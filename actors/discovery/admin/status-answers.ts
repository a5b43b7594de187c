/** The supervisor's answers to questions of actors: forwards them to other actors and combines the answers. */
import type { CertificateAnswer, CertificateRequest, ServingCertificateRequest } from '../../../protocols/messages/authority.ts'
import type { PageQuestion, PageReply } from '../../../protocols/messages/pages.ts'
import type { Features } from '../../../src/config/features.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'
import { PageSources } from './page-sources.ts'

/** Returns the functions that answer the questions. */
export function statusAnswers(supervisor: Supervisor, features: Features, log: Logger) {
  const sources = new PageSources(supervisor, features.PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING)
  return {
    connections: async (withMetadata: boolean): Promise<ConnectionStatus[]> =>
      (await supervisor.askAll<ConnectionStatus[]>('xds-writer', 'connections', withMetadata)).flat(),
    signCertificate: (request: CertificateRequest) => supervisor.ask<CertificateAnswer>('certificate-authority', 'signCertificate', request),
    signServingCertificate: (request: ServingCertificateRequest) =>
      supervisor.ask<CertificateAnswer>('certificate-authority', 'signServingCertificate', request),
    debugPage: async (question: PageQuestion): Promise<PageReply> => {
      if (!features.ENABLE_DEBUG_ON_HTTP) return { status: 404, headers: {}, body: 'there is no such page' }
      const { answerCaller } = await import('./debug-pages.ts')
      const parts = { sources, admin: features.ENABLE_ADMIN_ENDPOINTS, log: log('default') }
      return answerCaller(parts, question, await sources.queue('mesh'))
    },
  }
}
