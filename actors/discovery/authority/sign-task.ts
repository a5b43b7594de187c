/**
 * Pool task: everything that needs a private key of the certificate authority. Keys are made and read here, in signer threads, and leave
 * them as files only; what comes back is public.
 */
import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { setPriority } from 'node:os'
import { readCertificates, type SigningKey } from '../../../src/ca/certificate.ts'
import { IdentityFault, issueCross, issueRoot, issueServing, issueWorkload, signingKeyOf } from '../../../src/ca/issue.ts'
import type { Validity } from '../../../src/ca/lifetime.ts'
import { RequestFault } from '../../../src/ca/signing-request.ts'
import { fingerprintOf, pemOf } from '../../../src/identity/pem.ts'
import { readPrivateKey } from '../private-key-file.ts'
import { readKey, storeKey } from './key-storage.ts'
import type { KeyPlace } from './storage.ts'

/** Where the private key of a signing certificate is: among those of the storage, by the certificate's id, or in a file of its own. */
export type KeyReference = KeyPlace | { readonly kind: 'file'; readonly path: string }

/** What signs: data that any thread may have. */
export interface SigningReference {
  /** SHA-256 fingerprint of the certificate. */
  readonly id: string
  /** PEM. */
  readonly certificate: string
  readonly key: KeyReference
}

/** One certificate to be made. */
export interface SigningJob extends Validity {
  /** A request in PEM. */
  readonly csr: string
  /** The workload that it is for; undefined for a serving certificate of this process. */
  readonly identity: string | undefined
}

/** What a signer thread is asked to do. */
export type SignerTask =
  | { readonly type: 'sign'; readonly by: SigningReference; readonly jobs: readonly SigningJob[] }
  /** Reads a key. Each of the threads takes this once: none goes on before as many as there are have come, counted in `arrived`. */
  | { readonly type: 'adopt'; readonly by: SigningReference; readonly threads: number; readonly arrived: SharedArrayBuffer }
  | {
      readonly type: 'make-root'
      readonly place: KeyPlace
      readonly organization: string
      /** Size of the RSA key. */
      readonly bits: number
      readonly validity: Validity
      /** Who signs the new root's name and key as well, and for how long. */
      readonly cross?: { readonly by: SigningReference; readonly validity: Validity }
    }

/** The outcome of a job: the certificate in PEM with its serial number in hexadecimal, or why there is none. */
export type JobOutcome =
  | { readonly certificate: string; readonly serial: string }
  | { readonly fault: 'request' | 'identity' | 'signing'; readonly message: string }

/** A root that was made; its key is stored under `id`. */
export interface MadeRoot {
  readonly id: string
  /** PEM, as is `cross`; empty where nobody else has signed it. */
  readonly certificate: string
  readonly cross: string
}

/** What comes back: of the task that it was, or an error that says which key cannot be used and why. A thread that dies answers nothing. */
export type SignerAnswer = { readonly outcomes: readonly JobOutcome[] } | { readonly made: MadeRoot } | { readonly error: string }

/** Keys that a thread keeps at hand. */
const mostKeys = 8
/** How long a thread waits until another one has started, in milliseconds. */
const longestMeeting = 5000
/** Serial numbers for which chance is drawn at once. */
const serialsAtOnce = 256

/** The priority (`nice`) of a thread that has begun to sign for workloads. */
const workloadPriority = 10

let isLowered = false
const known = new Map<string, SigningKey>()
let chance = Buffer.alloc(0)

/** Runs on a thread of the pool. An error names the file of a key that cannot be used, and nothing of what is in it. */
export default function run(task: SignerTask): SignerAnswer {
  try {
    if (task.type === 'make-root') return { made: makeRoot(task) }
    if (task.type === 'adopt') meet(task)
    const key = keyOf(task.by)
    return { outcomes: task.type === 'sign' ? task.jobs.map((job) => outcome(job, key)) : [] }
  } catch (error) {
    return { error: (error as Error).message }
  }
}

/** Waits for the other threads. Throws when they do not come in time. */
function meet({ threads, arrived }: Extract<SignerTask, { type: 'adopt' }>): void {
  const count = new Int32Array(arrived)
  Atomics.add(count, 0, 1)
  Atomics.notify(count, 0)
  for (let seen = Atomics.load(count, 0); seen < threads; seen = Atomics.load(count, 0))
    if (Atomics.wait(count, 0, seen, longestMeeting) === 'timed-out') throw new Error('the other signer threads did not start in time')
}

/**
 * From its first certificate for a workload on, a thread gives way to everything else that the process does, where the system can tell
 * threads apart. What the start waits for, the root and serving certificates, comes before that and is not held up.
 */
function giveWay(): void {
  if (isLowered || process.platform !== 'linux') return
  isLowered = true
  setPriority(0, workloadPriority)
}

function outcome({ csr, identity, notBefore, notAfter }: SigningJob, key: SigningKey): JobOutcome {
  if (identity !== undefined) giveWay()
  const serial = newSerial()
  const grant = { serial, notBefore, notAfter }
  try {
    const made = identity === undefined ? issueServing(csr, grant, key) : issueWorkload(csr, identity, grant, key)
    return { certificate: pemOf('CERTIFICATE', made), serial: serial.toString('hex') }
  } catch (error) {
    const fault = error instanceof RequestFault ? 'request' : error instanceof IdentityFault ? 'identity' : 'signing'
    return { fault, message: (error as Error).message }
  }
}

function newSerial(): Buffer {
  if (chance.length === 0) chance = randomBytes(16 * serialsAtOnce)
  const serial = Buffer.from(chance.subarray(0, 16))
  chance = chance.subarray(16)
  return serial
}

function makeRoot({ place, organization, bits, validity, cross }: Extract<SignerTask, { type: 'make-root' }>): MadeRoot {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  const encoded = issueRoot(organization, { serial: newSerial(), ...validity }, privateKey)
  const certificate = pemOf('CERTIFICATE', encoded)
  const [root] = readCertificates(certificate)
  const crossed = cross && root && issueCross(root, { serial: newSerial(), ...cross.validity }, keyOf(cross.by))
  const id = fingerprintOf(certificate)
  storeKey(place, id, privateKey)
  return { id, certificate, cross: crossed ? pemOf('CERTIFICATE', crossed) : '' }
}

/** The key of a signing certificate. Throws when it is the key of another. */
function keyOf({ id, certificate, key }: SigningReference): SigningKey {
  const found = known.get(id)
  if (found) return found
  const privateKey = key.kind === 'file' ? readPrivateKey(key.path, 'given') : readKey(key, id)
  if (!new X509Certificate(certificate).checkPrivateKey(privateKey))
    throw new Error(`${key.kind === 'file' ? key.path : `the key ${id}`}: is not the key of the signing certificate`)
  const [signing] = readCertificates(certificate)
  const made = signingKeyOf(signing as NonNullable<typeof signing>, privateKey)
  if (known.size >= mostKeys) known.clear()
  known.set(id, made)
  return made
}
