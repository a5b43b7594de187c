/** The exchange of this replica of discovery with the others of its revision, where it is switched on (`MESHD_REPLICA_ADDRESS`; docs/operation.md, A1 to A6). */
import type { ProcessSecrets } from '../../../protocols/messages/config.ts'
import type { Features } from '../../../src/config/features.ts'
import { presenceTimes } from '../../../src/orchestrator/live-replicas.ts'
import { replicaAddress } from '../../../src/orchestrator/replica-answers.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Logger, ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { OtherReplicas } from '../admin/other-replicas.ts'
import { type AnswerReplica, ReplicaPort, replicaKey } from '../admin/replica-port.ts'
import type { ReplicaPresence } from '../registrar/replica-presence.ts'

/** What the exchange depends on. */
export interface GivenReplicas {
  readonly presence: ReplicaPresence
  readonly secrets: ProcessSecrets
  readonly namespace: string
  readonly features: Pick<Features, 'MESHD_REPLICA_ADDRESS' | 'REVISION' | 'PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION'>
  readonly log: Logger
}

/** The running exchange. */
export interface ReplicaExchange {
  readonly others: OtherReplicas
  /** What answers other replicas from now on. */
  answerWith(answer: AnswerReplica): void
  close(): Promise<void>
}

/** Starts the exchange; undefined: it is not switched on. Rejects when the address cannot be used. */
export async function replicaExchange({ presence, secrets, namespace, features, log: logOf }: GivenReplicas): Promise<ReplicaExchange | undefined> {
  const { MESHD_REPLICA_ADDRESS: address, REVISION: revision, PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION: isRenewed } = features
  if (address === '') return undefined
  const log = logOf('default')
  const place = replicaAddress(address)
  if (!place) throw new Error(`environment variable MESHD_REPLICA_ADDRESS: ${JSON.stringify(address)} is not <host>:<port>`)
  const key = replicaKey(secrets, namespace, revision)
  const port = new ReplicaPort(key)
  const listened = await port.listen(place.host, place.port).catch((error: Error) => {
    throw new Error(`environment variable MESHD_REPLICA_ADDRESS: ${error.message}`, { cause: error })
  })
  presence.address = `${place.host}:${listened}`
  const others = new OtherReplicas({ own: presence.replica, revision, key })
  presence.listed = (leases, askedAt) => others.listed(leases, askedAt, monotonicMs())
  log.info(`other replicas ask this one, ${presence.replica}, at ${presence.address}`)
  // The registrar renews the Lease of this replica and lists those of all.
  const renewal = isRenewed ? undefined : renewed(presence, others, log)
  return {
    others,
    answerWith: (answer) => port.answerWith(answer),
    async close() {
      renewal?.close()
      await port.close()
    },
  }
}

/** Renews the Lease of this replica and lists those of all, again and again. */
function renewed(presence: ReplicaPresence, others: OtherReplicas, log: ScopedLogger) {
  let timer: Timer | undefined
  let isClosed = false
  let trouble = ''
  const renew = async () => {
    try {
      await presence.answers.replicaPresence({ dead: others.removable(monotonicMs()) })
      if (trouble !== '') log.info('the Leases of replicas can be renewed and listed again')
      trouble = ''
    } catch (error) {
      const { message } = error as Error
      if (message !== trouble && !isClosed) log.error(`the other replicas are not known, and may not know this one: ${message}; it is tried again`)
      trouble = message
    }
    if (!isClosed) timer = after(presenceTimes.everyMs, () => void renew()).unref()
  }
  void renew()
  return {
    close() {
      isClosed = true
      timer?.cancel()
    },
  }
}
