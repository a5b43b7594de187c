/** What the supervisor answers when actors ask: the state of all connections, whichever writer has them. */
import type { Supervisor } from '../../runtime/supervisor.ts'
import type { ConnectionStatus } from '../xds-writer/connection-debug.ts'

/** The answers. */
export function statusAnswers(supervisor: Supervisor) {
  return {
    connections: async (withMetadata: boolean): Promise<ConnectionStatus[]> =>
      (await supervisor.askAll<ConnectionStatus[]>('xds-writer', 'connections', withMetadata)).flat(),
  }
}
