/** A cluster as the main thread has it: the connection, single calls, and the answers to actors on other threads. */
import type { StatePlace } from '../../../protocols/messages/authority.ts'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import type { ClusterOrigin, RemoteKey } from '../../../protocols/messages/orchestrator.ts'
import type { Features } from '../../../src/config/features.ts'
import { described } from '../../../src/policy/signed-token.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { MetricRegistry } from '../../runtime/metrics.ts'
import type { OtherReplicas } from '../admin/other-replicas.ts'
import { ClusterApi, requestSettings } from './cluster-api.ts'
import { ClusterConnection } from './cluster-connection.ts'
import { askHeld } from './held-elsewhere.ts'
import { RemoteClusters } from './remote-clusters.ts'
import { secretAccessAnswers } from './secret-access.ts'
import { type CallSecret, secretAnswers, secretCalls } from './secret-calls.ts'
import { signerRoots, signerRootsAnswers } from './signer-roots.ts'
import { SigningRequests } from './signing-requests.ts'
import { clusterReviews, reviewMetrics, reviewMs, TokenReviews } from './token-reviews.ts'
import { webhookAnswers } from './webhook-calls.ts'

/** The signer of the orchestrator, and what verifies what it signs. */
export interface ClusterSigner {
  readonly requests: SigningRequests
  readonly roots: () => Promise<string>
}

/** What the answers depend on. */
type AnswerFeatures = Pick<Features, 'ORCH_SIGNER' | 'MESH_DOMAIN' | 'CLUSTER_ID' | 'PILOT_REMOTE_CLUSTER_TIMEOUT' | 'MESHD_HELD_CLUSTER_TIMEOUT'>

/** The cluster of the service. */
export class MainCluster {
  readonly connection: ClusterConnection
  /** For the calls of the service itself. */
  readonly api: ClusterApi
  /** For what callers have reviewed: with a budget of requests of its own, so that it does not delay the calls of the service itself. */
  readonly #reviewApi: ClusterApi
  /** For signing requests, likewise. */
  readonly #signerApi: ClusterApi
  /** For the status of configuration objects, whose writer keeps to a rate of its own. */
  readonly statusApi: ClusterApi
  /** For WorkloadEntries of workloads that register themselves, likewise, and for the Leases of replicas. */
  readonly registrationApi: ClusterApi
  #signer: ClusterSigner | undefined
  readonly #options: DiscoveryOptions
  /** The other clusters, once the answers were asked for; undefined: they are not followed. */
  remotes: RemoteClusters | undefined
  /** Calls about the Secrets that have the state of the control plane, and their namespace; undefined where it is in a directory. */
  readonly secrets: { readonly call: CallSecret; readonly namespace: string } | undefined
  /** Calls about the Secrets in which an authority may be plugged in (`USE_REMOTE_CERTS`), beside a state in a directory. */
  readonly plugged: { readonly call: CallSecret; readonly namespace: string } | undefined

  private constructor(connection: ClusterConnection, options: DiscoveryOptions, place: StatePlace, pluggedNamespace: string | undefined) {
    this.connection = connection
    this.#options = options
    this.api = new ClusterApi(connection, requestSettings(options))
    this.#reviewApi = new ClusterApi(connection, requestSettings(options), reviewMs)
    this.#signerApi = new ClusterApi(connection, requestSettings(options))
    this.statusApi = new ClusterApi(connection, { ...requestSettings(options), perSecond: 0 })
    this.registrationApi = new ClusterApi(connection, { ...requestSettings(options), perSecond: 0 })
    const secretsOf = (namespace: string) => ({ call: secretCalls(this.api, namespace), namespace })
    if (place.kind === 'secrets') this.secrets = secretsOf(place.namespace)
    else if (pluggedNamespace !== undefined) this.plugged = secretsOf(pluggedNamespace)
  }

  /**
   * Opens the cluster; `place`: where the state of the control plane is, `pluggedNamespace`: the namespace whose Secrets may have an authority
   * where that is a directory. Rejects when its configuration cannot be used, which is told at once,
   * and not by a service that stays not ready.
   */
  static async open(origin: ClusterOrigin, options: DiscoveryOptions, place: StatePlace, pluggedNamespace?: string): Promise<MainCluster> {
    const connection = new ClusterConnection(origin)
    await connection.access(false)
    return new MainCluster(connection, options, place, pluggedNamespace)
  }

