/**
 * `pilot-discovery ca`: works on the certificate authority of the server on this machine, or on the stored state: when none runs, or where flags
 * name the cluster that has it.
 */
import type {
  AcceptedTimeAnswer,
  AuthorityStatus,
  DistrustAnswer,
  LedgerPage,
  RotateAnswer,
  TrustAnswer,
} from '../../protocols/messages/authority-status.ts'
import type { distrustFlags, exportFlags, importFlags, ledgerFlags, outputFlag, rotateFlags } from './ca-flags.ts'
import { authorityText, blockersText, distrustText, ledgerText } from './ca-text.ts'
import type { FlagValues } from './flags.ts'
import { printAnswer } from './folding.ts'
import { print, printJson } from './print.ts'

/** A certificate authority: that of the server, or the stored state. */
export interface Authority {
  status(): Promise<AuthorityStatus>
  ledger(start: number, length: number): Promise<LedgerPage>
  rotate(force: boolean): Promise<RotateAnswer>
  distrust(id: string, isDry: boolean): Promise<DistrustAnswer>
  trust(id: string): Promise<TrustAnswer>
  acceptTime(): Promise<AcceptedTimeAnswer>
}

/** What the stored state is opened for: to be shown, to be changed, or to have the time of the wall clock accepted. */
export type Purpose = 'show' | 'change' | 'accept-time'

/** The stored state of an authority: a directory that this process uses exclusively, or Secrets that running servers may use too. */
export interface StoredAuthority extends Authority {
  close(): Promise<void>
}

/** Paths of the files of an authority to import. Those without a file are empty. */
export interface AuthorityFiles {
  /** PKCS #12 file with the signing certificate, its key, the chain, and the root unless `root` names it. Then `cert`, `key` and `chain` are empty. */
  readonly pkcs12: string
  /** File whose first line is the password of `pkcs12`. */
  readonly passwordFile: string
  readonly cert: string
  readonly key: string
  /** Certificates between the signing certificate and the root. Empty when there are none. */
  readonly chain: string
  /** Empty when the signing certificate is the root, or the root is in `pkcs12`. */
  readonly root: string
}

/** The operations of the commands on files. They are implemented outside `src/`, which does not access files. */
export interface CaWork {
  /** Opens the stored state. Rejects when a server uses a directory that holds it, when there is none, or when it is damaged. */
  open(purpose: Purpose): Promise<StoredAuthority>
  /**
   * Writes the certificates, and with `withKey` the private key of the signing certificate, to a directory. Resolves with the paths.
   * Rejects when a file exists already.
   */
  export(status: AuthorityStatus, directory: string, withKey: boolean): Promise<readonly string[]>
  /**
   * Writes the roots that are sent to workloads to a file, in PKCS #12 or PKCS #7 by the end of its name. Resolves with its path. Rejects when
   * the file exists already or the name has another end.
   */
  exportTrustStore(status: AuthorityStatus, path: string, passwordFile: string): Promise<readonly string[]>
  /**
   * Validates the files of an authority and copies them to `ROOT_CA_DIR`; existing files are overwritten only with `replace`. Resolves with
   * the paths. Rejects with an Error that names the file and the fault.
   */
  import(files: AuthorityFiles, replace: boolean): Promise<readonly string[]>
}

/** How the commands reach an authority. */
export interface CaAccess {
  /** Whether the server on this machine is asked first. */
  readonly asksServer: boolean
  /** Imports the operations, which most commands do not need. */
  readonly work: () => Promise<CaWork>
}

/** Prints an answer for programs, or its text. */
function printAs<Answer>(asJson: boolean, answer: Answer, text: (answer: Answer) => string): void {
  if (asJson) printJson(answer)
  else printAnswer(text(answer))
}

/** Prints roots, intermediates, expiries and the stage of a rotation. */
export async function show(access: CaAccess, flags: FlagValues<typeof outputFlag>): Promise<void> {
  const asJson = isJson(flags)
  const status = await statusOf(access)
  printAs(asJson, status, authorityText)
}

/** Prints who holds which certificate until when. */
export async function showLedger(access: CaAccess, { identity, ...flags }: FlagValues<typeof ledgerFlags>): Promise<void> {
  const asJson = isJson(flags)
  const { identities, replicas } = await ledgerOf(access)
  const page: LedgerPage = { identities: identities.filter((row) => row.identity.includes(identity)), replicas }
  printAs(asJson, page, ledgerText)
}

/** Trusts a root again that was distrusted. Rejects when the root is unknown. */
export async function trust(access: CaAccess, flags: FlagValues<typeof outputFlag>, id: string): Promise<void> {
  const asJson = isJson(flags)
  const answer = await serverOr(access, 'change', (authority) => authority.trust(id))
  if ('refused' in answer) throw new Error(answer.refused)
  print(asJson ? JSON.stringify(answer, null, 2) : `Root ${answer.root.slice(0, 16)} (${answer.subject}) is trusted again where it is configured.`)
}

