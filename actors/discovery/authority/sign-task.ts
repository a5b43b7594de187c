/**
 * Pool task: all operations that need a private key of the certificate authority. Keys are created and read here, in signer threads, and
 * leave them only as files; where keys are stored in Secrets, a task brings its key, and the answer has that of a new root. Else answers
 * contain public data.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto'
import { setPriority } from 'node:os'
import { readCertificates, type SigningKey } from '../../../src/ca/certificate.ts'
import { IdentityFault, issueCross, issueRoot, issueServing, issueWorkload, signingKeyOf } from '../../../src/ca/issue.ts'
import type { Validity } from '../../../src/ca/lifetime.ts'
import { RequestFault } from '../../../src/ca/signing-request.ts'
import { fingerprintOf, pemOf } from '../../../src/identity/pem.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { privateKeyOf, readPrivateKey } from '../own-keys/private-key-file.ts'
import { readKey, storeKey } from './key-storage.ts'
import type { KeyPlace } from './storage.ts'

/** Location of the private key of a signing certificate: in the key storage, by the certificate's id, or in a separate file. */
export type KeyReference = KeyPlace | { readonly kind: 'file'; readonly path: string }

/** A signing certificate: public data that any thread may have. */
export interface SigningReference {
  /** SHA-256 fingerprint of the certificate. */
  readonly id: string
  /** PEM. */
  readonly certificate: string
  readonly key: KeyReference
}

/** A signing certificate, and its key in PEM where that is in no file that a thread can read. */
export interface KeyedReference extends SigningReference {
  readonly pem?: string | undefined
}

/** One certificate to be issued. */
export interface SigningJob extends Validity {
  /** The signing request, PEM. */
  readonly csr: string
  /** The identity of the workload; undefined for a serving certificate of this process. */
  readonly identity: string | undefined
  /** The other cluster that vouches for the identity; undefined: the own one. */
  readonly cluster: string | undefined
  /** Monotonic milliseconds after which nobody waits for it. The threads of a process share the clock. */
  readonly until: number
}

/** A task of a signer thread. */
export type SignerTask =
  /** Jobs that are marked in `gone` (a byte each, 1) before their turn, or whose time is over then, are left out: nobody waits for them any more. */
  | { readonly type: 'sign'; readonly by: KeyedReference; readonly jobs: readonly SigningJob[]; readonly gone: SharedArrayBuffer }
  /**
   * Reads a key in every thread of the pool: each task waits until `threads` tasks have started, counted in `arrived`, so each thread
   * runs one of them.
   */
  | { readonly type: 'adopt'; readonly by: KeyedReference; readonly threads: number; readonly arrived: SharedArrayBuffer }
  | {
      readonly type: 'make-root'
      readonly place: KeyPlace
      readonly organization: string
      /** Size of the RSA key. */
      readonly bits: number
      readonly validity: Validity
      /** The certificate that cross-signs the new root's name and key, and the validity of the cross-signature. */
      readonly cross?: { readonly by: KeyedReference; readonly validity: Validity }
    }

/** The outcome of a job: the certificate in PEM and its serial number in hexadecimal, or the reason why there is none. */
export type JobOutcome =
  | { readonly certificate: string; readonly serial: string }
  | { readonly fault: 'request' | 'identity' | 'signing' | 'gone'; readonly message: string }

/** A created root; its key is stored under `id`. */
export interface MadeRoot {
  readonly id: string
  /** PEM, like `cross`, which is empty without a cross-signature. */
  readonly certificate: string
  readonly cross: string
}

/**
 * The answer to a task, with the key of a new root (PEM) where a thread cannot store it, or an error that says which key cannot be
 * used and why. There is no answer from a thread that dies.
 */
export type SignerAnswer =
  | { readonly outcomes: readonly JobOutcome[] }
  | { readonly made: MadeRoot; readonly key?: string }
  | { readonly error: string }

/** Maximum number of keys cached in a thread. */
const maxKeys = 8
/** How long a thread waits for another one to start, in milliseconds. */
const longestMeeting = 5000
/** Number of serial numbers for which random bytes are drawn at a time. */
const serialsAtOnce = 256

/** The priority (`nice`) of a thread after its first workload certificate. */
const workloadPriority = 10

let isLowered = false
const known = new Map<string, SigningKey>()
let chance = Buffer.alloc(0)