  /** The answers to actors. Connections and requests are logged from now on. `others`: the other replicas, where they are asked. */
  answers(log: Logger, metrics: MetricRegistry, features: AnswerFeatures, others?: OtherReplicas) {
    const { ORCH_SIGNER: signer, MESH_DOMAIN: domain, CLUSTER_ID: own } = features
    const { PILOT_REMOTE_CLUSTER_TIMEOUT: timeoutMs, MESHD_HELD_CLUSTER_TIMEOUT: heldMs } = features
    for (const api of [this.api, this.#reviewApi, this.#signerApi, this.statusApi, this.registrationApi]) api.logTo(log('klog'))
    const { call } = this.secrets ?? this.plugged ?? {}
    const secrets = call ? secretAnswers(call) : {}
    const ofReviews = reviewMetrics(metrics)
    const tokens = new TokenReviews(clusterReviews(this.#reviewApi), log, ofReviews)
    if (this.#options.registries.includes('Orchestrator')) {
      const { clusterRegistriesNamespace: namespace, resync: auditMs } = this.#options
      const heldElsewhere = others && askHeld(others, 'heldClusters')
      const parts = { namespace, own, api: this.api, timeoutMs, heldMs, heldElsewhere, settings: requestSettings(this.#options), auditMs }
      this.remotes = new RemoteClusters({ ...parts, log, metrics, reviewMetrics: ofReviews })
    }
    if (signer !== '') {
      const requests = new SigningRequests({ api: this.#signerApi, signer, domain, log, metrics })
      this.#signer = { requests, roots: signerRoots(this.connection) }
    }
    const signs = this.#signer
    return {
      ...{ ...this.connection.answers, ...secrets, ...secretAccessAnswers(this.#reviewApi, (cluster) => this.#remoteApi(cluster), log) },
      ...{ ...this.remotes?.answers, ...reviewAnswers(own, tokens, this.remotes) },
      ...webhookAnswers(this.api, (cluster) => this.remotes?.apiOf(cluster)),
      ...(signs && { ...signs.requests.answers, ...signerRootsAnswers(signs.roots) }),
    }
  }

  #remoteApi(cluster: string): ClusterApi {
    const api = this.remotes?.apiOf(cluster)
    if (!api) throw new Error(`no remote secret names the cluster ${cluster}`)
    return api
  }

  /** The signer of `ORCH_SIGNER`, once the answers were asked for; undefined: none is set. */
  get signer(): ClusterSigner | undefined {
    return this.#signer
  }

  /** What is wrong with remote secrets, for the body of `/ready`. */
  readonly troubles = (): readonly string[] => this.remotes?.troubles ?? []

  /** The keys of remote secrets, and what became of each. */
  readonly remoteKeys = (): readonly RemoteKey[] => this.remotes?.keys ?? []

  /** Ends the connections. Calls under way fail. */
  close(): void {
    this.remotes?.close()
    this.api.close()
    this.#reviewApi.close()
    this.#signerApi.close()
    this.statusApi.close()
    this.registrationApi.close()
  }
}

/** Has tokens reviewed by the API server of the cluster that the call names. What is accepted carries that cluster (docs/identity.md, I9). */
function reviewAnswers(own: string, tokens: TokenReviews, remotes: RemoteClusters | undefined): BoundedAnswers<'reviewToken'> {
  return {
    async reviewToken(question, asking) {
      const { cluster = own } = question
      const isOwn = cluster === own
      const verdict = await (isOwn
        ? tokens.answers.reviewToken(question, asking)
        : (remotes?.review(question, asking) ?? {
            refused: `the call is for the cluster ${described(cluster)} (metadata clusterid), and other clusters are not followed`,
            unavailable: false,
          }))
      return 'account' in verdict ? { ...verdict, cluster: { id: cluster, isOwn } } : verdict
    },
  }
}