/** Accepts the time of the wall clock, although it contradicts the recorded time. */
export async function acceptTime(access: CaAccess, flags: FlagValues<typeof outputFlag>): Promise<void> {
  const asJson = isJson(flags)
  const answer = await serverOr(access, 'accept-time', (authority) => authority.acceptTime())
  const { wall, dispute } = answer
  print(
    asJson
      ? JSON.stringify(answer, null, 2)
      : `The time ${wall} is accepted. ${dispute === undefined ? 'It was not disputed.' : `Before, ${dispute}.`}`,
  )
}

/** Writes the certificates of the authority to files, and prints their paths. `isToGiven` is whether the flag `--to` was given. */
export async function exportFiles(access: CaAccess, flags: FlagValues<typeof exportFlags>, isToGiven: boolean): Promise<void> {
  const { to, 'private-key': withKey, truststore, 'password-file': passwordFile } = flags
  if (truststore !== '' && (withKey || isToGiven)) throw new Error('--truststore writes one file: neither --to nor --private-key goes with it')
  if (truststore === '' && passwordFile !== '') throw new Error('--password-file has no effect without --truststore')
  const work = await access.work()
  const status = await statusOf(access)
  const paths = truststore === '' ? await work.export(status, to, withKey) : await work.exportTrustStore(status, truststore, passwordFile)
  for (const path of paths) print(path)
}

/** Checks the files of an authority, plugs them in, and prints their paths. */
export async function importFiles(access: CaAccess, flags: FlagValues<typeof importFlags>): Promise<void> {
  const { replace, 'password-file': passwordFile, ...files } = flags
  const isStored = files.pkcs12 !== ''
  for (const flag of ['cert', 'key'] as const) if (!isStored && files[flag] === '') throw new Error(`--${flag} is needed`)
  for (const flag of ['cert', 'key', 'chain'] as const)
    if (isStored && files[flag] !== '') throw new Error(`--pkcs12 and --${flag} contradict each other: both name it`)
  if (!isStored && passwordFile !== '') throw new Error('--password-file has no effect without --pkcs12')
  for (const path of await (await access.work()).import({ ...files, passwordFile }, replace)) print(path)
}

/** Begins the rotation of the own root, or takes it one stage further. Rejects when something blocks it. */
export async function rotate(access: CaAccess, { 'dry-run': isDry, force, ...flags }: FlagValues<typeof rotateFlags>): Promise<void> {
  const asJson = isJson(flags)
  if (isDry) {
    const status = await statusOf(access)
    return printAs(asJson, status.rotation, () => blockersText(status))
  }
  const answer = await serverOr(access, 'change', (authority) => authority.rotate(force))
  if (asJson) printJson(answer)
  else if ('refused' in answer) printAnswer(answer.status ? blockersText(answer.status) : 'No authority is in force.')
  else
    print(
      `The rotation went from ${answer.from} to ${answer.went}.${answer.forcedOver.length > 0 ? ` Blockers that were overruled: ${answer.forcedOver.length}.` : ''}`,
    )
  if ('refused' in answer) throw new Error(answer.refused)
}

/** Distrusts a root at once, and prints who is cut off. Rejects when the root is unknown. */
export async function distrust(access: CaAccess, { 'dry-run': isDry, ...flags }: FlagValues<typeof distrustFlags>, id: string): Promise<void> {
  const asJson = isJson(flags)
  const answer = await serverOr(access, isDry ? 'show' : 'change', (authority) => authority.distrust(id, isDry))
  if ('refused' in answer) throw new Error(answer.refused)
  printAs(asJson, answer, distrustText)
}

const statusOf = (access: CaAccess): Promise<AuthorityStatus> => serverOr(access, 'show', (authority) => authority.status())

/** The number of identities per request. */
const pageLength = 1000

async function ledgerOf(access: CaAccess): Promise<LedgerPage> {
  const all: LedgerPage['identities'][number][] = []
  for (;;) {
    const { identities, replicas } = await serverOr(access, 'show', (authority) => authority.ledger(all.length, pageLength))
    all.push(...identities)
    if (identities.length < pageLength) return { identities: all, replicas }
  }
}

/** Asks the authority of the server or the stored state. Rejects with the reason of the server when it refuses. */
async function serverOr<Answer>(access: CaAccess, purpose: Purpose, ask: (authority: Authority) => Promise<Answer>): Promise<Answer> {
  if (access.asksServer) {
    const [{ AuthorityClient }, { NoServerError }] = await Promise.all([import('./authority-client.ts'), import('./admin-socket.ts')])
    try {
      return await ask(new AuthorityClient())
    } catch (error) {
      if (!(error instanceof NoServerError)) throw error
    }
  }
  const stored = await (await access.work()).open(purpose)
  try {
    return await ask(stored)
  } finally {
    await stored.close()
  }
}

function isJson({ output, json }: { readonly output: string; readonly json: boolean }): boolean {
  if (output !== '' && output !== 'json') throw new Error("--output must be 'json'")
  return json || output === 'json'
}