/** Runs on a thread of the pool. Errors name the file of an unusable key and do not contain its content. */
export default function run(task: SignerTask): SignerAnswer {
  try {
    if (task.type === 'make-root') return makeRoot(task)
    if (task.type === 'adopt') meet(task)
    const key = keyOf(task.by)
    return { outcomes: task.type === 'sign' ? outcomes(task, key) : [] }
  } catch (error) {
    return { error: (error as Error).message }
  }
}

/** Waits for the other threads. Throws when they do not start in time. */
function meet({ threads, arrived }: Extract<SignerTask, { type: 'adopt' }>): void {
  const count = new Int32Array(arrived)
  Atomics.add(count, 0, 1)
  Atomics.notify(count, 0)
  for (let seen = Atomics.load(count, 0); seen < threads; seen = Atomics.load(count, 0))
    if (Atomics.wait(count, 0, seen, longestMeeting) === 'timed-out') throw new Error('the other signer threads did not start in time')
}

/**
 * Lowers the priority of the thread when it signs for the first workload, where the system has priorities per thread, so that signing
 * does not delay the rest of the process. The root and serving certificates, for which the start waits, are signed before that.
 */
function giveWay(): void {
  if (isLowered || process.platform !== 'linux') return
  isLowered = true
  setPriority(0, workloadPriority)
}

function outcomes({ jobs, gone }: Extract<SignerTask, { type: 'sign' }>, key: SigningKey): JobOutcome[] {
  const marks = new Uint8Array(gone)
  return jobs.map((job, index) =>
    Atomics.load(marks, index) === 0 && monotonicMs() < job.until
      ? outcome(job, key)
      : { fault: 'gone', message: 'nobody waits for the certificate' },
  )
}

function outcome({ csr, identity, cluster, notBefore, notAfter }: SigningJob, key: SigningKey): JobOutcome {
  if (identity !== undefined) giveWay()
  const serial = newSerial()
  const grant = { serial, notBefore, notAfter }
  try {
    const made = identity === undefined ? issueServing(csr, grant, key) : issueWorkload(csr, identity, grant, key, cluster)
    return { certificate: pemOf('CERTIFICATE', made), serial: serial.toString('hex') }
  } catch (error) {
    const fault = error instanceof RequestFault ? 'request' : error instanceof IdentityFault ? 'identity' : 'signing'
    return { fault, message: (error as Error).message }
  }
}

/** 16 random bytes, the first of which is not zero: all programs write the number with as many digits. */
function newSerial(): Buffer {
  if (chance.length === 0) chance = randomBytes(16 * serialsAtOnce)
  const serial = Buffer.from(chance.subarray(0, 16))
  chance = chance.subarray(16)
  serial[0] ||= 1
  return serial
}

function makeRoot({ place, organization, bits, validity, cross }: Extract<SignerTask, { type: 'make-root' }>): SignerAnswer {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  const encoded = issueRoot(organization, { serial: newSerial(), ...validity }, privateKey)
  const certificate = pemOf('CERTIFICATE', encoded)
  const [root] = readCertificates(certificate)
  const crossed = cross && root && issueCross(root, { serial: newSerial(), ...cross.validity }, keyOf(cross.by))
  const id = fingerprintOf(certificate)
  const made = { id, certificate, cross: crossed ? pemOf('CERTIFICATE', crossed) : '' }
  if (place.kind === 'tasks') return { made, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string }
  storeKey(place, id, privateKey)
  return { made }
}

function readKeyOf({ id, key, pem }: KeyedReference): KeyObject {
  if (key.kind === 'file') return readPrivateKey(key.path, 'given')
  if (key.kind === 'directory') return readKey(key, id)
  if (pem === undefined) throw new Error(`the key ${id} is in no Secret`)
  return privateKeyOf(pem, `the key ${id}`)
}

/** Returns the key of a signing certificate. Throws when the key does not belong to the certificate. */
function keyOf(by: KeyedReference): SigningKey {
  const { id, certificate, key } = by
  const found = known.get(id)
  if (found) return found
  const privateKey = readKeyOf(by)
  if (!new X509Certificate(certificate).checkPrivateKey(privateKey))
    throw new Error(`${key.kind === 'file' ? key.path : `the key ${id}`}: is not the key of the signing certificate`)
  const [signing] = readCertificates(certificate)
  const made = signingKeyOf(signing as NonNullable<typeof signing>, privateKey)
  if (known.size >= maxKeys) known.clear()
  known.set(id, made)
  return made
}
