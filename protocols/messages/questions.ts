/** The questions with deadlines of their own: who answers what, and how long the asker waits. */
import type { ReviewCall, ReviewReply } from './admission.ts'
import type { CertificateAnswer, CertificateRequest, ServingCertificateRequest } from './authority.ts'
import type { TokenAnswer, TokenKeySet, TokenKeysQuestion, TokenQuestion, TokenReviewQuestion, TokenVerdict } from './identity.ts'
import type { BundleOrder, BundleOutcome } from './injection.ts'
import type { Duty } from './leadership.ts'
import type { AskedGeneration, OthersCounted, StatusOrder, StatusOutcome } from './object-status.ts'
import type { ClusterAccess, IngressStatusAnswer, IngressStatusOrder } from './orchestrator.ts'
import type { EntryOrder, EntryOutcome, PresenceAnswer, PresenceOrder } from './registration.ts'
import type { StreamsElsewhere } from './replicas.ts'
import type { RootsWrite, RootsWriteOutcome } from './root-certificates.ts'
import type { SecretCall, SecretOutcome } from './secret-calls.ts'
import type { SecretReader } from './secrets.ts'
import type { CertificateOrder, CertificateOutcome, SignerAnswer, SignerOrder } from './signer.ts'
import type { ValidationStep, ValidationStepOutcome } from './validation-webhook.ts'

/**
 * The questions whose work is bounded by what is left of their deadline, by name. Each is answered with one more argument, which says how
 * much that is and when nobody waits for the answer any more. The writers ask the supervisor, which passes the question on.
 */
export interface BoundedQuestions {
  /** Both answered by the authenticator. */
  authenticate(question: TokenQuestion): TokenAnswer
  tokenKeys(question: TokenKeysQuestion): TokenKeySet
  /** Both answered by the certificate authority. */
  signCertificate(request: CertificateRequest): CertificateAnswer
  signServingCertificate(request: ServingCertificateRequest): CertificateAnswer
  /** Answered by the webhooks. */
  review(call: ReviewCall): ReviewReply
  /** Answered by the main thread. `isRefused`: the API server has refused the last credential. */
  clusterAccess(isRefused: boolean): ClusterAccess
  /** Answered by the main thread: how the API server of another cluster is reached, by its id. */
  remoteAccess(cluster: string, isRefused: boolean): ClusterAccess
  /** Answered by the main thread: whether a remote secret names a cluster, by its id. Rejects while that is not known. */
  isNamed(cluster: string): boolean
  /** Answered by the main thread: the term in which this process leads (0: it does not), as soon as it is another than `known`, or after a while. */
  leadership(duty: Duty, known: number): number
  /** Answered by the main thread: whether the API server says that a service account may list the Secrets of its namespace. */
  secretAccess(reader: SecretReader): boolean
  /** Answered by the main thread, which writes the status of an Ingress. */
  writeIngressStatus(order: IngressStatusOrder): IngressStatusAnswer
  /** Answered by the main thread, which writes the status of a configuration object. */
  writeStatus(order: StatusOrder): StatusOutcome
  /** Answered by the main thread, which asks the other replicas how many of their proxies have generations of objects. */
  othersCounted(asked: readonly AskedGeneration[]): OthersCounted
  /** Answered by the main thread, which asks the other replicas which proxies are connected to them. */
  streamsElsewhere(): StreamsElsewhere
  /** Both answered by the main thread: creates, changes or deletes a WorkloadEntry; keeps the Lease of this replica and lists those of all. */
  callEntry(order: EntryOrder): EntryOutcome
  replicaPresence(order: PresenceOrder): PresenceAnswer
  /** Answered by the main thread, which has the API server review the token. */
  reviewToken(question: TokenReviewQuestion): TokenVerdict
  /** Answered by the main thread, of a service that keeps its state in Secrets. */
  secretCall(call: SecretCall): SecretOutcome
  /** Answered by the main thread. */
  writeRootConfigMap(order: RootsWrite): RootsWriteOutcome
  /** Answered by the main thread, which makes a CertificateSigningRequest and waits for its signer. */
  signBySigner(order: SignerOrder): SignerAnswer
  /** Answered by the main thread: the roots that verify what the signer signs, PEM. */
  signerRoots(): string
  /** Answered by the main thread, which keeps a Secret of `certificates` of the mesh configuration. */
  keepCertificate(order: CertificateOrder): CertificateOutcome
  /** Both answered by the main thread: the version of the API server (`v1.33.1`), and whether the CA bundle of webhooks was written. */
  clusterVersion(): string
  writeWebhookBundle(order: BundleOrder): BundleOutcome
  /** Answered by the main thread. */
  keepValidationWebhook(step: ValidationStep): ValidationStepOutcome
}

/** How long the asker of a question waits for its answer, in milliseconds, if its own asker does not wait shorter. */
export const boundedQuestions: Readonly<Record<keyof BoundedQuestions, number>> = {
  // A token may wait for the first keys of its issuer, and for newer ones (docs/identity.md, K3).
  authenticate: 8000,
  tokenKeys: 4000,
  // A request may wait for its turn and then be signed, by a thread that may have to be started (docs/certificates.md, C3).
  signCertificate: 13_000,
  signServingCertificate: 13_000,
  // The asker has a deadline of its own, which the API server has given.
  review: 30_000,
  // The credential may come from a program that asks a server for it.
  clusterAccess: 30_000,
  remoteAccess: 5000,
  isNamed: 5000,
  // Whoever asks is told of a change, and asks again.
  leadership: 60_000,
  // A call may wait for its turn, and for a credential.
  writeIngressStatus: 25_000,
  writeStatus: 25_000,
  othersCounted: 10_000,
  streamsElsewhere: 10_000,
  // A call may wait for a credential.
  callEntry: 25_000,
  // Up to four calls, and one for each dead replica.
  replicaPresence: 60_000,
  // A review may wait for its turn.
  secretAccess: 7000,
  reviewToken: 7000,
  // A call takes 10 s at most, and is repeated once with another credential.
  secretCall: 25_000,
  // A call waits for the budget of requests, and for its answer.
  writeRootConfigMap: 30_000,
  // A signer has what is left of the question that needs the certificate.
  signBySigner: 60_000,
  // They may come from a file, or with the credential.
  signerRoots: 30_000,
  // The Secret is read and written beside that.
  keepCertificate: 120_000,
  clusterVersion: 25_000,
  writeWebhookBundle: 25_000,
  // Up to four calls.
  keepValidationWebhook: 60_000,
}

/** How long the asker of any other question waits, in milliseconds. */
export const usualDeadline = 5000
