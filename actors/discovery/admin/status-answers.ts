/** What the supervisor answers when actors ask: it hands questions on to who knows, and puts together what several know. */
import type { CertificateAnswer, CertificateRequest, ServingCertificateRequest } from '../../../protocols/messages/authority.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'

/** The answers. */
export function statusAnswers(supervisor: Supervisor) {
  return {
    connections: async (withMetadata: boolean): Promise<ConnectionStatus[]> =>
      (await supervisor.askAll<ConnectionStatus[]>('xds-writer', 'connections', withMetadata)).flat(),
    signCertificate: (request: CertificateRequest) => supervisor.ask<CertificateAnswer>('certificate-authority', 'signCertificate', request),
    signServingCertificate: (request: ServingCertificateRequest) =>
      supervisor.ask<CertificateAnswer>('certificate-authority', 'signServingCertificate', request),
  }
}
